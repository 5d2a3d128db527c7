/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completion: names that a kernel knows. For one thread.
 */
#ifndef KERND_CLIENT_COMPLETION_H
#define KERND_CLIENT_COMPLETION_H

#include "client/ask.h"
#include "lib/base/strv.h"

/*
 * Asks an idle kernel, by a cell that keeps nothing, what the word at the end of a line may become.
 * cells: the path of its cells. Nothing is found where the kernel fails or takes longer than 2 s.
 */
void completion_find(struct ask *ask, const char *cells, const char *language, const char *line,
                     struct strv *out);

#endif
