/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write kernels.
 * Owns: the names and the order of their fields.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox.
 */
#include "api/kernel_out.h"

#include "api/member_out.h"

void kernel_out_write(struct json_out *json, const struct kernels_view *view)
{
    json_out_open(json, '{');
    member_out_text(json, "id", view->id);
    member_out_text(json, "sessionId", view->session_id);
    member_out_text(json, "language", view->language);
    member_out_text(json, "interpreter", view->interpreter);
    member_out_text(json, "state", kernels_state_text(view->state));
    member_out_text(json, "reason", view->state == KERNELS_DEAD ? view->reason : "");
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
    member_out_cap(json, "timeoutS", view->timeout_s);
    member_out_cap(json, "idleTimeoutS", view->idle_timeout_s);
    member_out_cap(json, "ttlS", view->ttl_s);
    member_out_time(json, "createdAt", view->created_ms);
    member_out_time(json, "usedAt", view->used_ms);
    member_out_time(json, "endedAt", view->ended_ms);
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
