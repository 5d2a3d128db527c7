/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: run code once in a box: which program, which environment, and what its driver says.
 * Owns: the results of the run until the caller takes them.
 * Threads: the one that owns the box.
 * May include: box, base.
 */
#include "lib/cell/cell.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/cell/booted.h"
#include "lib/cell/bundle.h"
#include "lib/cell/program.h"
#include "lib/cell/wire.h"

/* What a driver may say on its way up, to be told when it fails. */
#define WORDS_MAX ((size_t)200)
#define CELL_FRAME_MAX ((size_t)1024 * 1024)

/* The conversation with the driver of a one-shot cell. */
struct once {
    const struct cell_code *code;
    struct box_io *io;
    struct wire wire;
    bool ready;
};

void cell_results_done(struct cell_results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        buf_done(&results->items[i]);
    }
    free(results->items);
    *results = CELL_RESULTS_INIT;
}

static void keep(struct cell_results *results, const char *data, size_t size)
{
    struct buf item = BUF_INIT(size);

    (void)buf_append(&item, data, size);
    results->items = alloc_resize(results->items, results->count + 1, sizeof(results->items[0]));
    results->items[results->count++] = item;
    results->bytes += size;
}

int cell_results_add(struct cell_results *results, struct sink *sink, const char *data, size_t size,
                     struct err *err)
{
    struct sink_event event = { .kind = SINK_RESULT, .data = data, .size = size };
    struct bundle bundle;

    if (bundle_decode(data, size, &bundle, err) < 0) {
        return -1;
    }
    if (bundle.shortened) {
        results->truncated = true;
    }
    if (results->count == CELL_RESULTS_MAX || size > CELL_RESULTS_BYTES_MAX - results->bytes) {
        results->truncated = true;
        return 0;
    }
    event.value = results->count;
    keep(results, data, size);
    sink_emit(sink, &event);
    return 0;
}

bool cell_needs_driver(enum cell_language language)
{
    return language == CELL_PYTHON || language == CELL_NODE;
}

/* Sends the one request. The driver reads it at once, or is no driver any more. */
static int send_request(struct once *once, char *const *environment)
{
    CLEANUP_FREE char *name =
        alloc_printf("/run/kernd/%s", program_code_name(once->code->language));
    CLEANUP_BUF struct buf frame = BUF_INIT(CELL_FRAME_MAX);
    size_t text_max = once->io->max_output < CELL_TEXT_MAX ? once->io->max_output : CELL_TEXT_MAX;
    struct wire_cell cell = {
        .mode = WIRE_ONCE,
        .live = once->code->live,
        .text_max = (uint32_t)text_max,
        .number = 1,
        .name = name,
        .environment = environment,
    };

    if (wire_put_cell(&frame, &cell) < 0) {
        return -1;
    }
    return wire_send(once->io->peer_fd, &frame, once->io->deadline);
}

static int on_frame(struct once *once, const struct wire_frame *frame, struct err *err)
{
    char interpreter[WIRE_INTERPRETER_SIZE];

    if (!once->ready) {
        once->ready = true;
        if (wire_parse_ready(frame, interpreter, err) < 0) {
            return -1;
        }
        return send_request(once, NULL);
    }
    if (frame->type != WIRE_RESULT) {
        return err_set(err, ERR_INTERNAL, 0, "protocol: a frame that has no place in a run");
    }
    return cell_results_add(once->code->results, once->io->sink, frame->data, frame->size, err);
}

/*
 * The driver is readable. Its end, or nonsense from it, ends the conversation and not the program:
 * the code may have closed the descriptor, or be playing with it.
 */
static int on_peer(void *peer)
{
    struct once *once = peer;
    struct wire_frame frame;
    enum wire_read read = wire_read(&once->wire, once->io->peer_fd);
    int got = 0;

    while ((got = wire_next(&once->wire, &frame, NULL)) == 1) {
        if (on_frame(once, &frame, NULL) < 0) {
            got = -1;
            break;
        }
    }
    if (got < 0) {
        once->code->results->truncated = true;
    }
    if (got < 0 || read == WIRE_READ_END) {
        once->io->peer_fd = -1;
    }
    return 0;
}

static int begin(struct box *box, const struct cell_code *code, const struct strv *preload,
                 struct err *err)
{
    CLEANUP_STRV struct strv argv = { 0 };
    CLEANUP_STRV struct strv env = { 0 };
    struct box_program program = {
        .argv = &argv,
        .env = &env,
        .cwd = code->cwd,
        .code = code->code,
        .code_size = code->code_size,
        .code_name = program_code_name(code->language),
        .driver_fd = program_driver_fd(code->language),
    };

    program_once(code->language, code->env, &argv, &env);
    program_preload(code->language, preload, &argv);
    return box_begin(box, &program, err);
}

/* The rest of a run: pumps until the program ends, with the driver's connection watched. */
static enum box_stop pump(struct box *box, struct once *once)
{
    enum box_stop stop;

    if (once->io->steps != NULL) {
        steps_mark(once->io->steps, STEP_SEND);
    }
    once->io->peer_ready = on_peer;
    once->io->peer = once;
    stop = box_pump(box, once->io);
    once->io->peer_fd = -1;
    once->io->peer_ready = NULL;
    once->io->peer = NULL;
    return stop;
}

int cell_run_once(struct box *box, const struct cell_code *code, struct box_io *io,
                  enum box_stop *ret_stop, struct err *err)
{
    struct once once = { .code = code, .io = io, .wire = WIRE_INIT };

    if (begin(box, code, NULL, err) < 0) {
        return -1;
    }
    io->peer_fd = -1;
    if (cell_needs_driver(code->language)) {
        /* It failed to come: it ended (the pump tells how), or time or patience did. */
        io->peer_fd = box_driver(box, io->deadline, io->cancel, NULL);
    }
    if (code->up != NULL) {
        code->up(code->context);
    }
    *ret_stop = pump(box, &once);
    wire_done(&once.wire);
    return 0;
}

/* ---- booted ahead ---- */

/* The driver's first word: 1 said, 0 not yet, -1 nonsense or its end. */
static int on_ready(void *peer)
{
    struct cell_booted *booted = peer;
    struct wire_frame frame;
    enum wire_read read = wire_read(&booted->wire, booted->driver);
    int got = wire_next(&booted->wire, &frame, NULL);

    if (got == 1) {
        return wire_parse_ready(&frame, booted->interpreter, NULL) < 0 ? -1 : 1;
    }
    return got < 0 || read == WIRE_READ_END ? -1 : 0;
}

static int await_ready(struct cell_booted *booted, const struct cell_boot *boot, struct err *err)
{
    CLEANUP_BUF struct buf words = BUF_INIT(WORDS_MAX);
    struct box_io io = {
        .max_output = WORDS_MAX,
        .capture_stderr = &words,
        .deadline = boot->deadline,
        .cancel = boot->cancel,
        .keep_stdin = true,
        .peer_fd = booted->driver,
        .peer_ready = on_ready,
        .peer = booted,
    };

    if (box_pump(booted->box, &io) != BOX_STOP_PEER_DONE) {
        return err_set(err, ERR_BOX_START_FAILED, 0, "the driver did not come up: %.*s",
                       (int)words.size, words.size == 0 ? "" : words.data);
    }
    return 0;
}

static int prepare(int driver, const struct cell_boot *boot, struct err *err)
{
    CLEANUP_BUF struct buf frame = BUF_INIT(CELL_FRAME_MAX);

    if (wire_put_prepare(&frame, boot->env == NULL ? NULL : strv_argv(boot->env),
                         boot->preload == NULL ? NULL : strv_argv(boot->preload)) < 0 ||
        wire_send(driver, &frame, boot->deadline) < 0) {
        return err_set(err, ERR_BOX_START_FAILED, errno, "the driver can't be prepared");
    }
    return 0;
}

int cell_boot_forked(struct box *box, const struct cell_boot *boot, bool prepares,
                     struct cell_booted **ret_booted, struct err *err)
{
    int driver = box_driver(box, boot->deadline, boot->cancel, err);
    struct cell_booted *booted;

    if (driver < 0 || (prepares && prepare(driver, boot, err) < 0)) {
        return -1;
    }
    booted = alloc_zero(1, sizeof(*booted));
    booted->box = box;
    booted->driver = driver;
    booted->wire = WIRE_INIT;
    if (await_ready(booted, boot, err) < 0) {
        cell_unboot(booted);
        return -1;
    }
    *ret_booted = booted;
    return 0;
}

int cell_boot(struct box *box, const struct cell_boot *boot, struct cell_booted **ret_booted,
              struct err *err)
{
    const struct cell_code nothing = { .language = boot->language, .env = boot->env };

    return begin(box, &nothing, boot->preload, err) < 0
               ? -1
               : cell_boot_forked(box, boot, false, ret_booted, err);
}

int cell_boot_template(struct box *box, const struct cell_boot *boot,
                       struct cell_booted **ret_booted, struct err *err)
{
    CLEANUP_STRV struct strv argv = { 0 };
    CLEANUP_STRV struct strv env = { 0 };
    const struct box_program program = { .argv = &argv, .env = &env };

    program_template(boot->preload, boot->env, &argv, &env);
    return box_begin(box, &program, err) < 0 ? -1
                                             : cell_boot_forked(box, boot, false, ret_booted, err);
}

int cell_run_booted(struct cell_booted *booted, const struct cell_code *code, struct box_io *io,
                    enum box_stop *ret_stop, struct err *err)
{
    struct once once = { .code = code, .io = io, .wire = booted->wire, .ready = true };

    if (box_put_code(booted->box, program_code_name(code->language), code->code, code->code_size,
                     err) < 0) {
        return -1;
    }
    booted->wire = WIRE_INIT;
    io->peer_fd = booted->driver;
    if (send_request(&once, code->env == NULL ? NULL : strv_argv(code->env)) < 0) {
        wire_done(&once.wire);
        return err_set(err, ERR_IO, errno, "the spare's driver is gone");
    }
    *ret_stop = pump(booted->box, &once);
    wire_done(&once.wire);
    return 0;
}

void cell_unboot(struct cell_booted *booted)
{
    if (booted != NULL) {
        wire_done(&booted->wire);
        free(booted);
    }
}
