/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines: several texts as one, for a column of the store. Pure; any thread.
 */
#ifndef KERND_SANDBOX_LINES_H
#define KERND_SANDBOX_LINES_H

#include "lib/base/strv.h"

/* A line each, with line ends and backslashes escaped: to be freed; NULL when there are none. */
char *lines_join(const struct strv *texts);

/* Appends what lines_join was given; NULL: nothing. */
void lines_split(const char *joined, struct strv *texts);

#endif
