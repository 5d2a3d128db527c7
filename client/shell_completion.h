/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shell_completion: what a shell offers when Tab is pressed behind kernd. The shells' own scripts
 * (client/shell) only ask for it. For one thread.
 */
#ifndef KERND_CLIENT_SHELL_COMPLETION_H
#define KERND_CLIENT_SHELL_COMPLETION_H

#include "client/flags.h"

/*
 * `kernd completion SHELL` prints that shell's script; `kernd completion words WORD...` what the
 * last word may become, the others standing before it: "WORD<tab>WHAT IT IS" a line each, ":files"
 * and ":directories" for names of those. Names of sessions and the like come from a server that
 * runs; none is started. The exit status.
 */
int shell_completion_command(const struct flags *options);

#endif
