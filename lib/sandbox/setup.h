/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup: the one step of a session that may install things: network on, a longer deadline.
 */
#ifndef KERND_SANDBOX_SETUP_H
#define KERND_SANDBOX_SETUP_H

#include "lib/base/strv.h"
#include "lib/sandbox/run.h"

struct options;

/* Where packages land and are found again, in the box. */
#define SETUP_DEPS "/workspace/.deps"
/* The same of an environment. */
#define SETUP_LAYER "/run/environment"
#define SETUP_TIMEOUT_MIN_S 120.0

/*
 * "pip install ..." and "npm install ..." (exactly these beginnings, blanks before them aside)
 * become an install into a directory of the box, the rest of the line kept; anything else is a
 * shell line as it is. Appends an argv. Pure.
 */
void setup_command(const char *text, const char *directory, struct strv *argv);

/* A fresh request that runs the command with a session's options. Its session is still to be set.
 */
struct run_request *setup_request(const char *text, const struct options *options);

#endif
