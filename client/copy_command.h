/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_command: `kernd cp`.
 */
#ifndef KERND_CLIENT_COPY_COMMAND_H
#define KERND_CLIENT_COPY_COMMAND_H

#include "client/flags.h"

/* The process's exit status. */
int copy_command(const struct flags *options);

#endif
