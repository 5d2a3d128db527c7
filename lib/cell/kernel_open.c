/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: start the driver of a kernel in a box that waits.
 * Owns: the box, once the driver is up.
 * Threads: one at a time.
 * May include: box, base.
 */
#include <errno.h>
#include <sys/eventfd.h>

#include "lib/base/alloc.h"
#include "lib/cell/kernel_internal.h"
#include "lib/cell/program.h"

struct kernel *kernel_open_make(struct box *box, struct err *err)
{
    struct kernel *kernel = alloc_zero(1, sizeof(*kernel));

    kernel->box = box;
    kernel->wire = WIRE_INIT;
    (void)pthread_mutex_init(&kernel->lock, NULL);
    kernel->always_readable = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (kernel->always_readable < 0) {
        (void)err_set(err, ERR_IO, errno, "no descriptor for a kernel: %s", err_errno_text(errno));
        kernel_release(kernel);
        return NULL;
    }
    return kernel;
}

static int on_ready(void *peer)
{
    struct kernel *kernel = peer;
    struct wire_frame frame;
    enum wire_read read = wire_read(&kernel->wire, kernel->driver);
    int got = wire_next(&kernel->wire, &frame, NULL);

    if (got == 1) {
        return wire_parse_ready(&frame, kernel->interpreter, NULL) < 0 ? -1 : 1;
    }
    return got < 0 || read == WIRE_READ_END ? -1 : 0;
}

static int begin(struct box *box, const struct kernel_config *config, struct err *err)
{
    CLEANUP_STRV struct strv argv = { 0 };
    CLEANUP_STRV struct strv env = { 0 };
    struct box_program program = { .argv = &argv, .env = &env, .cwd = config->cwd };

    program_kernel(config->language, config->env, &argv, &env);
    return box_begin(box, &program, err);
}

static int await_ready(struct kernel *kernel, const struct kernel_config *config, struct err *err)
{
    struct box_io io = {
        .deadline = config->deadline,
        .cancel = config->cancel,
        .peer_fd = kernel->driver,
        .peer_ready = on_ready,
        .peer = kernel,
    };

    switch (box_pump(kernel->box, &io)) {
    case BOX_STOP_PEER_DONE:
        return 0;
    case BOX_STOP_DEADLINE:
        return err_set(err, ERR_DEADLINE, 0, "the interpreter was not ready in time");
    case BOX_STOP_CANCELLED:
        return err_set(err, ERR_CANCELLED, 0, "cancelled while the interpreter started");
    case BOX_STOP_EXITED:
    case BOX_STOP_PEER_LOST:
    case BOX_STOP_OOM:
    case BOX_STOP_DISK:
    case BOX_STOP_LOST:
        break;
    }
    return err_set(err, ERR_BOX_START_FAILED, 0, "the interpreter ended before it was ready");
}

int kernel_open(struct box *box, const struct kernel_config *config, struct kernel **ret_kernel,
                struct err *err)
{
    struct kernel *kernel = kernel_open_make(box, err);

    if (kernel == NULL) {
        return -1;
    }
    if (begin(box, config, err) < 0) {
        kernel_release(kernel);
        return -1;
    }
    kernel->driver = box_driver(box, config->deadline, config->cancel, err);
    if (kernel->driver < 0 || await_ready(kernel, config, err) < 0) {
        kernel_release(kernel);
        return -1;
    }
    kernel->alive = true;
    *ret_kernel = kernel;
    return 0;
}
