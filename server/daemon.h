/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon: the life of the serving process, from start to exit.
 */
#ifndef KERND_SERVER_DAEMON_H
#define KERND_SERVER_DAEMON_H

#include "server/config.h"

/*
 * Serves until SIGTERM or SIGINT, then drains and gives the exit status: 0 after an orderly stop, 1
 * when the daemon could not start (the reason is on standard error). Resolves the directories in
 * the config. Main thread only; call once in a process.
 */
int daemon_run(struct config *config);

#endif
