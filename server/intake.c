/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: decide on a request before any work is done for it; receive its body.
 * Owns: nothing; all is the exchange's.
 * Threads: event.
 * May include: server, api.h, lib/base, libmicrohttpd.
 */
#include "server/intake.h"

#include <microhttpd.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "lib/base/id.h"
#include "lib/base/text.h"
#include "server/body.h"
#include "server/exchange.h"
#include "server/reply.h"
#include "server/token.h"

#define BODY_RATE 65536.0      /* a long body must come at least this fast, in bytes a second */
#define REFUSED_S 0.4          /* for a short body that is read only to be dropped; */
#define REFUSED_RATE 1048576.0 /* and this fast for a long one */
#define HEAD_BYTES_MAX ((size_t)256 << 10) /* above what libmicrohttpd takes */
#define CALLER_TOKEN 1
#define CALLER_NARROWED 3 /* process ids are even and small, tokens are odd (tokens.c) */
#define CALLER_OWNER (UINT64_C(1) << 62) /* with 60 bits of a hash, shifted by two */
#define OWNER_DIGITS 15

/* ---- the head ---- */

struct collector {
    struct buf text; /* name NUL value NUL name NUL ... */
    size_t count;
    bool is_bad;
};

/* NOLINTNEXTLINE(readability-function-size): the parameters are libmicrohttpd's. */
static enum MHD_Result collect(void *context, enum MHD_ValueKind kind, const char *name,
                               size_t name_size, const char *value, size_t value_size)
{
    struct collector *collector = context;

    (void)kind;
    value = value != NULL ? value : "";
    /* A NUL byte inside would hide the rest from whoever reads it as a string. */
    collector->is_bad |= strlen(name) != name_size || strlen(value) != value_size;
    collector->is_bad |= buf_append(&collector->text, name, strlen(name) + 1) < 0;
    collector->is_bad |= buf_append(&collector->text, value, strlen(value) + 1) < 0;
    collector->count++;
    return MHD_YES;
}

/* Copies the head: libmicrohttpd's own strings are promised for the time of the callback only. */
static int copy_head(struct exchange *exchange, const char *method, const char *version,
                     struct err *err)
{
    struct collector collector = { .text = BUF_INIT(HEAD_BYTES_MAX) };
    char *at;

    (void)MHD_get_connection_values_n(exchange->mhd, MHD_HEADER_KIND, collect, &collector);
    exchange->method = alloc_text(method);
    exchange->header_text = buf_take(&collector.text, NULL);
    exchange->headers = alloc_zero(collector.count + 1, sizeof(*exchange->headers));
    at = exchange->header_text;
    for (size_t i = 0; i < collector.count && !collector.is_bad; i++) {
        exchange->headers[i].name = at;
        at += strlen(at) + 1;
        exchange->headers[i].value = at;
        at += strlen(at) + 1;
    }
    exchange->head = (struct http_guard_head){
        .method = exchange->method,
        .target = exchange->raw_target,
        .version = version,
        .headers = exchange->headers,
        .header_count = collector.is_bad ? 0 : collector.count,
    };
    return collector.is_bad ? err_set(err, ERR_BAD_HEADER, 0, "a header field is malformed") : 0;
}

/* ---- the decision ---- */

static int check_form(struct exchange *exchange, struct err *err)
{
    struct http_guard_place place;

    connection_place(exchange->connection, exchange->edge, &place);
    if (http_guard_form(&exchange->head, &exchange->framing, err) < 0 ||
        http_guard_source(&exchange->head, &place, err) < 0) {
        return -1;
    }
    if (atomic_load(&exchange->edge->draining)) {
        return err_set(err, ERR_SHUTTING_DOWN, 0, "the server is shutting down");
    }
    return 0;
}

/* The number of one of the user's narrow clients, from the name that it gives itself. */
static uint64_t owner_number(const char *name)
{
    char digits[HASH_HEX_SIZE];
    uint64_t number = 0;

    hash_sha256_hex(name, strlen(name), digits);
    for (size_t i = 0; i < OWNER_DIGITS; i++) {
        const char digit = digits[i];

        number = number << 4 | (uint64_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    return CALLER_OWNER | number << 2;
}

static int read_owner(const struct http_guard_head *head, bool has_scope, uint64_t *ret_caller,
                      struct err *err)
{
    size_t count = 0;
    const char *owner = http_guard_only(head, "Kernd-Owner", &count);

    /* Whoever names an owner takes himself for narrow. */
    if (count > 0 && !has_scope) {
        return err_set(err, ERR_BAD_HEADER, 0, "Kernd-Owner goes with Kernd-Scope: run");
    }
    if (count > 1 || (owner != NULL && !id_valid(owner))) {
        return err_set(err, ERR_BAD_HEADER, 0, "Kernd-Owner is one name, as an id is");
    }
    *ret_caller = owner == NULL ? CALLER_NARROWED : owner_number(owner);
    return 0;
}

/* The user may ask for less than is his: an agent's bridge does. What he makes then has an owner of
 * its own, or the one that is named. Nobody gets more by it. */
static int narrow(struct exchange *exchange, struct api_identity *identity, struct err *err)
{
    size_t count = 0;
    const char *scope = http_guard_only(&exchange->head, "Kernd-Scope", &count);
    uint64_t caller = 0;

    if (count > 1 || (count == 1 && !text_equal(scope, "run"))) {
        return err_set(err, ERR_BAD_HEADER, 0, "Kernd-Scope can only say run, once");
    }
    if (read_owner(&exchange->head, count == 1, &caller, err) < 0) {
        return -1;
    }
    if (count == 1 && identity->scope == API_SCOPE_FULL) {
        *identity = (struct api_identity){ .caller = caller, .scope = API_SCOPE_RUN };
        exchange->call.narrowed = true;
    }
    return 0;
}

static int check_caller(struct exchange *exchange, struct err *err)
{
    const struct connection *connection = exchange->connection;
    const struct edge *edge = exchange->edge;
    struct api_identity identity;

    if (token_check(edge->token, edge->api, &exchange->head, connection->trusted, &identity, err) <
            0 ||
        narrow(exchange, &identity, err) < 0) {
        return -1;
    }
    if (identity.caller == 0) {
        /* Programs of one user are told apart by their process where that is known. */
        identity.caller =
            connection->trusted ? (uint64_t)connection->pid << 1 : (uint64_t)CALLER_TOKEN;
    }
    exchange->call.caller = identity.caller;
    exchange->call.scope = identity.scope;
    return 0;
}

static int check_length(const struct exchange *exchange, struct err *err)
{
    uint64_t limit = body_limit(exchange);

    if (exchange->framing.length <= limit) {
        return 0;
    }
    return err_set(err, ERR_BODY_TOO_LARGE, 0, "the body is larger than %llu bytes",
                   (unsigned long long)limit);
}

static int check_route(struct exchange *exchange, struct err *err)
{
    struct err route_err = ERR_INIT;
    const struct api_route *route = api_route_find(
        exchange->method, exchange->target, exchange->allow, sizeof(exchange->allow), &route_err);
    bool has_body = exchange->framing.chunked || exchange->framing.length > 0;

    /* Whoever has no token learns nothing about the routes, but of the open ones. */
    if ((route == NULL || !api_route_open(route)) && check_caller(exchange, err) < 0) {
        exchange->allow[0] = '\0';
        return -1;
    }
    if (route == NULL) {
        *err = route_err;
        return -1;
    }
    exchange->allow[0] = '\0';
    exchange->call.route = route;
    if (http_guard_media_type(&exchange->head, api_route_body(route), has_body, err) < 0) {
        return -1;
    }
    return check_length(exchange, err);
}

/* ---- refusals ---- */

/* A body that is worth reading to its end, so that a client that sends it first hears the answer.
 */
static bool is_worth_reading(const struct exchange *exchange)
{
    return !exchange->framing.expects_continue && exchange->framing.length <= BODY_DROP_MAX;
}

static bool is_readable(enum err_code code)
{
    return code != ERR_BAD_REQUEST && code != ERR_BAD_HEADER && code != ERR_SHUTTING_DOWN;
}

/*
 * With the framing in doubt, or a body that is not worth it, the answer goes out at once and
 * libmicrohttpd closes the connection behind it. Else it waits for the end of the request.
 */
static int refuse_head(struct exchange *exchange)
{
    bool has_body = exchange->framing.chunked || exchange->framing.length > 0;

    exchange_set_phase(exchange, EXCHANGE_REFUSED);
    if (!is_readable(exchange->refusal.code) || (has_body && !is_worth_reading(exchange))) {
        exchange->closes = true;
        return reply_refusal(exchange);
    }
    connection_expect(exchange->connection, REFUSED_S);
    atomic_store(&exchange->input, EXCHANGE_INPUT_OPEN);
    return 0;
}

int intake_head(struct exchange *exchange, const char *method, const char *version)
{
    struct err *err = &exchange->refusal;
    int result;

    steps_mark(&exchange->call.steps, STEP_ACCEPT);
    result = copy_head(exchange, method, version, err);
    (void)http_guard_request_id(&exchange->head, exchange->request_id);
    if (result < 0 || check_form(exchange, err) < 0 || check_route(exchange, err) < 0) {
        return refuse_head(exchange);
    }
    exchange_set_phase(exchange, EXCHANGE_BODY);
    connection_expect(exchange->connection, exchange->edge->request_timeout_s);
    body_begin(exchange);
    atomic_store(&exchange->input, EXCHANGE_INPUT_OPEN);
    return 0;
}

/* ---- the body ---- */

/* Decided in the middle of a body: nothing can be answered before its end. */
static void refuse_body(struct exchange *exchange)
{
    body_forget(exchange);
    /* A client that sends without an end is not kept. */
    exchange->closes = true;
    exchange_set_phase(exchange, EXCHANGE_REFUSED);
    connection_expect(exchange->connection, REFUSED_S);
}

static int drop_data(struct exchange *exchange, size_t size)
{
    exchange->received += size;
    connection_progress(exchange->connection, size, REFUSED_RATE);
    if (exchange->received <= BODY_DROP_MAX + exchange->framing.length) {
        return 0;
    }
    if (exchange_claim(exchange, EXCHANGE_INPUT_CLOSED)) {
        reply_cut(exchange);
    }
    return -1;
}

static void keep_data(struct exchange *exchange, const char *data, size_t size)
{
    if (atomic_load(&exchange->connection->deadline) == CLOCK_NEVER) {
        connection_expect(exchange->connection,
                          exchange->edge->request_timeout_s); /* back from the spool */
    }
    connection_progress(exchange->connection, size, BODY_RATE);
    if (body_take(exchange, data, size, &exchange->refusal) < 0) {
        refuse_body(exchange);
    }
}

int intake_data(struct exchange *exchange, const char *data, size_t *size)
{
    size_t taken = *size;

    if (atomic_load(&exchange->input) == EXCHANGE_INPUT_EXPIRED) {
        return -1;
    }
    /*
     * When several chunks came at once libmicrohttpd offers the next one although the connection
     * was suspended for the last. What is not taken now is offered again after the resume.
     */
    if (exchange_is_suspended(exchange)) {
        return 0;
    }
    *size = 0;
    if (exchange_phase(exchange) == EXCHANGE_REFUSED) {
        return drop_data(exchange, taken);
    }
    keep_data(exchange, data, taken);
    return 0;
}

int intake_end(struct exchange *exchange)
{
    if (!exchange_claim(exchange, EXCHANGE_INPUT_CLOSED)) {
        return -1;
    }
    connection_wait(exchange->connection);
    if (exchange_phase(exchange) == EXCHANGE_BODY &&
        exchange_dispatch(exchange, &exchange->refusal) == 0) {
        return 0;
    }
    return reply_refusal(exchange);
}
