/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution_command: `kernd ps`, `kernd logs` and `kernd kill`. Each gives the process's exit
 * status.
 */
#ifndef KERND_CLIENT_EXECUTION_COMMAND_H
#define KERND_CLIENT_EXECUTION_COMMAND_H

#include "client/flags.h"

int execution_command_list(const struct flags *options);
int execution_command_logs(const struct flags *options);
int execution_command_kill(const struct flags *options);

#endif
