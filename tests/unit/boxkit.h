/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boxkit: real boxes for unit tests, as an ordinary user.
 *
 * Started as root, a test program gives root up for good (production never has it). Use as the
 * setup and teardown of a group: cmocka_run_group_tests(tests, boxkit_begin, boxkit_end).
 */
#ifndef KERND_TESTS_UNIT_BOXKIT_H
#define KERND_TESTS_UNIT_BOXKIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/cancel.h"
#include "lib/base/sink.h"
#include "lib/box/box.h"
#include "lib/box/boxes.h"

#define BOXKIT_MIB (UINT64_C(1) << 20)

extern struct boxes *boxkit_boxes;
extern char boxkit_dir[64];       /* private; holds the rest */
extern char boxkit_workspace[80]; /* empty at the start of the group */
extern char boxkit_library[80];   /* with kernd-init */
extern char boxkit_runtime[80];

int boxkit_begin(void **state);
int boxkit_end(void **state);

/* What to run; zero fields take the default. */
struct boxkit_call {
    const char *script;      /* bash -c script, or: */
    const char *const *argv; /* NULL-terminated */
    const char *const *env;  /* NULL-terminated */
    const char *cwd;
    const char *code; /* becomes /run/kernd/cell.py */
    const char *stdin_data;
    size_t stdin_size;
    struct box_limits limits;
    bool network;
    double timeout_s;  /* default 60 */
    size_t max_output; /* default 1 MiB */
    struct cancel *cancel;
    struct sink *sink;
};

struct boxkit_result {
    enum box_stop stop;
    struct box_outcome outcome;
    struct box_io io;
    struct buf out;
    struct buf err;
    pid_t init_pid;
    double run_ms; /* box_begin to the end of box_pump */
    double end_ms; /* box_end */
};

/* A box that waits for its program; fails the test when it does not start. */
struct box *boxkit_start(const struct boxkit_call *call);
/* Starts call's program in it. */
void boxkit_launch(struct box *box, const struct boxkit_call *call);
/* Prepares an empty result for pumping. */
void boxkit_prepare(const struct boxkit_call *call, struct boxkit_result *result);
/* All of it: start, begin, pump, end. Frees nothing: boxkit_done. */
void boxkit_run(const struct boxkit_call *call, struct boxkit_result *result);
void boxkit_done(struct boxkit_result *result);

/* What was printed, as C strings. */
const char *boxkit_out(const struct boxkit_result *result);
const char *boxkit_err(const struct boxkit_result *result);

/* Fails the test unless the program ended by itself with this exit code and nothing is left. */
void boxkit_assert_exit(const struct boxkit_result *result, int exit_code);

/* Writes a file into boxkit_dir; its path, in static storage. */
const char *boxkit_file(const char *name, const char *text, unsigned mode);

#endif
