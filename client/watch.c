/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: wait for an answer, standard input and signals at once.
 * Owns: the mask of signals, while it runs.
 * Threads: main.
 * May include: client, lib/base.
 */
#include "client/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/input.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"

#define PIECE_MAX ((size_t)256 << 20)
#define GAVE_UP 130 /* as after SIGINT */

struct state {
    const struct watch *watch;
    struct answer answer;
    int connection; /* until the answer has it */
    int signals;
    unsigned pressed;
    struct input input;
    struct buf bytes;
    bool ended;
};

/* ---- signals ---- */

static void cancel(const struct watch *watch)
{
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    struct remote_request request = { .method = "DELETE" };

    if (watch->kernel == NULL) {
        ask_path(&target, "v1", "executions", watch->execution, NULL);
    } else {
        (void)buf_printf(&target, "%s/restart", watch->kernel);
        request.method = "POST";
    }
    request.target = target.data;
    (void)ask_aside(watch->ask, &request);
}

static int interrupt(const struct watch *watch, int number)
{
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    CLEANUP_BUF struct buf body = BUF_INIT(64);
    struct remote_request request = { .method = "POST" };

    if (watch->kernel == NULL) {
        ask_path(&target, "v1", "executions", watch->execution, "signal", NULL);
        (void)buf_printf(&body, "{\"signal\":\"%s\",\"all\":true}",
                         number == SIGINT ? "INT" : "TERM");
        request.type = "application/json";
        request.body = body.data;
        request.size = body.size;
    } else {
        (void)buf_printf(&target, "%s/interrupt", watch->kernel);
    }
    request.target = target.data;
    return ask_aside(watch->ask, &request);
}

/* A terminal echoes ^C where the cursor was; what is said next begins a line of its own. */
static void end_line(const struct signalfd_siginfo *info)
{
    if (info->ssi_signo == SIGINT && info->ssi_code == SI_KERNEL && isatty(STDERR_FILENO) == 1) {
        (void)fd_write_full(STDERR_FILENO, "\n", 1);
    }
}

/* False: give up. */
static bool take_signal(struct state *state)
{
    const struct watch *watch = state->watch;
    struct signalfd_siginfo info;

    if (read(state->signals, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return true;
    }
    end_line(&info);
    if (watch->leave || ++state->pressed > 2) {
        return false;
    }
    if (watch->show != NULL) {
        watch->show->interrupted = true;
    }
    /* What has not started yet takes no signal. */
    if (state->pressed == 2 || interrupt(watch, (int)info.ssi_signo) >= 400) {
        cancel(watch);
    }
    return true;
}

static int block_signals(sigset_t *ret_before)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, ret_before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- the answer ---- */

/* What the connection has. 1: more may come, 0: that was all, -1: failed. */
static int take_answer(struct state *state)
{
    const struct watch *watch = state->watch;
    struct err *err = &watch->ask->err;
    int more = 1;

    if (state->connection >= 0) {
        const int fd = state->connection;

        state->connection = -1;
        if (answer_open(&state->answer, fd, err) < 0) {
            return -1;
        }
        if (state->answer.status >= 400) {
            return ask_refused(watch->ask, &state->answer);
        }
        if (!answer_is_ready(&state->answer)) {
            return 1;
        }
    }
    more = answer_take(&state->answer, &state->bytes, err);
    if (more >= 0 && watch->raw) {
        more = ask_print(watch->ask, state->bytes.data, state->bytes.size) < 0 ? -1 : more;
        buf_reset(&state->bytes);
    } else if (more >= 0 && watch->show != NULL && show_take(watch->show, &state->bytes) < 0) {
        return -1;
    }
    return more;
}

/* 1: go on, 0: it ended, -1: failed, 2: the user gave up. */
static int step(struct state *state)
{
    struct pollfd polls[3] = {
        { .fd = state->connection >= 0 ? state->connection : state->answer.fd, .events = POLLIN },
        { .fd = state->signals, .events = POLLIN },
        { .fd = input_fd(&state->input), .events = POLLIN },
    };

    if (poll(polls, 3, input_wait_ms(&state->input)) < 0 && errno != EINTR) {
        return ask_fail(state->watch->ask, "", "poll: %s", err_errno_text(errno));
    }
    if (polls[1].revents != 0 && !take_signal(state)) {
        return 2;
    }
    if (polls[2].revents != 0) {
        input_read(&state->input);
    }
    input_pass_on(&state->input, state->watch->ask, state->watch->execution);
    return polls[0].revents == 0 ? 1 : take_answer(state);
}

static int send_request(struct state *state)
{
    const struct watch *watch = state->watch;
    const struct remote_request request = {
        .method = watch->body == NULL ? "GET" : "POST",
        .target = watch->target,
        .accept = watch->show == NULL && !watch->raw ? "application/json" : "application/x-ndjson",
        .type = watch->body == NULL ? NULL : "application/json",
        .body = watch->body == NULL ? NULL : watch->body->data,
        .size = watch->body == NULL ? 0 : watch->body->size,
    };

    state->connection = remote_dial(&watch->ask->remote, &watch->ask->err);
    return state->connection < 0
               ? -1
               : remote_send(&watch->ask->remote, state->connection, &request, &watch->ask->err);
}

/* The exit status of a whole answer. */
static int end(struct state *state)
{
    const struct watch *watch = state->watch;
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;

    if (watch->raw) {
        return 0;
    }
    if (watch->show != NULL) {
        return show_rest(watch->show, watch->execution) < 0 ? -1 : watch->show->status;
    }
    tree = json_view_parse(state->bytes.data, state->bytes.size);
    (void)buf_append_text(&state->bytes, "\n");
    return ask_print(watch->ask, state->bytes.data, state->bytes.size) < 0
               ? -1
               : (int)json_view_whole(tree, "exitCode", COMMAND_FAILED);
}

int watch_run(const struct watch *watch)
{
    struct state state = {
        .watch = watch, .answer = { .fd = -1 }, .connection = -1, .bytes = BUF_INIT(PIECE_MAX)
    };
    sigset_t before;
    int result;

    input_begin(&state.input, watch->input);
    result = send_request(&state);
    state.signals = block_signals(&before);
    result = result < 0 ? -1 : 1;
    while (result == 1) {
        result = step(&state);
    }
    if (result == 0) {
        result = end(&state);
    } else if (result == 2) {
        result = GAVE_UP;
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    fd_close(state.signals);
    fd_close(state.connection);
    answer_close(&state.answer);
    buf_done(&state.bytes);
    return result;
}
