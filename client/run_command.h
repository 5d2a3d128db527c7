/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_command: `kernd run` and `kernd code`.
 */
#ifndef KERND_CLIENT_RUN_COMMAND_H
#define KERND_CLIENT_RUN_COMMAND_H

#include "client/flags.h"

/* The program's exit code; COMMAND_FAILED: kernd's own failure. */
int run_command_run(const struct flags *options);
int run_command_code(const struct flags *options);

#endif
