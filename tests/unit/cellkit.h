/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cellkit: real boxes with the drivers in them, for unit tests. Setup and teardown of a group:
 * cmocka_run_group_tests(tests, cellkit_begin, cellkit_end). As an ordinary user, like boxkit.
 */
#ifndef KERND_TESTS_UNIT_CELLKIT_H
#define KERND_TESTS_UNIT_CELLKIT_H

#include "lib/cell/cell.h"
#include "lib/cell/kernel.h"

int cellkit_begin(void **state);
int cellkit_end(void **state);

/* The factory of these boxes. */
struct boxes *cellkit_factory(void);

/* A box that waits, with a driver socket; fails the test when it does not start. */
struct box *cellkit_box(const struct box_limits *limits);

/* What came of a cell. Freed by cellkit_done. */
struct cellkit_result {
    enum box_stop stop;
    struct box_outcome outcome; /* of a one-shot cell */
    struct kernel_reply reply;  /* of a kernel's cell */
    struct box_io io;
    struct buf out;
    struct buf err;
    struct cell_results results;
};

/* Empty, with a time limit in seconds. */
void cellkit_prepare(struct cellkit_result *result, double timeout_s);
void cellkit_done(struct cellkit_result *result);

/* One-shot: start, run, end. */
void cellkit_once(enum cell_language language, const char *code, struct cellkit_result *result);

/* Printed text, "" when none; text/plain of result i, "" when there is none. */
const char *cellkit_out(const struct cellkit_result *result);
const char *cellkit_err(const struct cellkit_result *result);
const char *cellkit_text(const struct cellkit_result *result, size_t i);

struct kernel *cellkit_kernel(enum cell_language language, const struct box_limits *limits);

/* Runs a cell with this time limit; fails the test when the kernel was dead before. */
void cellkit_run(struct kernel *kernel, const char *code, double timeout_s,
                 struct cellkit_result *result);

/* Runs code that has to end well and print exactly this. */
void cellkit_expect(struct kernel *kernel, const char *code, const char *out);

#endif
