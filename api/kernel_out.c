/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write kernels.
 * Owns: the names and the order of their fields.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox.
 */
#include "api/kernel_out.h"

static void write_text(struct json_out *json, const char *name, const char *text)
{
    json_out_key(json, name);
    json_out_string(json, *text == '\0' ? NULL : text);
}

/* A timer of 0 is none. */
static void write_timer(struct json_out *json, const char *name, double value)
{
    json_out_key(json, name);
    if (value > 0) {
        json_out_number(json, value);
    } else {
        json_out_null(json);
    }
}

static void write_time(struct json_out *json, const char *name, int64_t wall_ms)
{
    json_out_key(json, name);
    json_out_time(json, wall_ms);
}

void kernel_out_write(struct json_out *json, const struct kernels_view *view)
{
    json_out_open(json, '{');
    write_text(json, "id", view->id);
    write_text(json, "sessionId", view->session_id);
    write_text(json, "language", view->language);
    write_text(json, "interpreter", view->interpreter);
    write_text(json, "state", kernels_state_text(view->state));
    write_text(json, "reason", view->state == KERNELS_DEAD ? view->reason : "");
    json_out_key(json, "cells");
    json_out_count(json, view->cells);
    json_out_key(json, "queued");
    json_out_count(json, view->queued);
    json_out_key(json, "memoryBytes");
    if (view->memory_bytes >= 0) {
        json_out_whole(json, view->memory_bytes);
    } else {
        json_out_null(json);
    }
    write_timer(json, "timeoutS", view->timeout_s);
    write_timer(json, "idleTimeoutS", view->idle_timeout_s);
    write_timer(json, "ttlS", view->ttl_s);
    write_time(json, "createdAt", view->created_ms);
    write_time(json, "usedAt", view->used_ms);
    write_time(json, "endedAt", view->ended_ms);
    json_out_close(json, '}');
}

void kernel_out_list(struct json_out *json, const struct kernels_list *list)
{
    json_out_open(json, '{');
    json_out_key(json, "items");
    json_out_open(json, '[');
    /* The list is the newest first. */
    for (size_t i = list->count; i > 0; i--) {
        kernel_out_write(json, &list->items[i - 1]);
    }
    json_out_close(json, ']');
    json_out_close(json, '}');
}
