/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roster: the table of kernd's commands.
 */
#ifndef KERND_CLIENT_ROSTER_H
#define KERND_CLIENT_ROSTER_H

#include <stddef.h>

#include "client/command.h"

/* A row by its place, NULL behind the last. */
const struct command *roster_at(size_t index);

#endif
