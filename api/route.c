/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the table of routes, and finding the right row.
 * Owns: the table.
 * Threads: any (pure functions).
 * May include: lib/base.
 */
#include "api/route.h"

#include <stdio.h>
#include <string.h>

#include "api/mcp.h"
#include "api/resource_archive.h"
#include "api/resource_batch.h"
#include "api/resource_environment.h"
#include "api/resource_execution.h"
#include "api/resource_file.h"
#include "api/resource_image.h"
#include "api/resource_kernel.h"
#include "api/resource_meta.h"
#include "api/resource_metrics.h"
#include "api/resource_run.h"
#include "api/resource_session.h"
#include "api/resource_session_make.h"
#include "api/resource_snapshot.h"
#include "api/resource_spec.h"
#include "api/resource_token.h"
#include "lib/base/text.h"

static void answer_options(struct api_call *call);

/* clang-format off */
static const struct api_route routes[] = {
    { "GET", "/healthz", resource_meta_health, API_BODY_NONE, ROUTE_OPEN, ROUTE_REPEATS },
    { "GET", "/readyz", resource_meta_ready, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/openapi.json", resource_spec_json, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/openapi.yaml", resource_spec_yaml, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/v1/version", resource_meta_version, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/v1/capabilities", resource_meta_capabilities, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/v1/stats", resource_meta_stats, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/metrics", resource_metrics, API_BODY_NONE, ROUTE_FULL, ROUTE_REPEATS },
    { "GET", "/v1/tokens", resource_token_list, API_BODY_NONE, ROUTE_FULL, ROUTE_REPEATS },
    /* No Idempotency-Key: the answer that it keeps would hold the token. */
    { "POST", "/v1/tokens", resource_token_make, API_BODY_JSON, ROUTE_FULL, ROUTE_REPEATS },
    { "DELETE", "/v1/tokens/{id}", resource_token_revoke, API_BODY_NONE, ROUTE_FULL, ROUTE_REPEATS },
    { "GET", "/v1/images", resource_image_list, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "POST", "/v1/images/pull", resource_image_pull, API_BODY_JSON, ROUTE_FULL, ROUTE_ONCE },
    { "POST", "/v1/images/load", resource_image_load, API_BODY_FILE, ROUTE_FULL, ROUTE_REPEATS },
    { "POST", "/mcp", mcp_post, API_BODY_JSON, ROUTE_TOKEN, ROUTE_REPEATS },
    { "POST", "/v1/run", resource_run_command, API_BODY_JSON, ROUTE_TOKEN, ROUTE_ONCE },
    { "POST", "/v1/runCode", resource_run_code, API_BODY_JSON, ROUTE_TOKEN, ROUTE_ONCE },
    { "POST", "/v1/batch", resource_batch, API_BODY_JSON, ROUTE_TOKEN, ROUTE_ONCE_BY_PARTS },
    { "GET", "/v1/executions", resource_execution_list, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/v1/executions/{id}", resource_execution_get, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "DELETE", "/v1/executions/{id}", resource_execution_cancel, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/v1/executions/{id}/events", resource_execution_events, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/v1/executions/{id}/stdout", resource_execution_output_stdout, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/v1/executions/{id}/stderr", resource_execution_output_stderr, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "POST", "/v1/executions/{id}/stdin", resource_execution_input_stdin, API_BODY_FILE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "POST", "/v1/executions/{id}/signal", resource_execution_input_signal, API_BODY_JSON, ROUTE_TOKEN, ROUTE_REPEATS },
    { "POST", "/v1/sessions", resource_session_make, API_BODY_JSON, ROUTE_TOKEN, ROUTE_ONCE },
    { "GET", "/v1/sessions", resource_session_list, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/v1/sessions/{id}", resource_session_get, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "PATCH", "/v1/sessions/{id}", resource_session_patch, API_BODY_JSON, ROUTE_TOKEN, ROUTE_REPEATS },
    { "DELETE", "/v1/sessions/{id}", resource_session_delete, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "POST", "/v1/sessions/{id}/keepalive", resource_session_keepalive, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "POST", "/v1/sessions/{id}/fork", resource_session_fork, API_BODY_JSON, ROUTE_TOKEN, ROUTE_ONCE },
    { "POST", "/v1/sessions/{id}/setup", resource_session_make_setup, API_BODY_JSON, ROUTE_TOKEN, ROUTE_ONCE },
    { "POST", "/v1/sessions/{id}/run", resource_run_session_command, API_BODY_JSON, ROUTE_TOKEN, ROUTE_ONCE },
    { "POST", "/v1/sessions/{id}/runCode", resource_run_session_code, API_BODY_JSON, ROUTE_TOKEN, ROUTE_ONCE },
    { "POST", "/v1/sessions/{id}/kernels", resource_kernel_open, API_BODY_JSON, ROUTE_TOKEN, ROUTE_ONCE },
    { "GET", "/v1/sessions/{id}/kernels", resource_kernel_list, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/v1/sessions/{id}/kernels/{kid}", resource_kernel_get, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "DELETE", "/v1/sessions/{id}/kernels/{kid}", resource_kernel_delete, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "POST", "/v1/sessions/{id}/kernels/{kid}/cells", resource_kernel_cell, API_BODY_JSON, ROUTE_TOKEN, ROUTE_ONCE },
    { "POST", "/v1/sessions/{id}/kernels/{kid}/interrupt", resource_kernel_interrupt, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "POST", "/v1/sessions/{id}/kernels/{kid}/restart", resource_kernel_restart, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/v1/sessions/{id}/files", resource_file_list, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/v1/sessions/{id}/files/{path...}", resource_file_get, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "PUT", "/v1/sessions/{id}/files/{path...}", resource_file_put, API_BODY_FILE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "DELETE", "/v1/sessions/{id}/files/{path...}", resource_file_delete, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "POST", "/v1/sessions/{id}/files:move", resource_file_move, API_BODY_JSON, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/v1/sessions/{id}/archive", resource_archive_get, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "PUT", "/v1/sessions/{id}/archive", resource_archive_put, API_BODY_FILE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "POST", "/v1/sessions/{id}/restore", resource_archive_restore, API_BODY_JSON, ROUTE_TOKEN, ROUTE_REPEATS },
    { "POST", "/v1/sessions/{id}/snapshots", resource_snapshot_make, API_BODY_JSON, ROUTE_TOKEN, ROUTE_ONCE },
    { "POST", "/v1/environments", resource_environment_make, API_BODY_JSON, ROUTE_FULL, ROUTE_ONCE },
    { "GET", "/v1/environments", resource_environment_list, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/v1/environments/{id}", resource_environment_get, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "DELETE", "/v1/environments/{id}", resource_environment_delete, API_BODY_NONE, ROUTE_FULL, ROUTE_REPEATS },
    { "GET", "/v1/environments/{id}/log", resource_environment_log, API_BODY_NONE, ROUTE_FULL, ROUTE_REPEATS },
    { "GET", "/v1/snapshots", resource_snapshot_list, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/v1/snapshots/{id}", resource_snapshot_get, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "DELETE", "/v1/snapshots/{id}", resource_snapshot_delete, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "GET", "/v1/snapshots/{id}/content", resource_snapshot_content, API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS },
    { "PUT", "/v1/snapshots/{id}/content", resource_snapshot_make_import, API_BODY_FILE, ROUTE_TOKEN, ROUTE_REPEATS },
};
/* clang-format on */

#define ROUTE_COUNT (sizeof(routes) / sizeof(routes[0]))

/* Serves OPTIONS of every path that has a row. */
static const struct api_route options_route = { "OPTIONS",     "*",         answer_options,
                                                API_BODY_NONE, ROUTE_TOKEN, ROUTE_REPEATS };

/* ---- by number ---- */

size_t route_count(void)
{
    return ROUTE_COUNT;
}

size_t route_index(const struct api_route *route)
{
    return route == NULL || route == &options_route ? ROUTE_COUNT : (size_t)(route - routes);
}

const char *route_pattern(size_t index)
{
    return index < ROUTE_COUNT ? routes[index].pattern : "none";
}

const char *route_method(size_t index)
{
    return index < ROUTE_COUNT ? routes[index].method : "any";
}

/* ---- patterns ---- */

/* Walks a pattern's segments. NULL behind the last one. */
static const char *next_segment(const char *pattern, size_t *ret_size)
{
    if (*pattern != '/' || pattern[1] == '\0') {
        return NULL;
    }
    *ret_size = strcspn(pattern + 1, "/");
    return pattern + 1;
}

static bool is_parameter(const char *segment)
{
    return *segment == '{';
}

static bool takes_rest(const char *segment, size_t size)
{
    return is_parameter(segment) && size > 5 && memcmp(segment + size - 4, "...}", 4) == 0;
}

bool route_matches(const char *pattern, const struct decode_path *path)
{
    size_t size = 0;
    size_t at = 0;
    const char *segment = NULL;

    while ((segment = next_segment(pattern, &size)) != NULL) {
        const struct decode_segment *given = &path->segments[at];

        if (at >= path->count || at >= DECODE_SEGMENTS_MAX) {
            return false;
        }
        if (takes_rest(segment, size)) {
            return true;
        }
        if (is_parameter(segment)
                ? !given->plain
                : given->size != size || memcmp(given->text, segment, size) != 0) {
            return false;
        }
        pattern = segment + size;
        at++;
    }
    return at == path->count;
}

const char *route_parameter(const char *pattern, const char *name, const struct decode_path *path,
                            size_t *ret_size)
{
    size_t name_size = strlen(name);
    size_t size = 0;
    const char *segment = NULL;

    for (size_t at = 0; (segment = next_segment(pattern, &size)) != NULL; at++) {
        bool rest = takes_rest(segment, size);

        if (is_parameter(segment) && size == name_size + (rest ? 5 : 2) &&
            memcmp(segment + 1, name, name_size) == 0) {
            const struct decode_segment *given = &path->segments[at];

            *ret_size = rest ? path->size - (size_t)(given->text - path->text) : given->size;
            return given->text;
        }
        pattern = segment + size;
    }
    return NULL;
}

/* ---- the table ---- */

/* "GET, HEAD, OPTIONS" of the rows that match. False when there are none. */
static bool list_methods(const struct decode_path *path, char *ret_allow, size_t allow_size)
{
    size_t used = 0;

    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        const char *method = routes[i].method;

        if (route_matches(routes[i].pattern, path) && used < allow_size) {
            used += (size_t)snprintf(ret_allow + used, allow_size - used, "%s%s", method,
                                     text_equal(method, "GET") ? ", HEAD, " : ", ");
        }
    }
    if (used > 0 && used < allow_size) {
        (void)snprintf(ret_allow + used, allow_size - used, "OPTIONS");
    }
    return used > 0;
}

static const struct api_route *find_row(const char *method, const struct decode_path *path)
{
    const char *wanted = text_equal(method, "HEAD") ? "GET" : method;

    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (text_equal(routes[i].method, wanted) && route_matches(routes[i].pattern, path)) {
            return &routes[i];
        }
    }
    return NULL;
}

const struct api_route *route_find(const char *method, const char *target, char *ret_allow,
                                   size_t allow_size, struct err *err)
{
    struct decode_path path;
    const struct api_route *row = NULL;

    if (decode_path(target, &path, err) < 0) {
        return NULL;
    }
    row = find_row(method, &path);
    if (row != NULL) {
        return row;
    }
    if (!list_methods(&path, ret_allow, allow_size)) {
        (void)err_set(err, ERR_ROUTE_NOT_FOUND, 0, "this server has no such path");
        return NULL;
    }
    if (text_equal(method, "OPTIONS")) {
        return &options_route;
    }
    (void)err_set(err, ERR_METHOD_NOT_ALLOWED, 0, "this path has no method %.16s", method);
    (void)err_remedy(err, "use one of: %.200s", ret_allow);
    return NULL;
}

static void answer_options(struct api_call *call)
{
    char allow[128] = "";
    struct decode_path path;

    if (decode_path(call->target, &path, NULL) == 0) {
        (void)list_methods(&path, allow, sizeof(allow));
    }
    call->reply.status = 204;
    api_reply_header(&call->reply, "Allow", allow);
    api_call_finish(call);
}
