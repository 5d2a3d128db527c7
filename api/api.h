/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api: the boundary between the HTTP server and the resources.
 *
 * The server owns sockets, threads and bytes; api owns meaning. The server looks a route up, reads
 * the body the route wants, and hands an api_call to api_dispatch on a quick-lane thread. The
 * handler fills call->reply and calls api_call_finish exactly once, now or later, from any thread
 * (an execution that ends on a run thread finishes the call of the client that waits for it).
 */
#ifndef KERND_API_API_H
#define KERND_API_API_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/cancel.h"
#include "lib/base/err.h"
#include "lib/base/steps.h"
#include "lib/base/strv.h"

struct api;       /* the resources over one sandbox */
struct api_route; /* one row of the route table */
struct execution;
struct once; /* an Idempotency-Key */
struct sandbox;

enum api_body {
    API_BODY_NONE, /* a body is ignored up to a small size, else refused */
    API_BODY_JSON, /* application/json, kept in memory, at most the JSON limit */
    API_BODY_FILE, /* raw bytes, spooled to an unnamed file; no limit of its own */
};

enum api_scope {
    API_SCOPE_FULL, /* the user himself: socket peer or main token */
    API_SCOPE_RUN, /* may run, but not reach host paths, network, weaker limits, others' sessions */
};

/* Who a caller is. */
struct api_identity {
    uint64_t caller; /* fairness key, and owner of what he makes */
    enum api_scope scope;
};

struct api_header {
    const char *name;
    const char *value;
};

/*
 * A stream the server pulls from. read is called on the event thread only and never blocks: it
 * returns bytes copied into out, 0 for "nothing now" (then arm was or will be used), -1 for the
 * clean end, -2 for a broken end (the client must see a truncated stream).
 * arm asks for one wake() call, from any thread, when read may give more; it may call wake at once.
 * After free nothing is called any more.
 */
struct api_stream {
    long (*read)(struct api_stream *stream, char *out, size_t max);
    void (*arm)(struct api_stream *stream, void (*wake)(void *context), void *context);
    void (*free)(struct api_stream *stream);
};

#define API_SIZE_UNKNOWN UINT64_MAX

/*
 * The reply to HEAD, and one of status 304, has the body of the 200 that it stands for: its size is
 * told, not its bytes (RFC 9110, section 8.6).
 */
struct api_reply {
    int status;
    struct strv headers; /* name, value, name, value ... (Content-Type among them) */
    struct buf body;
    int file; /* -1, or a descriptor to send from instead of body (taken over) */
    uint64_t file_offset;
    uint64_t file_size;
    struct api_stream *stream; /* or a stream (taken over) */
    uint64_t stream_size;      /* of it, or API_SIZE_UNKNOWN */
};

/*
 * What a handler that replies later does when the client hangs up first. Heap-allocated by the
 * handler; whoever takes it out of the call owns it: api_call_cancel (which calls fire) or
 * api_call_unwatch. fire is called at most once, frees the hook and never blocks. Another thread
 * may finish the call at the same time: fire touches it only when it made sure that none will.
 */
struct api_hook {
    void (*fire)(struct api_hook *hook, enum cancel_reason reason);
};

struct api_call {
    /* Filled by the server before api_dispatch; valid until finish. */
    struct api *api;
    const struct api_route *route;
    const char *method;
    const char *target; /* raw path as received, without the query, percent-encoded */
    const char *query;  /* raw query, "" for none */
    const struct api_header *headers;
    size_t header_count;
    const char *body; /* JSON routes: body_size bytes and a NUL */
    size_t body_size;
    int body_file; /* file routes: readable from offset 0; -1 else; the server closes it */
    uint64_t body_file_size;
    const char *request_id;
    uint64_t caller; /* fairness key: token or peer uid */
    enum api_scope scope;
    bool narrowed;       /* to that, by the user himself (Kernd-Scope) */
    int64_t received_ns; /* monotonic */
    struct steps steps;  /* begun then */
    bool timed;          /* steps are those of an execution, to be told */
    bool queues;         /* it asks for a place in the queue: what else it may have is told */
    /* Set up by the server; fired through api_call_cancel only. */
    struct cancel cancel;
    _Atomic(struct api_hook *) hook; /* api's own: starts as NULL */
    struct once *once;               /* the same */
    /* Initialised by the server, filled by the handler. */
    struct api_reply reply;
    /* Set by the server: called once by api_call_finish. */
    void (*finish)(struct api_call *call);
};

/* ---- what the server calls ---- */

/* The texts that are kept of an ended execution: for sandbox_config.render. */
void api_render(const struct execution *execution, struct buf *event_text, struct buf *document);

/*
 * NULL with err on failure. The sandbox is borrowed. test_tools: there is what only tests of
 * protocols call (api/mcp_diagnostic.h).
 */
struct api *api_new(struct sandbox *sandbox, bool test_tools, struct err *err);
void api_free(struct api *api);

/*
 * Finds the route of a method and raw path. NULL with ROUTE_NOT_FOUND, METHOD_NOT_ALLOWED
 * (ret_allow then holds the Allow header's value), BAD_PATH or URI_TOO_LONG. HEAD matches GET
 * routes; OPTIONS matches every known path and is answered by api. Pure; event thread.
 */
const struct api_route *api_route_find(const char *method, const char *target, char *ret_allow,
                                       size_t allow_size, struct err *err);
enum api_body api_route_body(const struct api_route *route);
size_t api_route_body_max(const struct api_route *route);
bool api_route_open(const struct api_route *route);           /* needs no token (healthz) */
const char *api_route_pattern(const struct api_route *route); /* for logs and metrics */

/*
 * Whose token this is, of those that the user gave away. False: it is none of them, or is revoked,
 * or has expired. Any thread; takes a lock for microseconds.
 */
bool api_identify(struct api *api, const char *token, struct api_identity *ret_identity);

/*
 * Counted for GET /metrics: a client came (1) or left (-1), a request began, and how it ended. Any
 * thread; no lock.
 */
struct api_exchange {
    const struct api_route *route; /* NULL: none was found */
    int status;
    int64_t duration_ns;
    uint64_t received; /* bytes of bodies */
    uint64_t sent;
};
void api_count_connection(struct api *api, int more);
void api_count_begin(struct api *api);
void api_count_end(struct api *api, const struct api_exchange *exchange);

/* Runs the handler. The calling thread may get the finish call before this returns. */
void api_dispatch(struct api_call *call);

/*
 * The client hung up before the reply (CLIENT_GONE), or the daemon stops (SHUTDOWN). Any thread,
 * from api_dispatch on, as often as wanted, as long as the server keeps the call's memory: also
 * while, or after, the handler finishes it.
 */
void api_call_cancel(struct api_call *call, enum cancel_reason reason);

/*
 * Fills an initialised reply with problem+json of err (also used by the server for its own
 * refusals), with Retry-After and WWW-Authenticate where they belong. What the reply held before is
 * dropped. target may have a query, which is not shown; NULL: unknown. Allow is the server's to
 * add.
 */
void api_reply_problem(struct api_reply *reply, const struct err *err, const char *target,
                       const char *request_id);

void api_reply_init(struct api_reply *reply);
void api_reply_done(struct api_reply *reply);

/*
 * The reply goes out now: the last step of a call that waited for its execution is counted, and the
 * reply gets its Server-Timing. Event thread, once.
 */
void api_call_replying(struct api_call *call);

/* ---- what handlers call ---- */

/* First header of that name (case-insensitive) or NULL. */
const char *api_call_header(const struct api_call *call, const char *name);

/*
 * Asks for hook->fire when the call is cancelled; fires at once if it already was. One hook a call.
 * api_call_unwatch takes it back before the finish: NULL if it has fired or is just firing.
 */
void api_call_watch(struct api_call *call, struct api_hook *hook);
struct api_hook *api_call_unwatch(struct api_call *call);

/* Adds a header to the reply (copied). */
void api_reply_header(struct api_reply *reply, const char *name, const char *value);

/* Exactly once per call, after reply is complete. The call must not be touched afterwards. */
void api_call_finish(struct api_call *call);

#endif
