/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ends: the other ends of a box's pipes and what else its launcher gets, until they are handed
 * over.
 */
#ifndef KERND_BOX_ENDS_H
#define KERND_BOX_ENDS_H

#include "lib/base/buf.h"
#include "lib/box/box_internal.h"
#include "lib/box/init_wire.h"
#include "lib/box/seccomp.h"

struct ends {
    int program[INIT_WIRE_STREAMS]; /* its stdin, stdout and stderr */
    int null;                       /* the launcher's own stdin, of an engine with images */
    int report;                     /* where the launcher tells at the end, if it does */
    int filters[SECCOMP_PROGRAMS];
};

#define ENDS_INIT \
    ((struct ends){ .program = { -1, -1, -1 }, .null = -1, .report = -1, .filters = { -1, -1 } })
#define ENDS_LAUNCHER_MAX (INIT_WIRE_STREAMS + SECCOMP_PROGRAMS)
/* The launcher's own number of ends.report. */
#define ENDS_REPORT 3

/* Makes all that the box's engine needs, and the box's own ends. 0 or -1 IO. */
int ends_make(struct box *box, struct ends *ret_ends, struct err *err);

/* What become the launcher's descriptors 0, 1, 2, ...; how many. */
size_t ends_of_launcher(const struct box *box, const struct ends *ends, int *ret_fds);

/* Takes what the launcher has said since; its pipe must never fill up. */
void ends_hear_words(struct box *box, struct buf *words);

/* What the launcher told; its process is gone. Notes how the memory cap stood. */
void ends_hear_report(struct box *box);

void ends_close(struct ends *ends);

#endif
