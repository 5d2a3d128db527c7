/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: from the argument vector to what is to be done.
 */
#ifndef KERND_SERVER_CLI_H
#define KERND_SERVER_CLI_H

#include <stdio.h>

#include "lib/base/err.h"
#include "server/config.h"

enum cli_command { CLI_HELP, CLI_VERSION, CLI_SYSCALLS, CLI_SERVE };

/*
 * Parses everything after the program's name; the options of serve as settings_read. Only reads the
 * configuration file; no other effect. 0, or -1 with err BAD_VALUE (wrong usage, or a wrong
 * setting) or IO and a remedy.
 */
int cli_parse(int count, char *const *arguments, struct config *config,
              enum cli_command *ret_command, struct err *err);

void cli_help(FILE *out);

/* Prints what becomes of each system call in a box. The exit status. */
int cli_syscalls(void);

/* Parses, does it, and gives the process's exit status: 0, 1 (it failed) or 2 (wrong usage). */
int cli_main(int count, char *const *arguments);

#endif
