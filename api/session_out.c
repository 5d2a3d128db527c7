/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write sessions and their files.
 * Owns: the names and the order of their fields.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox.
 */
#include "api/session_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/limits_out.h"
#include "api/member_out.h"
#include "api/percent.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"

static void write_count(struct json_out *json, const char *name, uint64_t value, bool known)
{
    json_out_key(json, name);
    if (known) {
        json_out_count(json, value);
    } else {
        json_out_null(json);
    }
}

/* ---- a session ---- */

void session_out_labels(struct json_out *json, const struct strv *labels)
{
    json_out_key(json, "labels");
    json_out_open(json, '{');
    for (size_t i = 0; i < labels->count; i++) {
        const char *value = strchr(labels->items[i], '=');

        json_out_key_bytes(json, labels->items[i], (size_t)(value - labels->items[i]));
        json_out_string(json, value + 1);
    }
    json_out_close(json, '}');
}

void session_out_preload(struct json_out *json, const struct strv *preload)
{
    json_out_key(json, "preload");
    json_out_open(json, '[');
    for (size_t i = 0; i < preload->count; i++) {
        json_out_string(json, preload->items[i]);
    }
    json_out_close(json, ']');
}

static void write_mounts(struct json_out *json, const struct options *options)
{
    json_out_key(json, "mounts");
    json_out_open(json, '{');
    for (size_t i = 0; i < options->mount_count; i++) {
        const struct run_mount *mount = &options->mounts[i];

        json_out_key(json, mount->source);
        json_out_open(json, '[');
        json_out_string(json, mount->target);
        json_out_string(json, mount->writable ? "rw" : "ro");
        json_out_close(json, ']');
    }
    json_out_close(json, '}');
}

/* Values may be secrets, and whoever set them knows them. */
static void write_env_names(struct json_out *json, const struct strv *env)
{
    json_out_key(json, "envNames");
    json_out_open(json, '[');
    for (size_t i = 0; i < env->count; i++) {
        json_out_text(json, env->items[i], strcspn(env->items[i], "="));
    }
    json_out_close(json, ']');
}

static void write_texts(struct json_out *json, const char *name, const struct strv *texts)
{
    json_out_key(json, name);
    json_out_open(json, '[');
    for (size_t i = 0; i < texts->count; i++) {
        json_out_text(json, texts->items[i], strlen(texts->items[i]));
    }
    json_out_close(json, ']');
}

static void write_caps(struct json_out *json, const struct choice *choice)
{
    char all[] = "ALL";
    char *everything[] = { all, NULL };
    const struct strv list = { .items = everything, .count = 1 };

    write_texts(json, "capDrop", choice->some_caps ? &choice->cap_drop : &list);
}

static void write_options(struct json_out *json, const struct options *options)
{
    json_out_key(json, "options");
    json_out_open(json, '{');
    member_out_string(json, "engine", options->choice.engine);
    member_out_string(json, "image", options->choice.image);
    write_texts(json, "profiles", &options->choice.profiles);
    write_texts(json, "egressAllow", &options->choice.egress);
    member_out_string(json, "securityProfile", options->choice.security_profile);
    member_out_string(json, "apparmor", options->choice.apparmor);
    write_caps(json, &options->choice);
    member_out_string(json, "workspace", options->workspace);
    member_out_string(json, "setup", options->setup);
    member_out_string(json, "snapshotId", options->snapshot);
    member_out_string(json, "environment", options->environment);
    session_out_preload(json, &options->preload);
    limits_out_members(json, &options->limits);
    member_out_bool(json, "requireLimits", options->require_limits);
    member_out_bool(json, "network", options->network);
    member_out_string(json, "isolation", options->boot ? "boot" : "auto");
    write_mounts(json, options);
    write_env_names(json, &options->env);
    member_out_bool(json, "depsReadonly", options->deps_readonly);
    member_out_bool(json, "trackFiles", options->track_files);
    member_out_cap(json, "idleTimeoutS", options->idle_timeout_s);
    member_out_cap(json, "ttlS", options->ttl_s);
    write_count(json, "prewarm", options->prewarm, options->prewarm_set);
    json_out_close(json, '}');
}

static void write_executions(struct json_out *json, const struct session_view *view)
{
    json_out_key(json, "executions");
    json_out_open(json, '[');
    for (size_t i = 0; i < view->execution_count; i++) {
        const struct session_execution *execution = &view->executions[i];

        json_out_open(json, '{');
        member_out_string(json, "id", execution->id);
        member_out_string(json, "kind", execution->kind);
        member_out_string(json, "state", execution->queued ? "queued" : "running");
        member_out_time(json, "startedAt", execution->started_ms);
        json_out_close(json, '}');
    }
    json_out_close(json, ']');
}

void session_out_write(struct json_out *json, const struct session_view *view)
{
    json_out_open(json, '{');
    member_out_string(json, "id", view->id);
    member_out_string(json, "state", session_state_text(view->state));
    session_out_labels(json, &view->options.labels);
    member_out_time(json, "createdAt", view->created_ms);
    member_out_time(json, "updatedAt", view->updated_ms);
    member_out_time(json, "lastUsedAt", view->used_ms);
    member_out_time(json, "expiresAt", view->expires_ms);
    member_out_bool(json, "ownedWorkspace", view->owned);
    write_count(json, "workspaceBytes", view->bytes, view->measured);
    write_count(json, "workspaceFiles", view->files, view->measured);
    write_count(json, "runningExecutions", view->execution_count, true);
    write_executions(json, view);
    write_count(json, "kernels", view->kernels, true);
    write_options(json, &view->options);
    json_out_close(json, '}');
}

void session_out_page(struct json_out *json, const struct session_page *page)
{
    json_out_open(json, '{');
    json_out_key(json, "items");
    json_out_open(json, '[');
    for (size_t i = 0; i < page->count; i++) {
        session_out_write(json, &page->items[i]);
    }
    json_out_close(json, ']');
    member_out_string(json, "nextCursor", page->next_cursor);
    json_out_close(json, '}');
}

/* ---- files ---- */

void session_out_file(struct json_out *json, const char *path, const struct entry *entry)
{
    CLEANUP_BUF struct buf escaped = BUF_INIT(strlen(path) * 3);
    char text[ENTRY_ETAG_SIZE + 2];

    json_out_open(json, '{');
    member_out_string(json, "path", path);
    if (!text_utf8_valid(path, strlen(path)) && percent_path(&escaped, path) == 0) {
        member_out_string(json, "pathPercent", escaped.data);
    }
    member_out_string(json, "type", entry_type_text(entry->type));
    json_out_key(json, "size");
    json_out_count(json, entry->size);
    /* Times before 1970 are none that anybody set on purpose. */
    member_out_time(json, "mtime", entry->mtime_ns / CLOCK_NS_PER_MS);
    (void)snprintf(text, sizeof(text), "%04o", entry->mode);
    member_out_string(json, "mode", text);
    (void)snprintf(text, sizeof(text), "\"%s\"", entry->etag);
    member_out_string(json, "etag", text);
    member_out_bool(json, "unreadable", entry->unreadable);
    json_out_close(json, '}');
}

void session_out_files(struct json_out *json, const struct list *files)
{
    CLEANUP_FREE char *cursor = files->next == NULL ? NULL : percent_cursor(files->next);

    json_out_open(json, '{');
    json_out_key(json, "items");
    json_out_open(json, '[');
    for (size_t i = 0; i < files->count; i++) {
        session_out_file(json, files->rows[i].path, &files->rows[i].entry);
    }
    json_out_close(json, ']');
    member_out_string(json, "nextCursor", cursor);
    member_out_bool(json, "incomplete", files->incomplete);
    json_out_close(json, '}');
}
