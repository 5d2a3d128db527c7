/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop: libmicrohttpd's event loop, on threads that also do the work that comes of it.
 *
 * A thread that waits for sockets is woken and lets libmicrohttpd read. If a request is then there
 * as a whole, and they come one at a time, the same thread goes on with it (pool.h, `mobile`) and
 * sends the answer when it has made it: neither way does a call wait for another thread to wake up.
 * Meanwhile a second thread waits for sockets; what that one reads is for the lane.
 *
 * libmicrohttpd polls nothing itself ("external" polling). It is called by one thread at a time,
 * and as long as the loop's threads exist by none but those, but to add a socket and to mark a
 * connection for its resume, which may be done at any time (MHD_resume_connection).
 */
#ifndef KERND_SERVER_LOOP_H
#define KERND_SERVER_LOOP_H

#include <stdbool.h>
#include <sys/socket.h>

#include "lib/base/err.h"

struct MHD_Connection;
struct MHD_Daemon;
struct loop;

/* Starts the threads. Takes the daemon over, and stops it when it returns NULL with err. */
struct loop *loop_new(struct MHD_Daemon *daemon, struct err *err);

/* Waits for the threads; then stops the daemon, whose last callbacks this thread makes. */
void loop_free(struct loop *loop);

/* Any thread but the loop's own. As MHD_add_connection: takes the socket over. 0 or -1. */
int loop_add(struct loop *loop, int fd, const struct sockaddr *address, socklen_t size);

/* Any thread, with any lock: resumes a connection, and one of the loop's threads handles it. */
void loop_resume(struct loop *loop, struct MHD_Connection *connection);

/* The same, by a thread without locks: if it is one of the loop's it handles the connection now. */
void loop_answer(struct loop *loop, struct MHD_Connection *connection);

/*
 * Once for each request, in the callback that has all of it: does this thread go on with the
 * request's job if that is `mobile`?
 */
bool loop_goes_on(struct loop *loop);

#endif
