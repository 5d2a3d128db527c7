/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest: which of the known names did somebody mean? Pure; no allocation.
 */
#ifndef KERND_BASE_NEAREST_H
#define KERND_BASE_NEAREST_H

#include <stddef.h>

#define NEAREST_NAME_MAX 32 /* longer ones are not compared */

struct nearest {
    char wanted[NEAREST_NAME_MAX + 1]; /* folded: lower case, letters and digits only */
    const char *best;
    size_t distance;
};

/* What was written. */
void nearest_init(struct nearest *nearest, const char *wanted);

/* A name that exists; kept by pointer. */
void nearest_offer(struct nearest *nearest, const char *known);

/* The closest of the offered names, NULL if none is close enough to be worth a hint. */
const char *nearest_best(const struct nearest *nearest);

#endif
