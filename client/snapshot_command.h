/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_command: `kernd snapshot …`. Each gives the process's exit status.
 */
#ifndef KERND_CLIENT_SNAPSHOT_COMMAND_H
#define KERND_CLIENT_SNAPSHOT_COMMAND_H

#include "client/flags.h"

int snapshot_command_create(const struct flags *options);
int snapshot_command_list(const struct flags *options);
int snapshot_command_restore(const struct flags *options);
int snapshot_command_remove(const struct flags *options);
int snapshot_command_export(const struct flags *options);
int snapshot_command_import(const struct flags *options);

#endif
