/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange: one request and its reply.
 *
 *     HEAD -> BODY -> AWAY -> READY -> REPLYING        the usual way
 *          \-> REFUSED ----------------/               a refusal; the rest of the body is dropped
 *
 * Created when the request line has come, on an event thread (loop.h): the one, of several, that
 * runs libmicrohttpd just now. In AWAY the connection is suspended and the exchange belongs to
 * whoever will finish the call; the finish makes it READY and resumes the connection, and the event
 * thread replies. Reference-counted: the event thread holds one until libmicrohttpd says that the
 * request is over, whoever works on the call another, a stream reply a third.
 */
#ifndef KERND_SERVER_EXCHANGE_H
#define KERND_SERVER_EXCHANGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "lib/base/buf.h"
#include "lib/base/cancel.h"
#include "lib/base/pool.h"
#include "server/connection.h"
#include "server/edge.h"
#include "server/http_guard.h"
#include "server/spool.h"
#include "server/uncork.h"

struct MHD_Connection;

enum exchange_phase {
    EXCHANGE_HEAD,
    EXCHANGE_BODY,
    EXCHANGE_REFUSED,
    EXCHANGE_AWAY,
    EXCHANGE_READY,
    EXCHANGE_REPLYING,
};

/* Who may answer a request that is still being read: the first to change it from OPEN. */
enum exchange_input {
    EXCHANGE_INPUT_NONE,
    EXCHANGE_INPUT_OPEN,
    EXCHANGE_INPUT_CLOSED,  /* complete; the event thread answers */
    EXCHANGE_INPUT_EXPIRED, /* too late; the main thread has answered on the bare socket */
};

struct exchange {
    struct api_call call;
    struct pool_job job;
    struct edge *edge;
    struct connection *connection;
    struct MHD_Connection *mhd;
    atomic_uint references;
    atomic_int input;
    pthread_mutex_t lock; /* the next four */
    enum exchange_phase phase;
    bool suspended;
    bool broken;    /* a stream reply must end: its client is gone or the daemon stops */
    uint64_t watch; /* hang-up watch while suspended */
    /* The event thread's; read-only for others once AWAY. */
    struct http_guard_head head;
    struct http_guard_framing framing;
    char *raw_target; /* with the query */
    char *target;     /* without it */
    char *method;
    struct api_header *headers;
    char *header_text; /* what headers point into */
    char request_id[HTTP_GUARD_ID_SIZE];
    struct err refusal; /* why, in phase REFUSED */
    char allow[64];     /* for 405 */
    bool closes;        /* the connection ends with this reply */
    struct buf body;    /* JSON */
    struct spool spool; /* a file */
    size_t buffered;    /* of edge.buffered */
    uint64_t received;  /* bytes of body */
    uint64_t sent;      /* bytes of reply body; -1 of a stream counts as it goes */
    int status;
    struct uncork uncork; /* while a file is sent */
};

/* Takes a copy of the target. Event thread. */
struct exchange *exchange_new(struct edge *edge, struct connection *connection,
                              struct MHD_Connection *mhd, const char *raw_target);

/*
 * libmicrohttpd is done with the request: gives back what it counts for in the edge, and the event
 * thread's reference. Event thread. Whoever still has one does not touch the edge any more, which
 * a server that stops may have freed by then.
 */
void exchange_completed(struct exchange *exchange);

/* Any thread. The last one frees. */
struct exchange *exchange_ref(struct exchange *exchange);
void exchange_unref(struct exchange *exchange);

/* Only the event thread changes a phase but AWAY, so that its own reads need no lock. */
enum exchange_phase exchange_phase(struct exchange *exchange);
void exchange_set_phase(struct exchange *exchange, enum exchange_phase phase);

/*
 * Suspends the connection, from inside one of its callbacks; whoever calls exchange_resume first
 * wakes it, a second call does nothing. watched: tell exchange_cancel when the client leaves.
 */
void exchange_suspend(struct exchange *exchange, bool watched);
void exchange_resume(struct exchange *exchange);
bool exchange_is_suspended(struct exchange *exchange);

/* Why the quick lane dropped a job: QUEUE_FULL or SHUTTING_DOWN. */
void exchange_no_lane(const struct exchange *exchange, struct err *err);

/*
 * The whole request is here: AWAY, and api_dispatch on the quick lane. Event thread, from inside a
 * callback. -1 with err SHUTTING_DOWN; the phase is unchanged then.
 */
int exchange_dispatch(struct exchange *exchange, struct err *err);

/* A reply instead of the handler's: the problem of err. The owner of the call. */
void exchange_fail(struct exchange *exchange, const struct err *err);

/*
 * The client is gone, or the daemon stops: cancels the call if it is away, breaks the stream if
 * there is one. Any thread but the event one.
 */
void exchange_cancel(struct exchange *exchange, enum cancel_reason reason);

/*
 * Claims the answer of a request that is still being read. False: somebody else has it. The event
 * thread claims CLOSED, the main thread EXPIRED.
 */
bool exchange_claim(struct exchange *exchange, enum exchange_input by);

#endif
