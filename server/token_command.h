/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_command: `kernd token new | list | revoke ID`, through the user's server, which is started
 * if need be.
 */
#ifndef KERND_SERVER_TOKEN_COMMAND_H
#define KERND_SERVER_TOKEN_COMMAND_H

/* What follows "token". The process's exit status: 0, 1 (it failed) or 2 (wrong usage). */
int token_command_main(int count, char *const *arguments);

#endif
