/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write rich results and changed files.
 * Owns: the names and the order of their fields.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox.
 */
#include "api/parts_out.h"

#include <stdint.h>
#include <string.h>

#include "api/json_scan.h"
#include "lib/base/text.h"

/* ---- rich results ---- */

static bool is_json(const struct bundle_part *part)
{
    static const char whole[] = "application/json";
    static const char suffix[] = "+json";
    size_t suffix_size = sizeof(suffix) - 1;

    if (part->mime_size == sizeof(whole) - 1 && memcmp(part->mime, whole, part->mime_size) == 0) {
        return true;
    }
    return part->mime_size > suffix_size &&
           memcmp(part->mime + part->mime_size - suffix_size, suffix, suffix_size) == 0;
}

/*
 * JSON becomes part of the answer as it is, once it is known to be strict; else it is left out.
 * Was it written?
 */
static bool write_part(struct json_out *json, const struct bundle_part *part)
{
    const struct json_scan_bounds bounds = { .depth = PARTS_OUT_DEPTH, .values = SIZE_MAX };
    bool as_json = is_json(part);

    if (as_json && json_scan(part->data, part->data_size, &bounds, NULL) < 0) {
        return false;
    }
    json_out_key_bytes(json, part->mime, part->mime_size);
    if (as_json) {
        json_out_raw(json, part->data, part->data_size);
    } else {
        json_out_text(json, part->data, part->data_size);
    }
    return true;
}

void parts_out_bundle(struct json_out *json, const struct bundle *bundle)
{
    bool whole = !bundle->shortened;

    json_out_key(json, "data");
    json_out_open(json, '{');
    for (size_t i = 0; i < bundle->count; i++) {
        whole = write_part(json, &bundle->parts[i]) && whole;
    }
    json_out_close(json, '}');
    json_out_key(json, "isMain");
    json_out_bool(json, bundle->is_main);
    json_out_key(json, "truncated");
    json_out_bool(json, !whole);
}

/* ---- files ---- */

/* Every byte that is not unreserved (RFC 3986, section 2.3) as an escape; slashes stay. */
static void write_percent_path(struct json_out *json, const char *path)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    CLEANUP_BUF struct buf text = BUF_INIT(strlen(path) * 3);

    for (; *path != '\0'; path++) {
        if (strchr(plain, *path) != NULL) {
            (void)buf_append(&text, path, 1);
        } else {
            (void)buf_printf(&text, "%%%02X", (unsigned)(unsigned char)*path);
        }
    }
    json_out_key(json, "pathPercent");
    json_out_text(json, text.data, text.size);
}

static const char *change_text(enum run_change change)
{
    switch (change) {
    case RUN_CREATED:
        return "created";
    case RUN_MODIFIED:
        return "modified";
    case RUN_DELETED:
        return "deleted";
    }
    return NULL;
}

void parts_out_change(struct json_out *json, const char *path, uint64_t size,
                      enum run_change change)
{
    json_out_key(json, "path");
    json_out_string(json, path);
    /* A name that is not UTF-8 is told twice: to read, and to fetch. */
    if (!text_utf8_valid(path, strlen(path))) {
        write_percent_path(json, path);
    }
    json_out_key(json, "size");
    json_out_count(json, size);
    json_out_key(json, "change");
    json_out_string(json, change_text(change));
}

/* ---- what was cut ---- */

void parts_out_truncated(struct json_out *json, bool in_stdout, bool in_stderr)
{
    json_out_key(json, "truncated");
    json_out_bool(json, in_stdout || in_stderr);
    json_out_key(json, "truncatedStreams");
    json_out_open(json, '[');
    if (in_stdout) {
        json_out_string(json, "stdout");
    }
    if (in_stderr) {
        json_out_string(json, "stderr");
    }
    json_out_close(json, ']');
}
