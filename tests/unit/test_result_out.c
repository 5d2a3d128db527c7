/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/json_in.h"
#include "api/result_out.h"
#include "lib/base/alloc.h"

static const char *text_of(struct json_object *object, const char *name)
{
    return json_object_get_string(json_object_object_get(object, name));
}

/* The rendered result, which must be strict JSON. */
static struct json_object *render(const struct run_request *request,
                                  const struct run_result *result)
{
    CLEANUP_BUF struct buf out = BUF_INIT(1 << 20);
    struct json_out json;
    struct json_object *object = NULL;
    struct err err = ERR_INIT;

    json_out_init(&json, &out);
    result_out_write(&json,
                     &(struct result_out){ .id = "exe_1", .request = request, .result = result });
    assert_false(json_out_failed(&json));
    object = json_in_parse(out.data, out.size, &err);
    if (object == NULL) {
        fail_msg("%s", err.msg);
    }
    return object;
}

static void an_empty_result_is_all_nulls(void **state)
{
    struct run_request *request = run_request_new();
    struct run_result result;
    struct json_object *object = NULL;
    struct json_object *usage = NULL;

    (void)state;
    run_result_init(&result);
    object = render(request, &result);
    usage = json_object_object_get(object, "usage");
    assert_string_equal(text_of(object, "id"), "exe_1");
    assert_string_equal(text_of(object, "kind"), "run");
    assert_null(json_object_object_get(object, "exitCode"));
    assert_null(json_object_object_get(object, "signal"));
    assert_null(json_object_object_get(object, "fault"));
    assert_null(json_object_object_get(object, "startedAt"));
    assert_null(json_object_object_get(usage, "peakMemoryBytes"));
    assert_null(json_object_object_get(usage, "cpuUserMs"));
    assert_string_equal(text_of(object, "success"), "false");
    assert_string_equal(text_of(object, "stdout"), "");
    assert_int_equal(json_object_array_length(json_object_object_get(object, "results")), 0);
    assert_null(json_object_object_get(json_object_object_get(object, "limits"), "cpus"));
    (void)json_object_put(object);
    run_result_done(&result);
    run_request_free(request);
}

static void an_end_by_signal_with_a_fault(void **state)
{
    struct run_request *request = run_request_new();
    struct run_result result;
    struct json_object *object = NULL;
    struct json_object *fault = NULL;

    (void)state;
    run_result_init(&result);
    result.has_exit_code = true;
    result.exit_code = 137;
    result.signal = SIGKILL;
    result.fault = RUN_FAULT_OOM;
    (void)snprintf(result.fault_message, sizeof(result.fault_message), "memory");
    (void)snprintf(result.fault_evidence, sizeof(result.fault_evidence), "cgroup: oom_kill 1");
    result.finished_wall_ms = 1000;
    object = render(request, &result);
    fault = json_object_object_get(object, "fault");
    assert_string_equal(text_of(object, "exitCode"), "137");
    assert_string_equal(text_of(object, "signal"), "KILL");
    assert_string_equal(text_of(fault, "type"), "oom");
    assert_string_equal(text_of(fault, "evidence"), "cgroup: oom_kill 1");
    assert_string_equal(text_of(object, "finishedAt"), "1970-01-01T00:00:01.000Z");
    (void)json_object_put(object);
    result.signal = SIGRTMIN + 2;
    object = render(request, &result);
    assert_string_equal(text_of(object, "signal"), "RTMIN+2");
    (void)json_object_put(object);
    run_result_done(&result);
    run_request_free(request);
}

static void a_cut_never_splits_a_character(void **state)
{
    struct run_request *request = run_request_new();
    struct run_result result;
    struct json_object *object = NULL;

    (void)state;
    run_result_init(&result);
    result.stdout_data = BUF_INIT(100);
    result.stderr_data = BUF_INIT(100);
    (void)buf_append_text(&result.stdout_data, "ab\xE2\x98");
    (void)buf_append_text(&result.stderr_data, "ab\xE2\x98");
    result.truncated_stdout = true;
    object = render(request, &result);
    assert_string_equal(text_of(object, "stdout"), "ab");
    assert_string_equal(text_of(object, "stderr"), "ab\xEF\xBF\xBD");
    assert_string_equal(text_of(object, "truncatedStreams"), "[ \"stdout\" ]");
    (void)json_object_put(object);
    request->stdout_base64 = true;
    object = render(request, &result);
    assert_string_equal(text_of(object, "stdout"), "YWLimA==");
    assert_string_equal(text_of(object, "stdoutEncoding"), "base64");
    (void)json_object_put(object);
    run_result_done(&result);
    run_request_free(request);
}

static void add_part(struct buf *out, const char *mime, const char *data)
{
    size_t mime_size = strlen(mime);
    size_t size = strlen(data);
    const char head[] = { 0, (char)mime_size };
    const char length[] = { 0, 0, (char)(size >> 8), (char)size };

    (void)buf_append(out, head, sizeof(head));
    (void)buf_append(out, mime, mime_size);
    (void)buf_append(out, length, sizeof(length));
    (void)buf_append(out, data, size);
}

static void json_parts_are_values(void **state)
{
    struct run_request *request = run_request_new();
    struct run_result result;
    struct json_object *object = NULL;
    struct json_object *first = NULL;
    struct json_object *data = NULL;

    (void)state;
    run_result_init(&result);
    result.results = alloc_zero(1, sizeof(*result.results));
    result.result_count = 1;
    result.results[0] = BUF_INIT(4096);
    (void)buf_append(&result.results[0], "\x01\x00\x05", 3);
    add_part(&result.results[0], "text/plain", "x\"y");
    add_part(&result.results[0], "application/json", "{\"a\": [1, null]}");
    add_part(&result.results[0], "application/geo+json", "NaN");
    add_part(&result.results[0], "application/x+json", "{\"a\":1,\"a\":2}");
    add_part(&result.results[0], "image/png", "iVBORw0KGgo=");
    object = render(request, &result);
    first = json_object_array_get_idx(json_object_object_get(object, "results"), 0);
    data = json_object_object_get(first, "data");
    assert_string_equal(text_of(first, "isMain"), "true");
    assert_string_equal(text_of(first, "truncated"), "true");
    assert_int_equal(json_object_object_length(data), 3);
    assert_string_equal(text_of(data, "text/plain"), "x\"y");
    assert_true(
        json_object_is_type(json_object_object_get(data, "application/json"), json_type_object));
    assert_string_equal(text_of(data, "image/png"), "iVBORw0KGgo=");
    (void)json_object_put(object);
    run_result_done(&result);
    run_request_free(request);
}

static void names_of_files_can_be_anything(void **state)
{
    struct run_request *request = run_request_new();
    struct run_result result;
    struct json_object *object = NULL;
    struct json_object *files = NULL;
    struct json_object *row = NULL;

    (void)state;
    run_result_init(&result);
    result.changes = alloc_zero(2, sizeof(*result.changes));
    result.change_count = 2;
    result.changes[0] = (struct run_change_row){ .path = alloc_text("a b/\xC3.txt"), .size = 4 };
    result.changes[1] =
        (struct run_change_row){ .path = alloc_text("a\nb\"\xC3\xA9.txt"), .change = RUN_DELETED };
    object = render(request, &result);
    files = json_object_object_get(object, "files");
    row = json_object_array_get_idx(files, 0);
    assert_string_equal(text_of(row, "path"), "a b/\xEF\xBF\xBD.txt");
    assert_string_equal(text_of(row, "pathPercent"), "a%20b/%C3.txt");
    assert_string_equal(text_of(row, "change"), "created");
    row = json_object_array_get_idx(files, 1);
    assert_string_equal(text_of(row, "path"), "a\nb\"\xC3\xA9.txt");
    assert_null(json_object_object_get(row, "pathPercent"));
    assert_string_equal(text_of(row, "change"), "deleted");
    (void)json_object_put(object);
    run_result_done(&result);
    run_request_free(request);
}

static void fetched_files_are_bytes_or_a_reason(void **state)
{
    struct run_request *request = run_request_new();
    struct run_result result;
    struct json_object *object = NULL;
    struct json_object *fetched = NULL;

    (void)state;
    run_result_init(&result);
    result.fetched = alloc_zero(4, sizeof(*result.fetched));
    result.fetched_count = 4;
    result.fetched[0] =
        (struct run_fetched){ .path = alloc_text("a"), .data = alloc_copy("\0", 1), .size = 1 };
    result.fetched[1] = (struct run_fetched){ .path = alloc_text("b"), .reason = "not_found" };
    result.fetched[2] = (struct run_fetched){ .path = alloc_text("a"), .reason = "too_large" };
    result.fetched[3] = (struct run_fetched){ .path = alloc_text("e"), .data = alloc_copy("", 0) };
    object = render(request, &result);
    fetched = json_object_object_get(object, "fetched");
    assert_int_equal(json_object_object_length(fetched), 3);
    assert_string_equal(text_of(json_object_object_get(fetched, "a"), "base64"), "AA==");
    assert_string_equal(text_of(json_object_object_get(fetched, "b"), "error"), "not_found");
    assert_string_equal(text_of(json_object_object_get(fetched, "e"), "base64"), "");
    (void)json_object_put(object);
    run_result_done(&result);
    run_request_free(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_result_is_all_nulls),
        cmocka_unit_test(an_end_by_signal_with_a_fault),
        cmocka_unit_test(a_cut_never_splits_a_character),
        cmocka_unit_test(json_parts_are_values),
        cmocka_unit_test(names_of_files_can_be_anything),
        cmocka_unit_test(fetched_files_are_bytes_or_a_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
