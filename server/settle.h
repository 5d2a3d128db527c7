/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settle: from a configuration to a process that owns its place: the right user, private
 * directories, the state directory's lock, the token. Main thread, before any other starts.
 */
#ifndef KERND_SERVER_SETTLE_H
#define KERND_SERVER_SETTLE_H

#include "lib/base/err.h"
#include "server/config.h"
#include "server/token.h"

struct settle {
    struct token token;
    char *token_path;
    int lock; /* the state directory's; held to the end of the process */
};

/*
 * Resolves config's directories, makes them, gives root away if the process has it (unless
 * allow_root), locks the state directory, loads or makes the token, changes to "/". 0, or -1 with
 * err. settle_done frees the memory and gives the lock back.
 */
int settle_open(struct config *config, struct settle *ret_settle, struct err *err);
void settle_done(struct settle *settle);

#endif
