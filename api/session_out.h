/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_out: sessions and files as JSON. Pure; any thread.
 */
#ifndef KERND_API_SESSION_OUT_H
#define KERND_API_SESSION_OUT_H

#include "api/json_out.h"
#include "lib/sandbox/session.h"
#include "lib/sandbox/session_files.h"

/* One object. Of the environment only the names are told. */
void session_out_write(struct json_out *json, const struct session_view *view);

/* The member "labels" of "key=value" texts. */
void session_out_labels(struct json_out *json, const struct strv *labels);

/* {"items": [...], "nextCursor": ...} */
void session_out_page(struct json_out *json, const struct session_page *page);

/* One object: path (and pathPercent when it is not UTF-8), type, size, mtime, mode, etag. */
void session_out_file(struct json_out *json, const char *path, const struct entry *entry);

/* {"items": [...], "nextCursor": ..., "incomplete": ...} */
void session_out_files(struct json_out *json, const struct list *files);

/* "preload": [...] */
void session_out_preload(struct json_out *json, const struct strv *preload);

#endif
