/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup: from words to a row of the table of commands.
 */
#ifndef KERND_CLIENT_LOOKUP_H
#define KERND_CLIENT_LOOKUP_H

#include "client/command.h"

/* The command with the longest name that the words begin with, NULL: none. *ret_used: its words. */
const struct command *lookup_command(int count, char *const *words, int *ret_used);

#endif
