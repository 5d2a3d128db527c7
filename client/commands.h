/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands: from the arguments of the process to the command that they name.
 */
#ifndef KERND_CLIENT_COMMANDS_H
#define KERND_CLIENT_COMMANDS_H

#include "client/flags.h"

/* `kernd help`. The exit status. */
int commands_help(const struct flags *options);

/* All of the process: the arguments with the program's name. The exit status. */
int commands_main(int count, char *const *arguments);

#endif
