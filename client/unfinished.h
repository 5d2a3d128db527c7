/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unfinished: does code that is typed line by line go on? Pure.
 */
#ifndef KERND_CLIENT_UNFINISHED_H
#define KERND_CLIENT_UNFINISHED_H

#include <stdbool.h>

/*
 * language: "python", "bash" or "node". True: brackets, quotes or a block are still open, or the
 * last line ends with a backslash. A python block ends with an empty line, as in its own
 * interpreter. A good guess, not a parser: what it takes for finished the kernel refuses, and what
 * it takes for unfinished an interrupt drops.
 */
bool unfinished_code(const char *language, const char *code);

#endif
