/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read the body of a batch. An item that can't be is told as such, beside the others.
 * Owns: nothing.
 * Threads: handlers on the quick lane.
 * May include: lib/base, lib/sandbox, json-c.
 */
#include "api/resource_batch.h"

#include <stdio.h>
#include <string.h>

#include "api/batch.h"
#include "api/field.h"
#include "api/header.h"
#include "api/json_in.h"
#include "api/once.h"
#include "api/resource.h"
#include "api/run_in.h"
#include "api/ticket.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/sandbox/sandbox.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define CONCURRENCY 8
#define CONCURRENCY_MAX 64

struct batch_body {
    struct json_object *items; /* borrowed from the tree */
    uint64_t concurrency;
};

static int read_items(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    struct batch_body *body = target;
    char item[FIELD_POINTER_SIZE];
    size_t count;

    if (!json_object_is_type(value, json_type_array)) {
        return field_wrong_type(pointer, "an array of run and runCode bodies", value, err);
    }
    count = json_object_array_length(value);
    if (count == 0 || count > BATCH_ITEMS_MAX) {
        return err_field(err, ERR_BAD_VALUE, pointer, "%s must have 1 to %d items", pointer,
                         BATCH_ITEMS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        struct json_object *one = json_object_array_get_idx(value, i);

        if (!json_object_is_type(one, json_type_object)) {
            return field_wrong_type(field_pointer_index(item, pointer, i), "an object", one, err);
        }
    }
    body->items = value;
    return 0;
}

static const struct field batch_fields[] = {
    { .name = "items", .type = FIELD_OTHER, .required = true, .read = read_items },
    { .name = "concurrency",
      .type = FIELD_WHOLE,
      .offset = offsetof(struct batch_body, concurrency),
      .min = 1,
      .max = CONCURRENCY_MAX },
};
static const struct field_table batch_table = { batch_fields, COUNT_OF(batch_fields), NULL };

/* ---- items ---- */

/* The pointer is one into the whole body. */
static void point_into_item(struct err *err, size_t index)
{
    char rest[sizeof(err->pointer)];

    memcpy(rest, err->pointer, sizeof(rest));
    (void)snprintf(err->pointer, sizeof(err->pointer), "/items/%zu%.90s", index, rest);
}

static int read_kind(struct json_object *item, enum run_kind *ret_kind, struct err *err)
{
    bool command = json_object_object_get_ex(item, "command", NULL) != 0;
    bool code = json_object_object_get_ex(item, "code", NULL) != 0;

    if (command == code) {
        return err_set(err, ERR_BAD_VALUE, 0, "an item has either \"command\" or \"code\"");
    }
    *ret_kind = command ? RUN_COMMAND : RUN_CODE;
    return 0;
}

static struct run_request *read_item(const struct api_call *call, struct json_object *item,
                                     struct err *err)
{
    const struct run_in_base base = resource_base(call);
    struct run_request *request = NULL;
    enum run_kind kind;

    if (read_kind(item, &kind, err) < 0) {
        return NULL;
    }
    request = run_in_read(kind, item, &base, err);
    if (request != NULL && ticket_check(call, request, err) < 0) {
        run_request_free(request);
        return NULL;
    }
    return request;
}

static void complete(const struct api_call *call, struct json_object *item, size_t index,
                     struct run_request *request)
{
    const struct session_actor actor = resource_actor(call);
    const char *text = json_object_to_json_string_ext(item, JSON_C_TO_STRING_PLAIN);

    request->caller = actor.caller;
    request->all = actor.all;
    hash_sha256_hex(text, strlen(text), request->fingerprint);
    once_name_part(call, index, request);
}

static void set_item(struct api_call *call, struct batch *batch, struct json_object *item,
                     size_t index)
{
    const struct ticket ticket = { .form = TICKET_JSON };
    struct err err = ERR_INIT;
    struct run_request *request = read_item(call, item, &err);
    bool cancels;

    if (request == NULL) {
        point_into_item(&err, index);
        batch_set_refused(batch, index, &err);
        return;
    }
    cancels = ticket_cancels(call, &ticket, request);
    complete(call, item, index, request);
    batch_set_request(batch, index, request, cancels);
}

/* ---- the call ---- */

static int read_form(const struct api_call *call, bool *ret_lines, struct err *err)
{
    static const char *const offered[] = { "application/json", "application/x-ndjson", NULL };
    int form = header_accept(api_call_header(call, "Accept"), offered);

    if (form < 0) {
        return err_set(err, ERR_NOT_ACCEPTABLE, 0,
                       "the Accept header leaves out application/json and application/x-ndjson");
    }
    *ret_lines = form == 1;
    return 0;
}

static int read_body(const struct api_call *call, struct json_object **ret_object,
                     struct batch_body *ret_body, struct err *err)
{
    *ret_object = json_in_parse(call->body, call->body_size, err);
    *ret_body = (struct batch_body){ .concurrency = CONCURRENCY };
    return *ret_object == NULL ? -1 : field_read(&batch_table, *ret_object, ret_body, err);
}

void resource_batch(struct api_call *call)
{
    CLEANUP_JSON struct json_object *object = NULL;
    struct batch_body body = { .items = NULL };
    struct batch_plan plan = { .lines = false };
    struct batch *batch;
    struct err err = ERR_INIT;

    if (read_form(call, &plan.lines, &err) < 0 || resource_no_query(call, &err) < 0 ||
        read_body(call, &object, &body, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    call->queues = true;
    plan.count = json_object_array_length(body.items);
    plan.concurrency = (size_t)body.concurrency;
    batch = batch_new(call, &plan);
    for (size_t i = 0; i < plan.count; i++) {
        set_item(call, batch, json_object_array_get_idx(body.items, i), i);
    }
    batch_start(batch);
}
