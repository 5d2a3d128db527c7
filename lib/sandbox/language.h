/* SPDX-License-Identifier: Apache-2.0 */
/*
 * language: which interpreters the boxes of this host have, asked of the boxes themselves.
 */
#ifndef KERND_SANDBOX_LANGUAGE_H
#define KERND_SANDBOX_LANGUAGE_H

#include <stddef.h>

#include "lib/sandbox/run.h"

struct boxes;

/*
 * Runs "<interpreter> --version" in a box over the given directory and writes the version's number
 * ("3.11.2") to out, "" when there is no such interpreter. Takes a box's time; blocks. 0, or -1
 * when no box could be had: ask again later.
 */
int language_probe(struct boxes *boxes, const char *workspace, enum run_language language,
                   char *out, size_t size);

/* The version number in what an interpreter printed: first digit up to a blank or "(". Pure. */
void language_parse_version(const char *printed, char *out, size_t size);

#endif
