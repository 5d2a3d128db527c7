/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read standard input and pass it on.
 * Owns: nothing.
 * Threads: main.
 * May include: client, lib/base.
 */
#include "client/input.h"

#include <errno.h>
#include <sys/poll.h>
#include <unistd.h>

#include "lib/base/clock.h"

#define PIECE ((size_t)64 << 10)
#define RETRY_MS 10
#define PIECE_TAKEN_MAX ((size_t)256 << 10) /* the program reads while we read on */

/* What one read gives. 1: bytes, 0: the end (an error ends it, too), -1: try again. */
static int read_once(struct buf *out)
{
    char *room = buf_reserve(out, PIECE);
    ssize_t got;

    if (room == NULL) {
        return -1;
    }
    got = read(STDIN_FILENO, room, PIECE);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return -1;
    }
    buf_commit(out, got > 0 ? (size_t)got : 0);
    return got > 0;
}

bool input_read_short(struct buf *out)
{
    struct pollfd ready = { .fd = STDIN_FILENO, .events = POLLIN };

    while (out->size + PIECE <= out->max && poll(&ready, 1, 0) > 0) {
        const int got = read_once(out);

        if (got <= 0) {
            return got == 0;
        }
    }
    return false;
}

void input_begin(struct input *input, struct buf *start)
{
    *input = (struct input){ .waiting = start, .done = start == NULL };
}

int input_fd(const struct input *input)
{
    return input->done || input->ended || input->waiting->size > 0 ? -1 : STDIN_FILENO;
}

int input_wait_ms(const struct input *input)
{
    return input->done || (input->waiting->size == 0 && !input->ended)
               ? -1
               : clock_poll_ms(input->retry, -1);
}

void input_read(struct input *input)
{
    input->ended = read_once(input->waiting) == 0;
}

void input_pass_on(struct input *input, const struct ask *ask, const char *execution)
{
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    struct remote_request request = { .method = "POST", .type = "application/octet-stream" };
    size_t size;
    int status;

    if (input_wait_ms(input) != 0) {
        return;
    }
    size = input->waiting->size < PIECE_TAKEN_MAX ? input->waiting->size : PIECE_TAKEN_MAX;
    ask_path(&target, "v1", "executions", execution, "stdin", NULL);
    if (input->ended && size == input->waiting->size) {
        ask_query(&target, "eof", "true");
    }
    request.target = target.data;
    request.body = size == 0 ? "" : input->waiting->data;
    request.size = size;
    status = ask_aside(ask, &request);
    /* Not there yet, not startable yet, or full for now; that it has ended the events tell. */
    if (status == 404 || status == 409 || status == 429) {
        input->retry = clock_deadline_after_ms(RETRY_MS);
        return;
    }
    buf_consume(input->waiting, size);
    input->done = status != 204 || (input->ended && input->waiting->size == 0);
}
