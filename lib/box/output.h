/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output: takes what a program wrote from the pipes: kept and told up to the cap, counted and
 * dropped beyond it, so that a flood never blocks and never costs memory.
 */
#ifndef KERND_BOX_OUTPUT_H
#define KERND_BOX_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/box/box_internal.h"

/* One reading. The number of bytes, 0 when there is nothing now or no more at all. io may be NULL.
 */
uint64_t output_take(struct box *box, struct box_io *io, enum output_stream which);

/*
 * One reading that is set aside for the next output_take: before a driver has connected nobody
 * pumps, and a program that says much must not block. At most 1 MiB a stream, then it waits.
 */
void output_hold(struct box *box, enum output_stream which);
/* May more be set aside? */
bool output_may_hold(const struct box *box, enum output_stream which);

/* Reads both pipes until they are empty, but at most about max bytes each. */
void output_drain(struct box *box, struct box_io *io, uint64_t max);

#endif
