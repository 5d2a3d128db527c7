/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glob: matches names against shell patterns, in time bounded by pattern length times name length
 * (squared for paths with **). Pure functions, any thread; bytes, no locale.
 *
 *     *      any bytes of one component        **     (a whole component) any number of components
 *     ?      one byte of a component           [a-z] [!a-z]   one byte of a set
 *     \x     x itself
 *
 * A leading dot is nothing special. A '[' without its ']' is an ordinary byte.
 */
#ifndef KERND_WORK_GLOB_H
#define KERND_WORK_GLOB_H

#include <stdbool.h>

/*
 * A pattern with a slash is matched against the whole path, one without a slash against the last
 * component alone, so that "*.csv" finds such files at any depth.
 */
bool glob_match(const char *pattern, const char *path);

#endif
