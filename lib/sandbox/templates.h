/* SPDX-License-Identifier: Apache-2.0 */
/*
 * templates: warm interpreters that boxes are forked of (box_fork). For lib/sandbox; any thread.
 *
 * A template is booted when a call could have used one and there is none, once that call, which
 * boots a box of its own, and the spare for the next one are through. Templates are told apart by
 * what can't be changed in an interpreter that runs: the variables that follow from `cpus`, and the
 * modules of `preload`. Those are imported from the host's /usr alone: a template reaches more than
 * any box, so packages of environments and setups, whoever wrote them, have no place in it. One is
 * replaced after so many boxes or minutes, since boxes of one share their address layout and hash
 * seed; those that it made live on without it. One that fails is replaced too, and meanwhile boxes
 * are booted, as where templates can't be had at all.
 */
#ifndef KERND_SANDBOX_TEMPLATES_H
#define KERND_SANDBOX_TEMPLATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/sandbox/boxing.h"

struct sandbox;
struct spare;
struct templates;

/*
 * enabled false: there are none, and nothing is forked; so it is where none can be, or where one
 * would take too much of the memory of all boxes, which templates_stats tells. NULL with err.
 */
struct templates *templates_new(struct sandbox *sandbox, bool enabled, struct err *err);

/* Ends all. Every box must have ended. NULL is fine. */
void templates_free(struct templates *templates);

/*
 * Makes a box for this request with its driver up, and writes box, booted, env and change of the
 * spare. False: the caller has to boot one, nothing of the spare is set then.
 */
bool templates_fork(struct templates *templates, const struct boxing *boxing, struct spare *spare);

/*
 * Boots what was ordered since. For who has just done what is on the path of calls: a boot is not,
 * and takes a processor for longer than a call does. Cheap.
 */
void templates_start(struct templates *templates);

/*
 * So many bytes are missing for a call that waits: as few templates end as do, or none where all
 * would not do. Those without boxes go first, then those that were not used for long; for a while
 * there are no others. Blocks until what has no boxes has ended.
 */
void templates_yield(struct templates *templates, uint64_t missing);

/* The janitor's look: ends what is unused or done with, boots what was ordered a second ago. */
void templates_age(struct templates *templates, int64_t now_ns);

struct templates_stats {
    bool enabled;
    size_t up;      /* that take orders */
    uint64_t forks; /* boxes made */
    char why[160];  /* why there are none, or the last one failed; "" */
};
void templates_stats(struct templates *templates, struct templates_stats *ret_stats);

#endif
