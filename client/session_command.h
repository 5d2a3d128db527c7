/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_command: `kernd session …`. Each gives the process's exit status.
 */
#ifndef KERND_CLIENT_SESSION_COMMAND_H
#define KERND_CLIENT_SESSION_COMMAND_H

#include "client/flags.h"

int session_command_create(const struct flags *options);
int session_command_list(const struct flags *options);
int session_command_show(const struct flags *options);
int session_command_remove(const struct flags *options);
int session_command_fork(const struct flags *options);

#endif
