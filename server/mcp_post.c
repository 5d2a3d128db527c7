/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: speak HTTP/1.0 to the server's own socket: a body that ends with the connection, no chunks.
 * Owns: the connection and its buffers.
 * Threads: one.
 * May include: api/mcp_stdio.h, lib/base.
 */
#include "server/mcp_post.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/poll.h>
#include <sys/socket.h>

#include "lib/base/fd.h"
#include "lib/base/text.h"

#define REPLY_MAX ((size_t)64 << 20)
#define REQUEST_MAX ((size_t)18 << 20)
#define PIECE ((size_t)64 << 10)

void mcp_post_begin(struct mcp_post *post, int fd, const char *headers, struct mcp_stdio_line *line,
                    const struct buf *body)
{
    *post = (struct mcp_post){
        .fd = fd, .id = line->id, .out = BUF_INIT(REQUEST_MAX), .in = BUF_INIT(REPLY_MAX)
    };
    line->id = NULL;
    (void)buf_printf(&post->out,
                     "POST /mcp HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     "Accept: application/json, text/event-stream\r\nContent-Length: %zu\r\n"
                     "%s%s\r\n",
                     body->size, headers, line->headers.data == NULL ? "" : line->headers.data);
    (void)buf_append(&post->out, body->data, body->size);
}

short mcp_post_events(const struct mcp_post *post)
{
    return (short)(POLLIN | (post->sent < post->out.size ? POLLOUT : 0));
}

void mcp_post_drop(struct mcp_post *post)
{
    fd_clear(&post->fd);
    free(post->id);
    post->id = NULL;
    buf_done(&post->out);
    buf_done(&post->in);
}

/* ---- the reply ---- */

/* Line breaks of JSON are outside of its strings. */
static void pass_on(struct mcp_post *post, const char *text, size_t size, struct buf *lines)
{
    for (size_t i = 0; i < size; i++) {
        const bool is_break = text[i] == '\n' || text[i] == '\r';

        (void)buf_append(lines, is_break ? " " : text + i, 1);
    }
    (void)buf_append(lines, "\n", 1);
    post->answered = true;
}

static void read_head(struct mcp_post *post)
{
    const char *end = post->in.data == NULL ? NULL : strstr(post->in.data, "\r\n\r\n");
    const char *type;

    if (end == NULL) {
        return;
    }
    if (post->in.size > 12 && strncmp(post->in.data, "HTTP/1.", 7) == 0) {
        uint64_t status = 0;
        char digits[4] = { post->in.data[9], post->in.data[10], post->in.data[11], '\0' };

        post->status = text_parse_u64(digits, &status) == 0 ? (int)status : 0;
    }
    type = strcasestr(post->in.data, "\r\nContent-Type: text/event-stream");
    post->stream = type != NULL && type < end;
    post->head_done = true;
    buf_consume(&post->in, (size_t)(end - post->in.data) + 4);
}

/* Each complete line of an event stream. */
static void read_events(struct mcp_post *post, struct buf *lines)
{
    static const char field[] = "data: ";
    size_t done = 0;
    const char *newline;

    while (post->in.size > done &&
           (newline = memchr(post->in.data + done, '\n', post->in.size - done)) != NULL) {
        const char *line = post->in.data + done;
        const size_t size = (size_t)(newline - line);

        if (size > sizeof(field) - 1 && memcmp(line, field, sizeof(field) - 1) == 0) {
            pass_on(post, line + sizeof(field) - 1, size - (sizeof(field) - 1), lines);
        }
        done += size + 1;
    }
    buf_consume(&post->in, done);
}

/* The connection has ended: whoever waits gets an answer in any case. */
static void end(struct mcp_post *post, struct buf *lines)
{
    const bool is_message =
        post->in.size > 0 && memmem(post->in.data, post->in.size, "\"jsonrpc\"", 9) != NULL;
    char message[96];

    if (!post->stream && post->head_done && is_message) {
        pass_on(post, post->in.data, post->in.size, lines);
    }
    if (post->id == NULL || (post->answered && !post->stream)) {
        return;
    }
    if (post->status == 0) {
        (void)snprintf(message, sizeof(message), "the server ended before it answered");
    } else if (post->answered) {
        return;
    } else {
        (void)snprintf(message, sizeof(message), "the server answered with HTTP status %d",
                       post->status);
    }
    mcp_stdio_error(lines, post->id, false, message);
    (void)buf_append(lines, "\n", 1);
}

/* ---- the connection ---- */

static bool again(void)
{
    return errno == EAGAIN || errno == EINTR;
}

static void send_some(struct mcp_post *post)
{
    while (post->sent < post->out.size) {
        const ssize_t size =
            send(post->fd, post->out.data + post->sent, post->out.size - post->sent, MSG_NOSIGNAL);

        if (size <= 0) {
            return; /* an error shows when the reply is read */
        }
        post->sent += (size_t)size;
    }
}

bool mcp_post_step(struct mcp_post *post, struct buf *lines)
{
    char piece[PIECE];
    ssize_t size;

    send_some(post);
    while ((size = recv(post->fd, piece, sizeof(piece), MSG_DONTWAIT)) > 0) {
        (void)buf_append(&post->in, piece, (size_t)size);
        if (!post->head_done) {
            read_head(post);
        }
        if (post->stream) {
            read_events(post, lines);
        }
    }
    if (size < 0 && again()) {
        return true;
    }
    end(post, lines);
    mcp_post_drop(post);
    return false;
}
