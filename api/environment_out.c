/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write environments.
 * Owns: the names and the order of their fields.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox.
 */
#include "api/environment_out.h"

#include <stddef.h>

#include "api/member_out.h"
#include "api/session_out.h"

void environment_out_write(struct json_out *json, const struct environments_view *view, bool setup)
{
    json_out_open(json, '{');
    member_out_text(json, "id", view->id);
    member_out_text(json, "name", view->name);
    member_out_text(json, "state", environments_state_text(view->state));
    member_out_text(json, "engine", view->spec.engine);
    member_out_text(json, "image", view->spec.image);
    member_out_text(json, "setup", setup ? view->spec.setup : NULL);
    session_out_preload(json, &view->spec.preload);
    json_out_key(json, "madeWith");
    json_out_open(json, '{');
    member_out_text(json, "python", view->spec.python);
    member_out_text(json, "node", view->spec.node);
    json_out_close(json, '}');
    json_out_key(json, "bytes");
    json_out_count(json, view->bytes);
    member_out_text(json, "executionId", view->execution_id);
    json_out_key(json, "createdAt");
    json_out_time(json, view->created_ms);
    json_out_close(json, '}');
}

void environment_out_page(struct json_out *json, const struct environments_page *page, bool setup)
{
    json_out_open(json, '{');
    json_out_key(json, "items");
    json_out_open(json, '[');
    for (size_t i = 0; i < page->count; i++) {
        environment_out_write(json, &page->items[i], setup);
    }
    json_out_close(json, ']');
    member_out_text(json, "nextCursor", page->next_cursor);
    json_out_close(json, '}');
}
