/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell: source text in a language, run once in a fresh box. Kernels are in kernel.h.
 *
 * python runs driver.py, which sends rich results while it runs the code as a plain script would
 * run; node runs driver.js, which evaluates it as `node -e` would; bash runs it from a read-only
 * file. Code is never in an argument list.
 */
#ifndef KERND_CELL_CELL_H
#define KERND_CELL_CELL_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/strv.h"
#include "lib/box/box.h"

enum cell_language { CELL_PYTHON, CELL_BASH, CELL_NODE };

#define CELL_RESULTS_MAX 1000
#define CELL_RESULTS_BYTES_MAX ((size_t)64 * 1024 * 1024)
/* A text/plain is shortened above this many bytes, or above the caller's output cap if smaller. */
#define CELL_TEXT_MAX ((size_t)1024 * 1024)

/* What a driver is booted with. Borrowed during the call. */
struct cell_boot {
    enum cell_language language;
    const struct strv *env;
    const struct strv *preload; /* names of python modules to import; those that can't be are not */
    int64_t deadline;
    struct cancel *cancel;
};

/* Rich results in the order they came, each an encoded bundle that bundle_decode accepted. */
struct cell_results {
    struct buf *items;
    size_t count;
    size_t bytes;
    bool truncated; /* some were dropped (count, bytes, a broken driver) or shortened */
};

#define CELL_RESULTS_INIT ((struct cell_results){ 0 })

void cell_results_done(struct cell_results *results);

/* What a caller asks for. Borrowed during the call. */
struct cell_code {
    enum cell_language language;
    const char *code; /* UTF-8 */
    size_t code_size;
    const struct strv *env;       /* "K=V", may be NULL */
    const char *cwd;              /* absolute path in the box; NULL: /workspace */
    bool live;                    /* python: stdout leaves at each line end, not in blocks */
    struct cell_results *results; /* where rich results are added */
    void (*up)(void *context);    /* may be NULL: the interpreter is up, as far as can be known */
    void *context;
};

/*
 * Checks, keeps (within the caps) and emits (SINK_RESULT) one bundle as a driver sent it. 0, or -1
 * (err INTERNAL) when it is malformed.
 */
int cell_results_add(struct cell_results *results, struct sink *sink, const char *data, size_t size,
                     struct err *err);

/*
 * A box whose driver is up and waits for its one cell: what a spare is. The driver ran nobody's
 * code before.
 */
struct cell_booted;

/*
 * Starts the driver of a language that has one in a box that waits. 0, or -1: the box is still the
 * caller's, to be ended (BOX_START_FAILED, DEADLINE, CANCELLED).
 */
int cell_boot(struct box *box, const struct cell_boot *boot, struct cell_booted **ret_booted,
              struct err *err);

/*
 * As cell_boot for python in a template (box_spec.fork_workspaces): what it imports is there in all
 * its boxes. What it is booted with can run no cell. -1 also when it must not be forked of.
 */
int cell_boot_template(struct box *box, const struct cell_boot *boot,
                       struct cell_booted **ret_booted, struct err *err);

/*
 * As cell_boot in a box that was just forked (box_fork): its driver is up but for its first word.
 * With box_spec.prepares it first sets boot->env, in which PYTHONPATH counts as at a start, and
 * imports boot->preload; these are not looked at otherwise.
 */
int cell_boot_forked(struct box *box, const struct cell_boot *boot, bool prepares,
                     struct cell_booted **ret_booted, struct err *err);

/*
 * As cell_run_once in a booted box: code->env holds only what differs from the environment it was
 * booted with, code->cwd must be NULL. 0, or -1 when the cell could not even be handed over: then
 * it did not run, and another box may take it.
 */
int cell_run_booted(struct cell_booted *booted, const struct cell_code *code, struct box_io *io,
                    enum box_stop *ret_stop, struct err *err);

/* Frees it, and not its box. */
void cell_unboot(struct cell_booted *booted);

/* Must the box of this language be made with a driver socket (box_spec.driver)? */
bool cell_needs_driver(enum cell_language language);

/*
 * Starts the code in a box that waits, and runs it to its end: box_begin, the driver's hello and
 * request, box_pump. io is filled in by the caller but for its peer fields. A driver that can not
 * start, dies or misbehaves is the program's own affair: its exit (127 where the interpreter is
 * missing) is in the outcome that box_end tells. 0 and why the pump stopped, or -1 when the box
 * failed (errors of box_begin; IO).
 */
int cell_run_once(struct box *box, const struct cell_code *code, struct box_io *io,
                  enum box_stop *ret_stop, struct err *err);

#endif
