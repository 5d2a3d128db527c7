/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repl: `kernd repl`.
 */
#ifndef KERND_CLIENT_REPL_H
#define KERND_CLIENT_REPL_H

#include "client/flags.h"

/* The process's exit status. */
int repl_run(const struct flags *options);

#endif
