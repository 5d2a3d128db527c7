/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_command: `kernd version` and `kernd api`. Each gives the process's exit status.
 */
#ifndef KERND_CLIENT_SERVER_COMMAND_H
#define KERND_CLIENT_SERVER_COMMAND_H

#include "client/flags.h"

int server_command_version(const struct flags *options);
int server_command_api(const struct flags *options);

#endif
