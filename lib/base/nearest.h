/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest: which known word somebody most likely meant. Pure; any thread.
 */
#ifndef KERND_BASE_NEAREST_H
#define KERND_BASE_NEAREST_H

#include <stddef.h>

/* Longer words are nobody's slip of the finger. */
#define NEAREST_WORD_MAX 63

/*
 * The fewest insertions, deletions and replacements of one character that make b out of a
 * (Levenshtein distance); '-' and '_' are the same. Words above NEAREST_WORD_MAX are as far apart
 * as can be.
 */
size_t nearest_distance(const char *a, const char *b);

/*
 * Is a distance small enough to ask "did you mean"? A third of the word, at least one.
 */
int nearest_is_close(const char *word, size_t distance);

#endif
