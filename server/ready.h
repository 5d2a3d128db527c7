/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ready: what the daemon tells whoever started it. Main thread.
 */
#ifndef KERND_SERVER_READY_H
#define KERND_SERVER_READY_H

#include "lib/base/err.h"
#include "server/config.h"
#include "server/listen.h"

/*
 * One line on standard output (and without its first word in the file `ready` of the runtime
 * directory), "ready url=http://127.0.0.1:5376 socket=PATH token=PATH" (url and
 * socket as often as there are such sockets), and after it, on a terminal or with config->hint, a
 * curl line to paste.
 */
void ready_announce(const struct config *config, const struct listen_set *listens,
                    const char *token_path);

/* Why it could not start, on standard error, with what can be done about it. */
void ready_failed(const struct err *err);

#endif
