/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control: `kernd start`, `stop`, `status` and `restart`: a server in the background for hosts and
 * users without systemd. One thread.
 */
#ifndef KERND_SERVER_CONTROL_H
#define KERND_SERVER_CONTROL_H

/*
 * All take options of serve, which say where the server's places are.
 * start: starts the server, detached, its output in a log file, waits until it answers and tells
 * where it is; the same where one runs already. restart: stop, then start.
 * The exit status: 0; 1: it failed; 2: wrong usage.
 */
int control_start(int count, char *const *options);
int control_restart(int count, char *const *options);

/* SIGTERM to the server that holds the state directory, and waits until it is gone. 0 also when
 * there is none. */
int control_stop(int count, char *const *options);

/* Tells where the server is. The exit status: 0: it runs; 3: it does not; 1 and 2 as above. */
int control_status(int count, char *const *options);

#endif
