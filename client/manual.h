/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manual: what --help prints, from the table of commands.
 */
#ifndef KERND_CLIENT_MANUAL_H
#define KERND_CLIENT_MANUAL_H

#include <stdio.h>

#include "client/command.h"

/* Of one command. */
void manual_command(const struct command *command, FILE *out);

/* All commands, a line each. */
void manual_overview(FILE *out);

/*
 * For programs that check manual pages and completions: tab-separated lines
 *     command NAME OPERANDS SUMMARY
 *     option  NAME --OPTION -LETTER VALUE HELP     (empty where there is none)
 *     settings NAME                                (the command takes each setting as an option)
 *     setting KEY VALUE RANGE HELP
 */
void manual_list(FILE *out);

#endif
