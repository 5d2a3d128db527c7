/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp: the system call filter of boxes, as BPF programs a launcher loads (libseccomp builds
 * them from seccomp_table.h). Calls of another architecture (32-bit, x32) are killed.
 */
#ifndef KERND_BOX_SECCOMP_H
#define KERND_BOX_SECCOMP_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/box/seccomp_table.h"

#define SECCOMP_PROGRAMS 2

struct seccomp {
    int programs[SECCOMP_PROGRAMS]; /* sealed memory files, in the order to load them */
};

/* Builds both programs (some milliseconds). 0, or -1 INTERNAL. */
int seccomp_build(struct seccomp *seccomp, struct err *err);
void seccomp_done(struct seccomp *seccomp);

/*
 * A fresh read-only descriptor on program `index`, at offset 0 (launchers read theirs to the end).
 * -1 with errno.
 */
int seccomp_open(const struct seccomp *seccomp, size_t index);

/* Builds one and appends it (struct sock_filter's), for templates. 0, or -1 INTERNAL or IO. */
int seccomp_program(enum seccomp_table_program program, struct buf *out, struct err *err);

/* Appends the whole table as text, a line per row: "name<TAB>action<TAB>condition". 0 or -1. */
int seccomp_describe(struct buf *out);

#endif
