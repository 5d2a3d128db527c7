/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: turn an err into application/problem+json.
 * Owns: status, code text, title and default remedy of every error code.
 * Threads: any (pure functions).
 * May include: lib/base.
 */
#include "api/problem.h"

#include <stdio.h>
#include <string.h>

#include "api/json_out.h"

#define INSTANCE_MAX 512 /* bytes of the target that are shown */
#define LATER true       /* worth trying again */

/* clang-format off */
/* code, status, code text, retryable, retry after s, title, remedy */
#define PROBLEMS(ROW) \
    ROW(NONE, 500, "internal", false, 0, "Internal error", \
        "report the requestId together with the server's log") \
    ROW(BAD_JSON, 400, "bad_json", false, 0, "The body is not strict JSON", \
        "send one JSON object in UTF-8 as RFC 8259 has it: double quotes, no comments, no duplicate names, no NaN") \
    ROW(BAD_HEADER, 400, "bad_header", false, 0, "A header is malformed", \
        "correct the header that is named, or leave it out") \
    ROW(BAD_REQUEST, 400, "bad_request", false, 0, "The request is malformed", \
        "send a well-formed HTTP/1.1 request") \
    ROW(BAD_CURSOR, 400, "bad_cursor", false, 0, "The cursor is not one of this server's", \
        "start the listing again without a cursor") \
    ROW(UNAUTHORIZED, 401, "unauthorized", false, 0, "A valid token is needed", \
        "send \"Authorization: Bearer TOKEN\" with the token from the server's token file, or use its Unix socket") \
    ROW(FORBIDDEN, 403, "forbidden", false, 0, "This caller may not do that", \
        "use a token with more rights") \
    ROW(HOST_DENIED, 403, "host_denied", false, 0, "The Host header is not this server's", \
        "use the address that the server printed at its start, such as http://127.0.0.1:5376") \
    ROW(ORIGIN_DENIED, 403, "origin_denied", false, 0, "Web pages may not call this server", \
        "call it from a program, not from a page of another origin") \
    ROW(MOUNT_REFUSED, 403, "mount_refused", false, 0, "This host path may not be mounted", \
        "choose a directory below your own home that holds no credentials") \
    ROW(NETWORK_DENIED, 403, "network_denied", false, 0, "This caller may not use the network", \
        "leave \"network\" out, or use a token with full rights") \
    ROW(ROUTE_NOT_FOUND, 404, "route_not_found", false, 0, "There is nothing at this path", \
        "see GET /openapi.json for the paths there are") \
    ROW(SESSION_NOT_FOUND, 404, "session_not_found", false, 0, "No such session", \
        "list the sessions with GET /v1/sessions, or create one with POST /v1/sessions") \
    ROW(KERNEL_NOT_FOUND, 404, "kernel_not_found", false, 0, "No such kernel", \
        "list the session's kernels, or open a new one") \
    ROW(EXECUTION_NOT_FOUND, 404, "execution_not_found", false, 0, "No such execution", \
        "list the executions with GET /v1/executions") \
    ROW(FILE_NOT_FOUND, 404, "file_not_found", false, 0, "No such file", \
        "list the files of the session first") \
    ROW(SNAPSHOT_NOT_FOUND, 404, "snapshot_not_found", false, 0, "No such snapshot", \
        "list the snapshots with GET /v1/snapshots") \
    ROW(ENVIRONMENT_NOT_FOUND, 404, "environment_not_found", false, 0, "No such environment", \
        "list the environments with GET /v1/environments") \
    ROW(IMAGE_NOT_FOUND, 404, "image_not_found", false, 0, "No such image", \
        "pull it (POST /v1/images/pull), load it (POST /v1/images/load), or name one that is there") \
    ROW(TOKEN_NOT_FOUND, 404, "token_not_found", false, 0, "No such token", \
        "list the tokens with GET /v1/tokens") \
    ROW(METHOD_NOT_ALLOWED, 405, "method_not_allowed", false, 0, "This path has no such method", \
        "use one of the methods in the Allow header") \
    ROW(NOT_ACCEPTABLE, 406, "not_acceptable", false, 0, "No form of the answer suits the Accept header", \
        "send \"Accept: application/json\", or no Accept header") \
    ROW(REQUEST_TIMEOUT, 408, "request_timeout", LATER, 0, "The request did not arrive in time", \
        "send headers and body without long pauses") \
    ROW(SESSION_EXISTS, 409, "session_exists", false, 0, "A session with this id exists and differs", \
        "use the existing session, or choose another id") \
    ROW(SESSION_BUSY, 409, "session_busy", LATER, 1, "The session is busy", \
        "wait until its running executions end, or cancel them") \
    ROW(KERNEL_EXISTS, 409, "kernel_exists", false, 0, "A kernel with this id exists", \
        "use the existing kernel, or choose another id") \
    ROW(KERNEL_DEAD, 409, "kernel_dead", false, 0, "The kernel is dead", \
        "restart the kernel or open a new one; its variables are lost") \
    ROW(KERNEL_LOST, 410, "kernel_lost", false, 0, "The kernel ended with an earlier server", \
        "open a new kernel; the session's files are as they were") \
    ROW(EXECUTION_EXISTS, 409, "execution_exists", false, 0, "An execution with this id exists and differs", \
        "choose another id") \
    ROW(EXECUTION_DONE, 409, "execution_done", false, 0, "The execution has ended", \
        "read its result with GET /v1/executions/{id}") \
    ROW(FILE_EXISTS, 409, "file_exists", false, 0, "The file exists", \
        "choose another name, or ask to overwrite") \
    ROW(IDEMPOTENCY_IN_FLIGHT, 409, "idempotency_in_flight", LATER, 1, "The first request with this key is still running", \
        "wait for the execution that the Location header names") \
    ROW(CONFLICT, 409, "conflict", false, 0, "The request conflicts with what is there", \
        "read the current state and try again") \
    ROW(EVENTS_EXPIRED, 410, "events_expired", false, 0, "These events are no longer kept", \
        "see how it ended with GET /v1/executions/{id}") \
    ROW(SESSION_EXPIRED, 410, "session_expired", false, 0, "The session has expired", \
        "create a new session") \
    ROW(ETAG_MISMATCH, 412, "etag_mismatch", false, 0, "The file has changed meanwhile", \
        "read it again and repeat the change with its new ETag") \
    ROW(BODY_TOO_LARGE, 413, "body_too_large", false, 0, "The body is too large", \
        "send less: large inputs go into the workspace as files") \
    ROW(URI_TOO_LONG, 414, "uri_too_long", false, 0, "The path is too long", \
        "use a shorter path") \
    ROW(UNSUPPORTED_MEDIA_TYPE, 415, "unsupported_media_type", false, 0, "This content type is not taken here", \
        "send \"Content-Type: application/json\"") \
    ROW(RANGE_NOT_SATISFIABLE, 416, "range_not_satisfiable", false, 0, "The range lies outside the content", \
        "ask for a range below the size in the Content-Range header") \
    ROW(UNKNOWN_FIELD, 422, "unknown_field", false, 0, "The body has a field that does not exist", \
        "remove the field; GET /openapi.json lists the fields there are") \
    ROW(BAD_VALUE, 422, "bad_value", false, 0, "A field has a value that it can't have", \
        "correct the field that the pointer names; GET /openapi.json has its type and range") \
    ROW(LIMIT_EXCEEDS_MAXIMUM, 422, "limit_exceeds_maximum", false, 0, "A limit is above this server's maximum", \
        "lower the limit; GET /v1/capabilities tells the maxima") \
    ROW(BAD_PATH, 422, "bad_path", false, 0, "This path can't be used", \
        "use a path relative to the workspace, without \"..\" and without symbolic links") \
    ROW(BAD_ARCHIVE, 422, "bad_archive", false, 0, "The archive can't be used", \
        "send a .tar.gz of plain files, directories and links that stay inside it") \
    ROW(IDEMPOTENCY_MISMATCH, 422, "idempotency_mismatch", false, 0, "This Idempotency-Key was used with another body", \
        "use a fresh key for each new request") \
    ROW(NOT_SUPPORTED_HERE, 422, "not_supported_here", false, 0, "This server can't do that here", \
        "leave the option out; GET /v1/capabilities tells what works on this host") \
    ROW(LIMITS_NOT_ENFORCED, 422, "limits_not_enforced", false, 0, "A limit could not be put in force here", \
        "run kernd where it owns a cgroup subtree, or leave \"requireLimits\" out") \
    ROW(SETUP_FAILED, 422, "setup_failed", false, 0, "The setup step failed", \
        "read the output of the setup step and correct it") \
    ROW(PRELOAD_FAILED, 422, "preload_failed", false, 0, "A module of \"preload\" can't be imported", \
        "correct its name, or have the setup install it; the environment's log has the traceback") \
    ROW(TOO_MANY_REQUESTS, 429, "too_many_requests", LATER, 1, "Too many requests at once", \
        "send fewer requests in parallel") \
    ROW(INTERNAL, 500, "internal", false, 0, "Internal error", \
        "report the requestId together with the server's log") \
    ROW(IO, 500, "internal", false, 0, "Internal error", \
        "check the disk and the limits of the server, and its log") \
    ROW(LOST, 500, "lost", false, 0, "The server was killed while it worked on this", \
        "see what is there before you send it again: it may have been done in part") \
    ROW(IMAGE_PULL_FAILED, 502, "image_pull_failed", LATER, 0, "The image could not be pulled", \
        "check the name, and that this host reaches the registry; or load an archive: POST /v1/images/load") \
    ROW(QUEUE_FULL, 503, "queue_full", LATER, 1, "The queue is full", \
        "try again after the time in Retry-After") \
    ROW(QUEUE_TIMEOUT, 503, "queue_timeout", LATER, 1, "The execution waited too long in the queue", \
        "try again later, or allow a longer wait") \
    ROW(SHUTTING_DOWN, 503, "shutting_down", LATER, 2, "The server is shutting down", \
        "try again when it is back") \
    ROW(ENGINE_UNAVAILABLE, 503, "engine_unavailable", LATER, 0, "No box can start on this host", \
        "see GET /readyz for the reason; the host must allow unprivileged user namespaces and have bubblewrap") \
    ROW(BOX_START_FAILED, 503, "box_start_failed", LATER, 0, "The box could not start", \
        "see the detail; check the limits that were asked for, and GET /readyz") \
    ROW(NOT_READY, 503, "not_ready", LATER, 1, "The server is not ready", \
        "see the detail for what is missing") \
    ROW(WORKSPACE_FULL, 507, "workspace_full", false, 0, "The workspace is full", \
        "remove files, or ask for a larger diskMb") \
    ROW(STORE_FULL, 507, "store_full", false, 0, "The server's disk is full", \
        "free disk space where the server keeps its state") \
    ROW(CANCELLED, 500, "internal", false, 0, "Internal error", \
        "report the requestId together with the server's log") \
    ROW(DEADLINE, 500, "internal", false, 0, "Internal error", \
        "report the requestId together with the server's log")
/* clang-format on */

#define ROW_OF(name, number, text, again, after, headline, advice)           \
    static const struct problem problem_##name = { .status = (number),       \
                                                   .code = (text),           \
                                                   .title = (headline),      \
                                                   .retryable = (again),     \
                                                   .retry_after_s = (after), \
                                                   .remedy = (advice) };
#define CASE_OF(name, number, text, again, after, headline, advice) \
    case ERR_##name:                                                \
        return &problem_##name;

PROBLEMS(ROW_OF)

const struct problem *problem_of(enum err_code code)
{
    /* Every code has its row: a missing one is a compile error (-Wswitch-enum). */
    switch (code) {
        PROBLEMS(CASE_OF)
    case ERR_MAX:
        break;
    }
    return &problem_INTERNAL;
}

static void write_errors(struct json_out *json, const struct err *err, const char *code)
{
    json_out_key(json, "errors");
    json_out_open(json, '[');
    if (err->pointer[0] != '\0') {
        json_out_open(json, '{');
        json_out_key(json, "pointer");
        json_out_string(json, err->pointer);
        json_out_key(json, "code");
        json_out_string(json, code);
        json_out_key(json, "message");
        json_out_string(json, err->msg);
        json_out_close(json, '}');
    }
    json_out_close(json, ']');
}

static int seconds_of(const struct problem *problem, const struct err *err)
{
    return err->retry_after_s > 0 ? err->retry_after_s : problem->retry_after_s;
}

static void write_what(struct json_out *json, const struct problem *problem, const struct err *err)
{
    json_out_key(json, "title");
    json_out_string(json, problem->title);
    json_out_key(json, "status");
    json_out_whole(json, problem->status);
    json_out_key(json, "detail");
    json_out_string(json, err->msg[0] == '\0' ? problem->title : err->msg);
}

static void write_help(struct json_out *json, const struct problem *problem, const struct err *err)
{
    int retry_after_s = seconds_of(problem, err);

    json_out_key(json, "retryable");
    json_out_bool(json, problem->retryable);
    json_out_key(json, "retryAfterS");
    if (retry_after_s > 0) {
        json_out_whole(json, retry_after_s);
    } else {
        json_out_null(json);
    }
    json_out_key(json, "remediation");
    json_out_string(json, err->remedy[0] == '\0' ? problem->remedy : err->remedy);
    write_errors(json, err, problem->code);
}

void problem_write_members(struct json_out *json, const struct err *err)
{
    const struct problem *problem = problem_of(err->code);

    write_what(json, problem, err);
    json_out_key(json, "code");
    json_out_string(json, problem->code);
    write_help(json, problem, err);
}

static void write_instance(struct json_out *json, const char *target)
{
    size_t shown = target == NULL ? 0 : strcspn(target, "?");

    json_out_key(json, "instance");
    if (target == NULL) {
        json_out_null(json);
    } else {
        json_out_text(json, target, shown < INSTANCE_MAX ? shown : INSTANCE_MAX);
    }
}

static void write_body(struct buf *out, const struct problem *problem, const struct err *err,
                       const char *target, const char *request_id)
{
    struct json_out json;
    char type[64];

    (void)snprintf(type, sizeof(type), "urn:kernd:error:%s", problem->code);
    json_out_init(&json, out);
    json_out_open(&json, '{');
    json_out_key(&json, "type");
    json_out_string(&json, type);
    write_what(&json, problem, err);
    write_instance(&json, target);
    json_out_key(&json, "code");
    json_out_string(&json, problem->code);
    json_out_key(&json, "requestId");
    json_out_string(&json, request_id);
    write_help(&json, problem, err);
    json_out_close(&json, '}');
}

void problem_reply(struct api_reply *reply, const struct err *err, const char *target,
                   const char *request_id)
{
    const struct problem *problem = problem_of(err->code);
    int retry_after_s = seconds_of(problem, err);
    char seconds[16];

    api_reply_done(reply);
    api_reply_init(reply);
    reply->status = problem->status;
    api_reply_header(reply, "Content-Type", "application/problem+json");
    if (problem->status == 401) {
        api_reply_header(reply, "WWW-Authenticate", "Bearer");
    }
    if (retry_after_s > 0) {
        (void)snprintf(seconds, sizeof(seconds), "%d", retry_after_s);
        api_reply_header(reply, "Retry-After", seconds);
    }
    write_body(&reply->body, problem, err, target, request_id);
}
