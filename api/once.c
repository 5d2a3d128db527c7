/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: answer a repeated request with what the first one was answered.
 * Owns: the key of a call while it goes on.
 * Threads: any but the event one; one call belongs to one thread at a time.
 * May include: lib/base, lib/sandbox.
 */
#include "api/once.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/resource.h"
#include "api/route.h"
#include "api/ticket.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/id.h"
#include "lib/base/text.h"
#include "lib/sandbox/executions.h"
#include "lib/sandbox/idempotency.h"

/* Of an answer that is kept; what is larger is only known to be done. */
#define ANSWER_MAX ((size_t)4 << 20)
/* All of the user's own programs share their keys: a repetition may come from another process. */
#define USER 1

struct once {
    char key[IDEMPOTENCY_KEY_MAX + 1];
    char hash[HASH_HEX_SIZE];
    uint64_t caller;
    char execution_id[RESOURCE_ID_SIZE]; /* "": not bound */
};

/* ---- keys ---- */

int once_parse_key(const char *value, char out[static 256], struct err *err)
{
    size_t size = strlen(value);

    if (size >= 2 && value[0] == '"' && value[size - 1] == '"') {
        value++;
        size -= 2;
    }
    if (size == 0 || size > IDEMPOTENCY_KEY_MAX) {
        return err_set(err, ERR_BAD_HEADER, 0, "Idempotency-Key must have 1 to %d characters",
                       IDEMPOTENCY_KEY_MAX);
    }
    for (size_t i = 0; i < size; i++) {
        if (value[i] < 0x20 || value[i] > 0x7e) {
            return err_set(err, ERR_BAD_HEADER, 0, "Idempotency-Key must be printable ASCII");
        }
    }
    memcpy(out, value, size);
    out[size] = '\0';
    return 0;
}

static void add_text(struct hash *hash, const char *text)
{
    hash_add(hash, text, strlen(text) + 1);
}

void once_fingerprint(const struct api_call *call, char out[static HASH_HEX_SIZE])
{
    struct hash *hash = hash_new();

    add_text(hash, call->method);
    add_text(hash, call->target);
    add_text(hash, call->query);
    hash_add(hash, call->body, call->body_size);
    hash_end_hex(hash, out);
}

static struct idempotency what_of(const struct once *once)
{
    return (struct idempotency){ .caller = once->caller, .key = once->key, .hash = once->hash };
}

/* ---- stored answers ---- */

static const char *const kept_headers[] = { "Content-Type", "Location", NULL };

static const char *header_of(const struct api_reply *reply, const char *name)
{
    for (size_t i = 0; i + 1 < reply->headers.count; i += 2) {
        if (strcasecmp(reply->headers.items[i], name) == 0) {
            return reply->headers.items[i + 1];
        }
    }
    return "";
}

/* One line a header, in their order, then the body. */
void once_pack(const struct api_reply *reply, struct buf *out)
{
    for (size_t i = 0; kept_headers[i] != NULL; i++) {
        (void)buf_append_text(out, header_of(reply, kept_headers[i]));
        (void)buf_append_text(out, "\n");
    }
    (void)buf_append(out, reply->body.data, reply->body.size);
}

void once_unpack(const char *text, struct api_reply *reply)
{
    for (size_t i = 0; kept_headers[i] != NULL; i++) {
        size_t size = strcspn(text, "\n");
        CLEANUP_FREE char *value = alloc_copy(text, size);

        if (size > 0) {
            api_reply_header(reply, kept_headers[i], value);
        }
        text += text[size] == '\n' ? size + 1 : size;
    }
    (void)buf_append_text(&reply->body, text);
}

/* ---- a key that was used ---- */

static void answer_stored(struct api_call *call, const struct idempotency_found *found)
{
    call->reply.status = found->status;
    once_unpack(found->answer == NULL ? "" : found->answer, &call->reply);
    api_reply_header(&call->reply, "Idempotency-Replayed", "true");
    api_call_finish(call);
}

static void answer_in_flight(struct api_call *call, const char *execution_id)
{
    struct err err = ERR_INIT;

    (void)err_set(&err, ERR_IDEMPOTENCY_IN_FLIGHT, 0,
                  "the first request with this Idempotency-Key is still under way");
    api_reply_problem(&call->reply, &err, call->target, call->request_id);
    if (*execution_id != '\0') {
        CLEANUP_FREE char *location = alloc_printf("/v1/executions/%s", execution_id);

        api_reply_header(&call->reply, "Location", location);
    }
    api_call_finish(call);
}

static void answer_lost(struct api_call *call)
{
    struct err err = ERR_INIT;

    (void)err_set(&err, ERR_LOST, 0,
                  "the server was killed while it worked on the first request with this "
                  "Idempotency-Key");
    (void)err_remedy(&err, "see what is there; to have it done again use a fresh key");
    api_reply_problem(&call->reply, &err, call->target, call->request_id);
    api_reply_header(&call->reply, "Idempotency-Replayed", "true");
    api_call_finish(call);
}

/* It never ran, and the caller was told to try again. */
static bool is_unrun(const struct execution_view *view)
{
    return view->state == EXECUTION_DONE && view->started_ms == 0 &&
           text_equal(view->fault, run_fault_text(RUN_FAULT_STARTUP_FAILED));
}

/*
 * The answer is an execution. True when there is none any more that could be the answer: the key is
 * free then.
 */
static bool answer_execution(struct api_call *call, const struct once *once, const char *id)
{
    const struct session_actor actor = resource_actor(call);
    const struct idempotency what = what_of(once);
    struct execution_view view;
    struct ticket ticket;
    struct err err = ERR_INIT;

    if (executions_get(call->api->sandbox, &actor, id, false, &view, NULL) < 0) {
        answer_in_flight(call, id); /* just being submitted */
        return false;
    }
    executions_view_done(&view);
    if (is_unrun(&view)) {
        idempotency_release(call->api->sandbox, &what, id);
        return true;
    }
    if (view.state != EXECUTION_DONE) {
        answer_in_flight(call, id);
    } else if (ticket_read(call, &ticket, &err) < 0) {
        resource_fail(call, &err);
    } else {
        api_reply_header(&call->reply, "Idempotency-Replayed", "true");
        ticket_answer_past(call, &ticket, id);
    }
    return false;
}

/* True: the claim is to be tried again. */
static bool answer_found(struct api_call *call, const struct once *once,
                         const struct idempotency_found *found)
{
    switch (found->state) {
    case IDEMPOTENCY_EXECUTION:
        return answer_execution(call, once, found->execution_id);
    case IDEMPOTENCY_IN_FLIGHT:
        answer_in_flight(call, "");
        break;
    case IDEMPOTENCY_ANSWERED:
        answer_stored(call, found);
        break;
    case IDEMPOTENCY_LOST:
    case IDEMPOTENCY_FRESH:
        answer_lost(call);
        break;
    }
    return false;
}

/* ---- the life of a key ---- */

static bool is_by_parts(const struct api_call *call)
{
    return call->route->once == ROUTE_ONCE_BY_PARTS;
}

/* Claims, or answers. True: claimed. */
static bool claim(struct api_call *call, const struct once *once)
{
    const struct idempotency what = what_of(once);
    struct idempotency_found found;
    struct err err = ERR_INIT;
    bool again;

    do {
        if (idempotency_claim(call->api->sandbox, &what, &found, &err) < 0) {
            resource_fail(call, &err);
            return false;
        }
        if (found.state == IDEMPOTENCY_FRESH) {
            return true;
        }
        if (is_by_parts(call)) {
            /* Each part finds what became of it the first time. */
            idempotency_found_done(&found);
            api_reply_header(&call->reply, "Idempotency-Replayed", "true");
            return true;
        }
        again = answer_found(call, once, &found);
        idempotency_found_done(&found);
    } while (again);
    return false;
}

bool once_begin(struct api_call *call)
{
    const char *value = api_call_header(call, "Idempotency-Key");
    struct err err = ERR_INIT;
    struct once *once;

    if (value == NULL || call->route->once == ROUTE_REPEATS) {
        return true;
    }
    once = alloc_zero(1, sizeof(*once));
    once->caller = call->scope == API_SCOPE_FULL ? USER : call->caller;
    once_fingerprint(call, once->hash);
    if (once_parse_key(value, once->key, &err) < 0) {
        free(once);
        resource_fail(call, &err);
        return false;
    }
    if (!claim(call, once)) {
        free(once);
        return false;
    }
    call->once = once;
    return true;
}

int once_bind(struct api_call *call, struct run_request *request, struct err *err)
{
    struct idempotency what;
    char id[ID_SIZE];

    if (call->once == NULL) {
        return 0;
    }
    what = what_of(call->once);
    if (request->id == NULL) {
        request->id = alloc_text(id_make("exe", id));
    }
    if (idempotency_bind(call->api->sandbox, &what, request->id, err) < 0) {
        return -1;
    }
    (void)snprintf(call->once->execution_id, sizeof(call->once->execution_id), "%s", request->id);
    return 0;
}

void once_bind_to(struct api_call *call, const char *execution_id)
{
    struct idempotency what;

    if (call->once != NULL && call->once->execution_id[0] == '\0') {
        what = what_of(call->once);
        (void)idempotency_bind(call->api->sandbox, &what, execution_id, NULL);
        (void)snprintf(call->once->execution_id, sizeof(call->once->execution_id), "%s",
                       execution_id);
    }
}

void once_unbind(struct api_call *call)
{
    struct idempotency what;

    if (call->once != NULL && call->once->execution_id[0] != '\0') {
        what = what_of(call->once);
        idempotency_release(call->api->sandbox, &what, call->once->execution_id);
        call->once->execution_id[0] = '\0';
    }
}

void once_name_part(const struct api_call *call, size_t index, struct run_request *request)
{
    char hex[HASH_HEX_SIZE];
    CLEANUP_FREE char *text = NULL;

    if (call->once == NULL || request->id != NULL) {
        return;
    }
    text =
        alloc_printf("%llu %zu %s", (unsigned long long)call->once->caller, index, call->once->key);
    hash_sha256_hex(text, strlen(text), hex);
    request->id = alloc_printf("exe_%.20s", hex);
}

/* What was refused, or went wrong, may be tried again. */
static bool is_kept(const struct api_reply *reply)
{
    return reply->status < 300 && reply->stream == NULL && reply->file < 0;
}

static void store(const struct api_call *call)
{
    const struct idempotency what = what_of(call->once);
    CLEANUP_BUF struct buf text = BUF_INIT(ANSWER_MAX);

    if (!is_kept(&call->reply)) {
        idempotency_release(call->api->sandbox, &what, NULL);
        return;
    }
    once_pack(&call->reply, &text);
    if (buf_append(&text, "", 1) < 0) {
        buf_reset(&text);
    }
    (void)idempotency_answer(call->api->sandbox, &what, call->reply.status,
                             text.size == 0 ? "" : text.data, NULL);
}

void once_end(struct api_call *call)
{
    if (call->once == NULL) {
        return;
    }
    if (call->once->execution_id[0] == '\0' && !is_by_parts(call)) {
        store(call);
    }
    free(call->once);
    call->once = NULL;
}
