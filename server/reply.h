/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply: from an api_reply to bytes: through libmicrohttpd, or straight to a socket where that
 * can't.
 */
#ifndef KERND_SERVER_REPLY_H
#define KERND_SERVER_REPLY_H

#include <stdbool.h>

#include "api/api.h"
#include "lib/base/err.h"

struct exchange;

/*
 * Queues exchange->call.reply (body, file or stream are taken over) with the headers that every
 * reply has. 0, or -1 when libmicrohttpd can't: the connection is then to be closed. Event thread,
 * from inside the access callback.
 */
int reply_queue(struct exchange *exchange);

/* Makes the reply the exchange's refusal and queues it. As reply_queue. */
int reply_refusal(struct exchange *exchange);

/*
 * Writes a whole reply (status line, headers, body, Connection: close) to a socket of which
 * libmicrohttpd expects input; what does not fit at once is lost. Never blocks. Any thread that has
 * claimed the answer.
 */
void reply_bare(int fd, const struct api_reply *reply, const char *request_id);

/* reply_bare of a problem, for a client whose request was never read. */
void reply_bare_problem(int fd, const struct err *err);

/*
 * reply_bare for an exchange whose body did not come in time: its refusal,
 * REQUEST_TIMEOUT or SHUTTING_DOWN. The caller holds edge.lock and has claimed the answer. Main
 * thread.
 */
void reply_expired(struct exchange *exchange);

/* reply_bare of the refusal of an exchange that sends a body without end. Event thread. */
void reply_cut(struct exchange *exchange);

#endif
