/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process: what a daemon sets up for itself before it does anything else. Main thread, before any
 * other starts.
 */
#ifndef KERND_SERVER_PROCESS_H
#define KERND_SERVER_PROCESS_H

#include "lib/base/err.h"

/*
 * Descriptors 0 to 2 are open (/dev/null if need be), everything above 2 + inherited is closed:
 * what the caller left open by mistake is not ours, and a pipe kept open would make it wait for its
 * end. umask 077, SIGPIPE ignored, as many descriptors as the hard limit allows (at most 65536), no
 * core dumps and no handler of crashes (they would get the token and users' code).
 */
void process_prepare(unsigned inherited);

/*
 * Blocks SIGTERM and SIGINT, in all threads started later too, and gives a non-blocking signalfd(2)
 * for them. -1 with err.
 */
int process_signals(struct err *err);

/* How many of these signals have come since the last call (0: none). */
unsigned process_read_signals(int signal_fd);

#endif
