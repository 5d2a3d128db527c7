/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/json_in.h"
#include "api/problem.h"
#include "lib/base/text.h"

static const char *header_of(const struct api_reply *reply, const char *name)
{
    for (size_t i = 0; i + 1 < reply->headers.count; i += 2) {
        if (text_equal(reply->headers.items[i], name)) {
            return reply->headers.items[i + 1];
        }
    }
    return NULL;
}

static const char *text_of(struct json_object *object, const char *name)
{
    return json_object_get_string(json_object_object_get(object, name));
}

static void every_code_is_complete(void **state)
{
    (void)state;
    for (int code = ERR_NONE; code < ERR_MAX; code++) {
        const struct problem *problem = problem_of((enum err_code)code);

        assert_in_range(problem->status, 400, 507);
        assert_true(strspn(problem->code, "abcdefghijklmnopqrstuvwxyz_") == strlen(problem->code));
        assert_true(strlen(problem->title) > 0);
        assert_true(strlen(problem->remedy) > 0);
        assert_null(strchr(problem->remedy, '\n'));
        assert_true(problem->retryable || problem->retry_after_s == 0);
    }
}

static void statuses_are_the_documented_ones(void **state)
{
    static const struct {
        enum err_code code;
        int status;
        const char *text;
    } samples[] = {
        { ERR_BAD_JSON, 400, "bad_json" },
        { ERR_UNAUTHORIZED, 401, "unauthorized" },
        { ERR_HOST_DENIED, 403, "host_denied" },
        { ERR_EXECUTION_NOT_FOUND, 404, "execution_not_found" },
        { ERR_METHOD_NOT_ALLOWED, 405, "method_not_allowed" },
        { ERR_NOT_ACCEPTABLE, 406, "not_acceptable" },
        { ERR_REQUEST_TIMEOUT, 408, "request_timeout" },
        { ERR_KERNEL_DEAD, 409, "kernel_dead" },
        { ERR_EVENTS_EXPIRED, 410, "events_expired" },
        { ERR_ETAG_MISMATCH, 412, "etag_mismatch" },
        { ERR_BODY_TOO_LARGE, 413, "body_too_large" },
        { ERR_UNSUPPORTED_MEDIA_TYPE, 415, "unsupported_media_type" },
        { ERR_RANGE_NOT_SATISFIABLE, 416, "range_not_satisfiable" },
        { ERR_UNKNOWN_FIELD, 422, "unknown_field" },
        { ERR_LIMIT_EXCEEDS_MAXIMUM, 422, "limit_exceeds_maximum" },
        { ERR_TOO_MANY_REQUESTS, 429, "too_many_requests" },
        { ERR_IO, 500, "internal" },
        { ERR_CANCELLED, 500, "internal" },
        { ERR_QUEUE_FULL, 503, "queue_full" },
        { ERR_BOX_START_FAILED, 503, "box_start_failed" },
        { ERR_WORKSPACE_FULL, 507, "workspace_full" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        assert_int_equal(problem_of(samples[i].code)->status, samples[i].status);
        assert_string_equal(problem_of(samples[i].code)->code, samples[i].text);
    }
}

static void body_names_the_field(void **state)
{
    struct api_reply reply;
    struct err err = ERR_INIT;
    struct json_object *object = NULL;
    struct json_object *field = NULL;

    (void)state;
    api_reply_init(&reply);
    (void)err_field(&err, ERR_BAD_VALUE, "/timeoutS", "timeoutS must be positive");
    api_reply_problem(&reply, &err, "/v1/run?token=s3cret", "req_1");
    assert_int_equal(reply.status, 422);
    assert_string_equal(header_of(&reply, "Content-Type"), "application/problem+json");
    assert_null(header_of(&reply, "Retry-After"));
    object = json_in_parse(reply.body.data, reply.body.size, NULL);
    assert_non_null(object);
    assert_string_equal(text_of(object, "type"), "urn:kernd:error:bad_value");
    assert_string_equal(text_of(object, "detail"), "timeoutS must be positive");
    assert_string_equal(text_of(object, "instance"), "/v1/run");
    assert_string_equal(text_of(object, "requestId"), "req_1");
    assert_string_equal(text_of(object, "status"), "422");
    assert_true(strlen(text_of(object, "remediation")) > 0);
    field = json_object_array_get_idx(json_object_object_get(object, "errors"), 0);
    assert_string_equal(text_of(field, "pointer"), "/timeoutS");
    assert_string_equal(text_of(field, "code"), "bad_value");
    (void)json_object_put(object);
    api_reply_done(&reply);
}

static void hints_become_headers(void **state)
{
    struct api_reply reply;
    struct err err = ERR_INIT;

    (void)state;
    api_reply_init(&reply);
    (void)buf_append_text(&reply.body, "half an answer");
    (void)err_set(&err, ERR_QUEUE_FULL, 0, "the queue is full");
    err.retry_after_s = 7;
    api_reply_problem(&reply, &err, NULL, NULL);
    assert_string_equal(header_of(&reply, "Retry-After"), "7");
    assert_non_null(strstr(reply.body.data, "\"retryable\":true,\"retryAfterS\":7"));
    assert_non_null(strstr(reply.body.data, "\"instance\":null"));
    assert_null(strstr(reply.body.data, "half an answer"));
    (void)err_set(&err, ERR_UNAUTHORIZED, 0, "no token");
    api_reply_problem(&reply, &err, "/", "r");
    assert_string_equal(header_of(&reply, "WWW-Authenticate"), "Bearer");
    assert_int_equal(reply.headers.count, 4);
    api_reply_done(&reply);
}

/* Client bytes in a message may be cut in the middle of a character. */
static void body_is_strict_whatever_the_message_holds(void **state)
{
    struct api_reply reply;
    struct err err = ERR_INIT;
    struct json_object *object = NULL;

    (void)state;
    api_reply_init(&reply);
    (void)err_field(&err, ERR_UNKNOWN_FIELD, "/a\xE2\x82", "no field \"\xFF\n\" here");
    api_reply_problem(&reply, &err, "/\xC3", "\x80");
    object = json_in_parse(reply.body.data, reply.body.size, NULL);
    assert_non_null(object);
    (void)json_object_put(object);
    api_reply_done(&reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_is_complete),
        cmocka_unit_test(statuses_are_the_documented_ones),
        cmocka_unit_test(body_names_the_field),
        cmocka_unit_test(hints_become_headers),
        cmocka_unit_test(body_is_strict_whatever_the_message_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
