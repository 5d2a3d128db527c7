/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: cells in a warm interpreter: send one, take what comes, interrupt, tell life from death.
 * Owns: the conversation with the driver. kernel_open.c and kernel_adopt.c have its beginning.
 * Threads: one at a time; kernel_interrupt from any, under the lock.
 * May include: box, base.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/cell/kernel_internal.h"

#define CODE_MAX ((size_t)64 * 1024 * 1024)
#define FRAME_MAX (2 * CODE_MAX + 4096) /* code and standard input */
#define POLITE_MS 150
/* For an interrupt's frame, should the driver still be reading its cell. */
#define INTERRUPT_SEND_MS 100
#define DEATH_MS 200

/* One cell while it runs. */
struct turn {
    struct kernel *kernel;
    const struct kernel_cell *cell;
    struct kernel_reply *reply;
};

void kernel_release(struct kernel *kernel)
{
    strv_done(&kernel->change);
    wire_done(&kernel->wire);
    fd_close(kernel->always_readable);
    (void)pthread_mutex_destroy(&kernel->lock);
    free(kernel);
}

void kernel_reply_done(struct kernel_reply *reply)
{
    buf_done(&reply->late_stdout);
    buf_done(&reply->late_stderr);
}

static int at_once(void *peer)
{
    (void)peer;
    return 1;
}

/*
 * Reads what was written since the last cell ended, and learns of a death since then: a round that
 * is complete as soon as it begins.
 */
static enum box_stop catch_up(struct kernel *kernel, struct kernel_reply *reply)
{
    struct box_io io = {
        .max_output = KERNEL_LATE_MAX,
        .capture_stdout = &reply->late_stdout,
        .capture_stderr = &reply->late_stderr,
        .deadline = CLOCK_NEVER,
        .peer_fd = kernel->always_readable,
        .peer_ready = at_once,
    };

    return box_pump(kernel->box, &io);
}

static void set_running(struct kernel *kernel, bool running)
{
    (void)pthread_mutex_lock(&kernel->lock);
    kernel->running = running;
    (void)pthread_mutex_unlock(&kernel->lock);
}

/* 0, or -1 with errno. From here on the cell can be interrupted. */
static int send_cell(struct kernel *kernel, const struct kernel_cell *cell)
{
    CLEANUP_BUF struct buf frame = BUF_INIT(FRAME_MAX);
    size_t text_max = cell->io->max_output < CELL_TEXT_MAX ? cell->io->max_output : CELL_TEXT_MAX;
    char name[32];
    struct wire_cell request = {
        .mode = WIRE_KERNEL,
        .live = true,
        .text_max = (uint32_t)text_max,
        .number = kernel->number,
        .name = name,
        .code = cell->code,
        .code_size = cell->code_size,
        .stdin_data = cell->stdin_data,
        .stdin_size = cell->stdin_size,
        .environment = kernel->number == 1 ? strv_argv(&kernel->change) : NULL,
    };

    (void)snprintf(name, sizeof(name), "cell %u", kernel->number);
    if (wire_put_cell(&frame, &request) < 0) {
        errno = EMSGSIZE;
        return -1;
    }
    if (wire_send(kernel->driver, &frame, cell->io->deadline) < 0) {
        return -1;
    }
    set_running(kernel, true);
    return 0;
}

/* 1 the cell ended, 0 go on, -1 nonsense. */
static int on_frame(struct turn *turn, const struct wire_frame *frame)
{
    const struct kernel_cell *cell = turn->cell;
    struct kernel_reply *reply = turn->reply;
    struct wire_end end;

    if (frame->type == WIRE_RESULT) {
        return cell_results_add(cell->results, cell->io->sink, frame->data, frame->size, NULL);
    }
    if (wire_parse_end(frame, &end, NULL) < 0 || end.number != turn->kernel->number) {
        return -1;
    }
    reply->has_exit_code = true;
    reply->exit_code = end.exit_code;
    reply->interrupted = end.interrupted;
    return 1;
}

static int on_peer(void *peer)
{
    struct turn *turn = peer;
    struct wire *wire = &turn->kernel->wire;
    struct wire_frame frame;
    enum wire_read read = wire_read(wire, turn->kernel->driver);
    int said = 0;
    int got = 0;

    while (said == 0 && (got = wire_next(wire, &frame, NULL)) == 1) {
        said = on_frame(turn, &frame);
    }
    if (said < 0 || got < 0) {
        turn->reply->nonsense = true;
        return -1;
    }
    return said == 0 && read == WIRE_READ_END ? -1 : said;
}

static bool may_interrupt(const struct kernel_cell *cell, enum box_stop stop)
{
    enum cancel_reason reason = cancel_get(cell->io->cancel);

    if (cell->kill || (stop != BOX_STOP_DEADLINE && stop != BOX_STOP_CANCELLED)) {
        return false;
    }
    return reason != CANCEL_SESSION_GONE && reason != CANCEL_KERNEL_GONE &&
           reason != CANCEL_SHUTDOWN;
}

/* The cell's time is over, or its caller is gone. True: it ended in time, the kernel lives. */
static bool end_by_interrupt(struct turn *turn)
{
    struct box_io *io = turn->cell->io;
    struct cancel *cancel = io->cancel;
    int64_t deadline = io->deadline;
    bool ended = false;

    if (kernel_interrupt(turn->kernel, NULL) == 0) {
        io->cancel = NULL;
        io->deadline = clock_deadline_after_ms(KERNEL_GRACE_MS);
        ended = box_pump(turn->kernel->box, io) == BOX_STOP_PEER_DONE;
        io->cancel = cancel;
        io->deadline = deadline;
    }
    return ended;
}

/*
 * A driver that dies closes its connection a moment before its death is told; what it died of, and
 * its last words, are still to come. PEER_LOST: it lives without its connection.
 */
static enum box_stop await_death(struct turn *turn)
{
    struct box_io *io = turn->cell->io;
    struct cancel *cancel = io->cancel;
    const int64_t deadline = io->deadline;
    enum box_stop stop;

    io->peer_fd = -1;
    io->cancel = NULL;
    io->deadline = clock_deadline_after_ms(DEATH_MS);
    stop = box_pump(turn->kernel->box, io);
    io->cancel = cancel;
    io->deadline = deadline;
    return stop == BOX_STOP_DEADLINE ? BOX_STOP_PEER_LOST : stop;
}

static void take_turn(struct turn *turn)
{
    struct kernel *kernel = turn->kernel;
    struct box_io *io = turn->cell->io;
    enum box_stop stop = BOX_STOP_LOST;

    io->peer_fd = kernel->driver;
    io->peer_ready = on_peer;
    io->peer = turn;
    box_expect_short(kernel->box);
    stop = box_pump(kernel->box, io);
    if (stop == BOX_STOP_PEER_LOST && !turn->reply->nonsense) {
        stop = await_death(turn);
    }
    turn->reply->stop = stop;
    turn->reply->alive = stop == BOX_STOP_PEER_DONE;
    if (may_interrupt(turn->cell, stop)) {
        turn->reply->alive = end_by_interrupt(turn);
    }
    set_running(kernel, false);
    io->peer_fd = -1;
    io->peer_ready = NULL;
    io->peer = NULL;
}

int kernel_run(struct kernel *kernel, const struct kernel_cell *cell,
               struct kernel_reply *ret_reply, struct err *err)
{
    struct kernel_reply reply = { .late_stdout = BUF_INIT(KERNEL_LATE_MAX),
                                  .late_stderr = BUF_INIT(KERNEL_LATE_MAX) };
    struct turn turn = { .kernel = kernel, .cell = cell, .reply = &reply };

    if (cell->code_size > CODE_MAX || cell->stdin_size > CODE_MAX) {
        return err_set(err, ERR_BAD_VALUE, 0, "a cell takes at most 64 MiB of code or input");
    }
    if (kernel->alive && catch_up(kernel, &reply) != BOX_STOP_PEER_DONE) {
        kernel->alive = false;
    }
    if (!kernel->alive) {
        kernel_reply_done(&reply);
        return err_set(err, ERR_KERNEL_DEAD, 0, "the kernel is dead");
    }
    kernel->number++;
    if (send_cell(kernel, cell) == 0) {
        if (cell->io->steps != NULL) {
            steps_mark(cell->io->steps, STEP_SEND);
        }
        take_turn(&turn);
    } else {
        reply.stop = errno == ETIMEDOUT ? BOX_STOP_DEADLINE : BOX_STOP_PEER_LOST;
    }
    kernel->alive = reply.alive;
    *ret_reply = reply;
    return 0;
}

int kernel_interrupt(struct kernel *kernel, struct err *err)
{
    CLEANUP_BUF struct buf frame = BUF_INIT(64);
    int result = -1;

    (void)pthread_mutex_lock(&kernel->lock);
    if (!kernel->running) {
        (void)err_set(err, ERR_CONFLICT, 0, "no cell is running");
    } else if (wire_put_interrupt(&frame, kernel->number) < 0 ||
               wire_send(kernel->driver, &frame, clock_deadline_after_ms(INTERRUPT_SEND_MS)) < 0) {
        (void)err_set(err, ERR_CONFLICT, errno, "the kernel does not listen");
    } else {
        /* The frame first: the driver takes a signal without one for an older cell's. */
        result = box_signal(kernel->box, SIGINT, false, err);
    }
    (void)pthread_mutex_unlock(&kernel->lock);
    return result;
}

void kernel_close(struct kernel *kernel, struct box_outcome *ret_outcome)
{
    struct box_io io = { .deadline = clock_deadline_after_ms(POLITE_MS), .peer_fd = -1 };

    if (kernel->alive && shutdown(kernel->driver, SHUT_RDWR) == 0) {
        (void)box_pump(kernel->box, &io);
    }
    kernel_kill(kernel, ret_outcome);
}

void kernel_kill(struct kernel *kernel, struct box_outcome *ret_outcome)
{
    box_end(kernel->box, NULL, ret_outcome);
    kernel_release(kernel);
}

const char *kernel_interpreter(const struct kernel *kernel)
{
    return kernel->interpreter;
}

struct box *kernel_box(struct kernel *kernel)
{
    return kernel->box;
}

uint32_t kernel_cells(const struct kernel *kernel)
{
    return kernel->number;
}
