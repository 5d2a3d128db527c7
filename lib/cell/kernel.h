/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel: a warm interpreter in a box of its own that runs cells one after the other and keeps its
 * variables between them.
 *
 *     box_start (spec.driver)     by the caller
 *     kernel_open                 the driver is up; the kernel owns the box
 *     kernel_run                  one cell; serial: one call at a time
 *     kernel_interrupt            any thread, while a cell runs
 *     kernel_close                polite, then by force; tells the box's outcome
 *
 * Between cells nobody reads the kernel's output: a thread or child that writes more than a pipe
 * holds waits for the next cell, which delivers what it wrote apart from its own output.
 *
 * All but kernel_interrupt are for one thread at a time, and the thread that started the box must
 * live as long as the box. A dead kernel (a reply with alive false, or KERNEL_DEAD) can only be
 * closed; why it died is in the outcome, by evidence.
 */
#ifndef KERND_CELL_KERNEL_H
#define KERND_CELL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/cancel.h"
#include "lib/base/err.h"
#include "lib/base/strv.h"
#include "lib/box/box.h"
#include "lib/cell/cell.h"

struct kernel;

/* What a kernel starts with. Borrowed during the call. */
struct kernel_config {
    enum cell_language language;
    const struct strv *env; /* "K=V", may be NULL */
    const char *cwd;        /* NULL: /workspace */
    int64_t deadline;       /* for the driver's word (clock.h) */
    struct cancel *cancel;  /* may be NULL */
};

/*
 * Starts the driver in a box that waits (made with spec.driver) and waits for its word. 0: the
 * kernel owns the box. -1: the box is still the caller's, whose box_end tells what happened;
 * err is BOX_START_FAILED (it ended, or spoke nonsense), DEADLINE or CANCELLED, or as box_begin.
 */
int kernel_open(struct box *box, const struct kernel_config *config, struct kernel **ret_kernel,
                struct err *err);

/*
 * As kernel_open for a box that was booted ahead with the driver of python (cell_boot): takes over
 * both. change: variables to set beyond what it was booted with, may be NULL. 0, or -1 IO: both are
 * still the caller's.
 */
int kernel_adopt(struct cell_booted *booted, const struct strv *change, struct kernel **ret_kernel,
                 struct err *err);

/* One cell, borrowed during the call. io as for box_pump but for its peer fields and stdin; its
 * deadline counts for this cell alone. */
struct kernel_cell {
    const char *code; /* UTF-8 */
    size_t code_size;
    struct box_io *io;
    struct cell_results *results;
    const char *stdin_data; /* what the cell reads; NULL: end of file at once */
    size_t stdin_size;
    bool kill; /* at the deadline, or when cancelled, end the kernel instead of the cell */
};

/* After an interrupt a cell gets this long to end before its kernel is killed. */
#define KERNEL_GRACE_MS 2000

struct kernel_reply {
    bool alive; /* the kernel takes another cell */
    bool has_exit_code;
    int exit_code;    /* 0 to 255, as a plain interpreter would have ended */
    bool interrupted; /* the cell ended by an interrupt that it did not handle */
    /*
     * PEER_DONE: the cell ended by itself. DEADLINE, CANCELLED: it was interrupted (alive), or had
     * to be killed or died of that (not alive). PEER_LOST: the driver closed its connection or
     * spoke nonsense. EXITED, OOM, DISK, LOST: the kernel died of that.
     */
    enum box_stop stop;
    bool nonsense; /* for PEER_LOST: the driver broke the protocol */
    /* What was written after the end of the cell before (threads, children), delivered once. */
    struct buf late_stdout;
    struct buf late_stderr;
};

#define KERNEL_LATE_MAX ((size_t)1024 * 1024) /* bytes kept of each; the rest is dropped */

void kernel_reply_done(struct kernel_reply *reply);

/*
 * Runs one cell to its end. 0 and the reply (the caller frees its buffers), or -1: KERNEL_DEAD when
 * the kernel was dead before the cell began (the cell did not run), BAD_VALUE (code over 64 MiB).
 */
int kernel_run(struct kernel *kernel, const struct kernel_cell *cell,
               struct kernel_reply *ret_reply, struct err *err);

/*
 * Raises an interrupt (KeyboardInterrupt in python) in the cell that runs now, in no other. Does
 * not wait for its effect. 0, or -1 CONFLICT: no cell runs. Any thread.
 */
int kernel_interrupt(struct kernel *kernel, struct err *err);

/*
 * Ends an idle or dead kernel: asks the driver to end (atexit handlers run, at most 150 ms), then
 * kills what is left. Frees the kernel and the box.
 */
void kernel_close(struct kernel *kernel, struct box_outcome *ret_outcome);

/* The same by force, for one that is dead or must not live on. */
void kernel_kill(struct kernel *kernel, struct box_outcome *ret_outcome);

/* "python 3.11.2", as the driver says: printable, at most 63 bytes. */
const char *kernel_interpreter(const struct kernel *kernel);
struct box *kernel_box(struct kernel *kernel);      /* borrowed: for its id, pid and limits */
uint32_t kernel_cells(const struct kernel *kernel); /* begun so far */

#endif
