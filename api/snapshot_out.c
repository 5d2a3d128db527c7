/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write snapshots.
 * Owns: the names and the order of their fields.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox.
 */
#include "api/snapshot_out.h"

#include <string.h>

#include "api/member_out.h"
#include "api/percent.h"
#include "api/session_out.h"
#include "lib/base/buf.h"
#include "lib/base/text.h"

/* "why path" */
static void write_left(struct json_out *json, const char *text)
{
    const char *path = strchr(text, ' ') == NULL ? "" : strchr(text, ' ') + 1;
    CLEANUP_BUF struct buf escaped = BUF_INIT(strlen(path) * 3 + 1);

    json_out_open(json, '{');
    member_out_string(json, "path", path);
    if (!text_utf8_valid(path, strlen(path)) && percent_path(&escaped, path) == 0) {
        member_out_string(json, "pathPercent", escaped.data);
    }
    json_out_key(json, "why");
    json_out_text(json, text, strcspn(text, " "));
    json_out_close(json, '}');
}

void snapshot_out_write(struct json_out *json, const struct snapshots_view *view)
{
    json_out_open(json, '{');
    member_out_string(json, "id", view->id);
    member_out_text(json, "name", view->name);
    member_out_text(json, "sessionId", view->session_id);
    session_out_labels(json, &view->labels);
    member_out_string(json, "digest", view->digest);
    member_out_count(json, "bytes", view->bytes);
    member_out_count(json, "entries", view->entries);
    json_out_key(json, "leftOut");
    json_out_open(json, '[');
    for (size_t i = 0; i < view->left_out.count; i++) {
        write_left(json, view->left_out.items[i]);
    }
    json_out_close(json, ']');
    json_out_key(json, "leftOutTruncated");
    json_out_bool(json, view->left_truncated);
    json_out_key(json, "createdAt");
    json_out_time(json, view->created_ms);
    json_out_close(json, '}');
}

void snapshot_out_page(struct json_out *json, const struct snapshots_page *page)
{
    json_out_open(json, '{');
    json_out_key(json, "items");
    json_out_open(json, '[');
    for (size_t i = 0; i < page->count; i++) {
        snapshot_out_write(json, &page->items[i]);
    }
    json_out_close(json, ']');
    member_out_string(json, "nextCursor", page->next_cursor);
    json_out_close(json, '}');
}
