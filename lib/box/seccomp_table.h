/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp_table: which system call does what in a box. Data only; seccomp.h turns it into programs.
 *
 * Calls that no row names are refused with ENOSYS, as if the kernel were older: programs then use
 * what they used before that call existed.
 */
#ifndef KERND_BOX_SECCOMP_TABLE_H
#define KERND_BOX_SECCOMP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum seccomp_table_action {
    SECCOMP_TABLE_ALLOW,
    SECCOMP_TABLE_ERROR, /* fails with `error`; 0: succeeds, and does nothing */
    SECCOMP_TABLE_KILL,  /* the process dies of SIGSYS */
};

enum seccomp_table_when {
    SECCOMP_TABLE_ALWAYS,
    SECCOMP_TABLE_RANGE, /* first <= argument <= last */
    SECCOMP_TABLE_BITS,  /* (argument & first) == last */
};

struct seccomp_table_row {
    const char *name;
    enum seccomp_table_action action;
    int error;
    enum seccomp_table_when when;
    unsigned argument; /* 0-5 */
    uint64_t first;
    uint64_t last;
    unsigned nonzero; /* a second argument that must not be 0 either; 0: no second condition */
    bool makes_boxes; /* a template needs it to turn a fork of itself into a box */
    const char *note; /* what the condition means, NULL: none */
};

/*
 * Two programs are loaded and the stricter verdict wins (seccomp(2)): `list` allows by name and
 * refuses the rest; `walls` lets everything pass but what must be looked at by argument. Those of
 * a forked box come to the same: a template loads its own list, once for all its forks, which
 * allows what makes boxes as well, and each of its boxes these calls' rows together with the walls.
 */
enum seccomp_table_program {
    SECCOMP_TABLE_LIST,
    SECCOMP_TABLE_WALLS,
    SECCOMP_TABLE_TEMPLATE_LIST,
    SECCOMP_TABLE_FORKED_WALLS,
};

/* Row number `index` of a program; false past the end. */
bool seccomp_table_at(enum seccomp_table_program program, size_t index,
                      struct seccomp_table_row *ret_row);

#endif
