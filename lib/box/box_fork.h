/* SPDX-License-Identifier: Apache-2.0 */
/*
 * box_fork: what box_start does for templates and for the boxes they make; for lib/box alone.
 */
#ifndef KERND_BOX_BOX_FORK_H
#define KERND_BOX_BOX_FORK_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct box;

/* Puts what the template will need into its directory: the filter. 0 or -1 IO. */
int box_fork_prepare(struct box *template, struct err *err);

/* BOX_START_FAILED with what the template, or the box's first process, wrote. Returns -1. */
int box_fork_explain(const struct buf *words, struct err *err);

#endif
