/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read an HTTP answer.
 * Owns: the connection.
 * Threads: main.
 * May include: client, lib/base.
 */
#include "client/answer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "lib/base/fd.h"
#include "lib/base/text.h"

#define HEAD_MAX ((size_t)64 << 10)
#define PIECE ((size_t)64 << 10)
#define CHUNK_DIGITS_MAX 15

static int broken(const char *how, struct err *err)
{
    (void)err_set(err, ERR_IO, 0, "the server's answer %s", how);
    return err_remedy(err, "the server may have ended: see its log, or try again");
}

/* Appends what comes next to in. The count, 0 at the end, -1 with err. */
static ssize_t receive(struct answer *answer, struct err *err)
{
    char *room = buf_reserve(&answer->in, PIECE);
    ssize_t got = -1;

    if (room == NULL) {
        return broken("is too long", err);
    }
    do {
        got = recv(answer->fd, room, PIECE, 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return errno == ECONNRESET ? 0 : broken("can't be read", err);
    }
    buf_commit(&answer->in, (size_t)got);
    return got;
}

/* ---- the head ---- */

const char *answer_header(const struct answer *answer, const char *name, char *out, size_t size)
{
    const size_t length = strlen(name);
    const char *line = answer->head.data;

    out[0] = '\0';
    while (line != NULL && *line != '\0') {
        const char *end = strchrnul(line, '\n');

        if (strncasecmp(line, name, length) == 0 && line[length] == ':') {
            const char *value = line + length + 1 + strspn(line + length + 1, " \t");
            size_t count = (size_t)(end - value);

            while (count > 0 && strchr(" \t\r", value[count - 1]) != NULL) {
                count--;
            }
            count = count < size ? count : size - 1;
            memcpy(out, value, count);
            out[count] = '\0';
            return out;
        }
        line = *end == '\0' ? end : end + 1;
    }
    return out;
}

/* "HTTP/1.1 200 OK" and the fields behind. */
static int read_head(struct answer *answer, struct err *err)
{
    uint64_t status = 0;
    char text[32];

    if (answer->head.size < 12 || strncmp(answer->head.data, "HTTP/1.", 7) != 0) {
        return broken("is not HTTP", err);
    }
    memcpy(text, answer->head.data + 9, 3);
    text[3] = '\0';
    if (text_parse_u64(text, &status) < 0) {
        return broken("has no status", err);
    }
    answer->status = (int)status;
    answer->length = UINT64_MAX;
    if (strcasecmp(answer_header(answer, "Transfer-Encoding", text, sizeof(text)), "chunked") ==
        0) {
        answer->part = ANSWER_CHUNK_SIZE;
    } else if (status == 204 || status == 304) {
        answer->part = ANSWER_ENDED;
    } else if (text_parse_u64(answer_header(answer, "Content-Length", text, sizeof(text)),
                              &answer->left) == 0) {
        answer->length = answer->left;
        answer->part = answer->left == 0 ? ANSWER_ENDED : ANSWER_SIZED;
    } else {
        answer->part = ANSWER_UNSIZED;
    }
    return 0;
}

int answer_open(struct answer *answer, int fd, struct err *err)
{
    const char *end = NULL;

    *answer =
        (struct answer){ .fd = fd, .head = BUF_INIT(HEAD_MAX), .in = BUF_INIT(HEAD_MAX + PIECE) };
    for (;;) {
        end = answer->in.size == 0 ? NULL : memmem(answer->in.data, answer->in.size, "\r\n\r\n", 4);
        if (end == NULL) {
            const ssize_t got = receive(answer, err);

            if (got <= 0) {
                return got < 0 ? -1 : broken("did not come", err);
            }
            continue;
        }
        buf_reset(&answer->head);
        (void)buf_append(&answer->head, answer->in.data, (size_t)(end - answer->in.data) + 2);
        buf_consume(&answer->in, (size_t)(end - answer->in.data) + 4);
        if (read_head(answer, err) < 0) {
            return -1;
        }
        if (answer->status >= 200) { /* 1xx is only an interim answer */
            return 0;
        }
    }
}

void answer_close(struct answer *answer)
{
    fd_clear(&answer->fd);
    buf_done(&answer->head);
    buf_done(&answer->in);
}

/* ---- the body ---- */

/* A line of the chunks' framing; false: it is not complete. */
static bool take_line(struct answer *answer, char *out, size_t size)
{
    const char *newline =
        answer->in.size == 0 ? NULL : memchr(answer->in.data, '\n', answer->in.size);
    size_t length;

    if (newline == NULL) {
        return false;
    }
    length = (size_t)(newline - answer->in.data);
    (void)snprintf(out, size, "%.*s", (int)(length < size ? length : size), answer->in.data);
    out[strcspn(out, "\r")] = '\0';
    buf_consume(&answer->in, length + 1);
    return true;
}

static int read_size(struct answer *answer, const char *line, struct err *err)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t size = 0;
    size_t count = 0;
    const char *digit;

    while (line[count] != '\0' && (digit = strchr(digits, line[count] | 0x20)) != NULL) {
        size = size << 4 | (uint64_t)(digit - digits);
        count++;
    }
    if (count == 0 || count > CHUNK_DIGITS_MAX || (line[count] != '\0' && line[count] != ';')) {
        return broken("has a bad chunk", err);
    }
    answer->left = size;
    answer->part = size == 0 ? ANSWER_TRAILER : ANSWER_CHUNK;
    return 0;
}

/* One part of what came; 1: it went on, 0: more has to come. */
static int decode_step(struct answer *answer, struct buf *out, struct err *err)
{
    char line[64];

    if (answer->part == ANSWER_UNSIZED || answer->part == ANSWER_SIZED ||
        answer->part == ANSWER_CHUNK) {
        const bool all = answer->part == ANSWER_UNSIZED || answer->in.size < answer->left;
        const size_t size = all ? answer->in.size : (size_t)answer->left;

        if (buf_append(out, answer->in.data, size) < 0) {
            return broken("is too long", err);
        }
        buf_consume(&answer->in, size);
        answer->left -= answer->part == ANSWER_UNSIZED ? 0 : size;
        if (answer->part != ANSWER_UNSIZED && answer->left == 0) {
            answer->part = answer->part == ANSWER_SIZED ? ANSWER_ENDED : ANSWER_CHUNK_END;
        }
        return size > 0;
    }
    if (!take_line(answer, line, sizeof(line))) {
        return 0;
    }
    if (answer->part == ANSWER_CHUNK_SIZE) {
        return read_size(answer, line, err) < 0 ? -1 : 1;
    }
    if (answer->part == ANSWER_CHUNK_END) {
        answer->part = ANSWER_CHUNK_SIZE;
    } else if (line[0] == '\0') {
        answer->part = ANSWER_ENDED;
    }
    return 1;
}

/* Decodes all that came. */
static int decode(struct answer *answer, struct buf *out, struct err *err)
{
    int went_on = 1;

    while (went_on == 1 && answer->part != ANSWER_ENDED && answer->in.size > 0) {
        went_on = decode_step(answer, out, err);
    }
    return went_on < 0 ? -1 : 0;
}

bool answer_is_ready(const struct answer *answer)
{
    return answer->in.size > 0 || answer->part == ANSWER_ENDED;
}

int answer_take(struct answer *answer, struct buf *out, struct err *err)
{
    const size_t before = out->size;
    ssize_t got;

    if (decode(answer, out, err) < 0) {
        return -1;
    }
    if (answer->part == ANSWER_ENDED || out->size > before) {
        return answer->part == ANSWER_ENDED ? 0 : 1;
    }
    got = receive(answer, err);
    if (got < 0) {
        return -1;
    }
    if (got == 0) {
        return answer->part == ANSWER_UNSIZED ? 0 : broken("was cut short", err);
    }
    return decode(answer, out, err) < 0 ? -1 : answer->part == ANSWER_ENDED ? 0 : 1;
}
