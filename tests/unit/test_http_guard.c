/* SPDX-License-Identifier: Apache-2.0 */
/* Heads that must pass and heads that must not, each with the code that it gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/http_guard.h"

#define HEADERS(...) ((const char *[]){ __VA_ARGS__, NULL })

static struct strv hosts;

static struct http_guard_head head_of(const char *const *fields, struct api_header *storage)
{
    struct http_guard_head head = {
        .method = "GET", .target = "/v1/run?x=1", .version = "HTTP/1.1", .headers = storage
    };

    for (size_t i = 0; fields[i] != NULL; i += 2) {
        storage[head.header_count].name = fields[i];
        storage[head.header_count++].value = fields[i + 1];
    }
    return head;
}

static enum err_code form_of(const char *const *fields, struct http_guard_framing *ret_framing)
{
    struct api_header storage[HTTP_GUARD_HEADERS_MAX + 2];
    struct http_guard_head head = head_of(fields, storage);
    struct err err = ERR_INIT;
    int result = http_guard_form(&head, ret_framing, &err);

    assert_int_equal(result, err.code == ERR_NONE ? 0 : -1);
    return err.code;
}

static enum err_code source_of(const char *const *fields, const struct http_guard_place *place)
{
    struct api_header storage[HTTP_GUARD_HEADERS_MAX];
    struct http_guard_head head = head_of(fields, storage);
    struct err err = ERR_INIT;
    int result = http_guard_source(&head, place, &err);

    assert_int_equal(result, err.code == ERR_NONE ? 0 : -1);
    return err.code;
}

/* ---- request line and fields ---- */

static enum err_code line_of(const char *method, const char *target, const char *version)
{
    struct http_guard_head head = { .method = method, .target = target, .version = version };
    struct http_guard_framing framing;
    struct err err = ERR_INIT;

    (void)http_guard_form(&head, &framing, &err);
    return err.code;
}

static void test_request_line(void **state)
{
    (void)state;
    assert_int_equal(line_of("GET", "/", "HTTP/1.1"), ERR_NONE);
    assert_int_equal(line_of("PATCH", "/a%2Fb?c=d", "HTTP/1.0"), ERR_NONE);
    assert_int_equal(line_of("BREW", "/\xc3\xa9", "HTTP/1.1"), ERR_NONE);
    assert_int_equal(line_of("", "/", "HTTP/1.1"), ERR_BAD_REQUEST);
    assert_int_equal(line_of("G@T", "/", "HTTP/1.1"), ERR_BAD_REQUEST);
    assert_int_equal(line_of("AMETHODWITHFARTOOMANYLETTERS", "/", "HTTP/1.1"), ERR_BAD_REQUEST);
    assert_int_equal(line_of("GET", "", "HTTP/1.1"), ERR_BAD_REQUEST);
    assert_int_equal(line_of("OPTIONS", "*", "HTTP/1.1"), ERR_BAD_REQUEST);
    assert_int_equal(line_of("GET", "http://localhost/", "HTTP/1.1"), ERR_BAD_REQUEST);
    assert_int_equal(line_of("GET", "/a b", "HTTP/1.1"), ERR_BAD_REQUEST);
    assert_int_equal(line_of("GET", "/a\x01", "HTTP/1.1"), ERR_BAD_REQUEST);
    assert_int_equal(line_of("GET", "/a#b", "HTTP/1.1"), ERR_BAD_REQUEST);
    assert_int_equal(line_of("GET", "/", ""), ERR_BAD_REQUEST);
    assert_int_equal(line_of("GET", "/", "HTTP/1.2"), ERR_BAD_REQUEST);
    assert_int_equal(line_of("GET", "/", "HTTP/2.0"), ERR_BAD_REQUEST);
}

static void test_fields(void **state)
{
    struct http_guard_framing framing;
    const char *many[2 * (HTTP_GUARD_HEADERS_MAX + 1) + 1] = { NULL };

    (void)state;
    assert_int_equal(form_of(HEADERS("X-A", ""), &framing), ERR_NONE);
    assert_int_equal(form_of(HEADERS("X-A", "tab\tis fine"), &framing), ERR_NONE);
    assert_int_equal(form_of(HEADERS("X-A ", "blank before the colon"), &framing), ERR_BAD_HEADER);
    assert_int_equal(form_of(HEADERS("", "no name"), &framing), ERR_BAD_HEADER);
    assert_int_equal(form_of(HEADERS("X(A)", "1"), &framing), ERR_BAD_HEADER);
    assert_int_equal(form_of(HEADERS("X-A", "bell\a"), &framing), ERR_BAD_HEADER);
    assert_int_equal(form_of(HEADERS("X-A", "a\nX-B: b"), &framing), ERR_BAD_HEADER);
    for (size_t i = 0; i < sizeof(many) / sizeof(many[0]) - 1; i++) {
        many[i] = "a";
    }
    assert_int_equal(form_of(many, &framing), ERR_BAD_HEADER);
    many[2 * HTTP_GUARD_HEADERS_MAX] = NULL;
    assert_int_equal(form_of(many, &framing), ERR_NONE);
}

/* ---- framing ---- */

static void test_framing_told(void **state)
{
    struct http_guard_framing framing;

    (void)state;
    assert_int_equal(form_of(HEADERS("A", "b"), &framing), ERR_NONE);
    assert_false(framing.chunked || framing.has_length || framing.expects_continue);
    assert_int_equal(form_of(HEADERS("content-length", "17"), &framing), ERR_NONE);
    assert_true(framing.has_length && framing.length == 17 && !framing.chunked);
    assert_int_equal(form_of(HEADERS("Transfer-Encoding", "Chunked"), &framing), ERR_NONE);
    assert_true(framing.chunked && !framing.has_length);
    assert_int_equal(form_of(HEADERS("Content-Language", "de", "TE", "trailers"), &framing),
                     ERR_NONE);
    assert_int_equal(form_of(HEADERS("Content-Length", "1", "Expect", "100-Continue"), &framing),
                     ERR_NONE);
    assert_true(framing.expects_continue);
}

static void test_framing_refused(void **state)
{
    static const char *const bad[][5] = {
        { "Content-Length", "1", "Content-Length", "2" },
        { "Content-Length", "5", "content-length", "5" },
        { "Content-Length", "5", "Transfer-Encoding", "chunked" },
        { "Content-Length", "-1" },
        { "Content-Length", "1e3" },
        { "Content-Length", "" },
        { "Content-Length", "+1" },
        { "Content-Length", "0x10" },
        { "Content-Length", "99999999999999999999999" },
        { "Content-Length", "1, 1" },
        { "Content-Length0", "25" },     /* what a folded line makes of it */
        { "Content-Length-Hint", "25" }, /* and may make of it */
        { "content-length", "5", "content-length5", "2" },
        { "Transfer-Encodingked", "chun" },
        { "Transfer-Encoding", "gzip, chunked" },
        { "Transfer-Encoding", "identity" },
        { "Transfer-Encoding", "" },
        { "Transfer-Encoding", "chunked ", "Transfer-Encoding", "chunked" },
        { "Transfer-Encoding", "xchunked" },
        { "Expect", "200-ok" },
        { "Expect", "100-continue", "Expect", "100-continue" },
    };
    struct http_guard_framing framing;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(form_of(bad[i], &framing), ERR_BAD_HEADER);
    }
}

static void test_no_chunks_in_http_1_0(void **state)
{
    struct api_header field = { "Transfer-Encoding", "chunked" };
    struct http_guard_head head = {
        .method = "PUT", .target = "/", .version = "HTTP/1.0", .headers = &field, .header_count = 1
    };
    struct http_guard_framing framing;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(http_guard_form(&head, &framing, &err), -1);
    assert_int_equal(err.code, ERR_BAD_HEADER);
}

/* ---- Host and Origin ---- */

static enum err_code host_of(const char *host)
{
    const struct http_guard_place place = {
        .tcp = true, .port = 5376, .address = "127.0.0.1", .hosts = &hosts
    };

    return source_of(HEADERS("Host", host), &place);
}

static void test_hosts_on_tcp(void **state)
{
    static const char *const good[] = {
        "localhost:5376", "127.0.0.1:5376", "[::1]:5376", "LocalHost:5376", "localhost",
        "127.0.0.1",      "box.test:5376",  "box.test",   "tunnel:9000",
    };
    static const char *const bad[] = {
        "attacker.example",
        "attacker.example:5376",
        "127.0.0.1.nip.io:5376",
        "localhost:5377",
        "localhost:",
        "localhost:5376x",
        "localhost.:5376",
        "xlocalhost:5376",
        "127.0.0.2:5376",
        "[::1:5376",
        "[::1]5376",
        "::1",
        "",
        "localhost:05376 ",
        "localhost:5376@attacker",
        "box.test:9000",
        "tunnel:5376",
        "localhost,attacker.example",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(host_of(good[i]), ERR_NONE);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(host_of(bad[i]), ERR_HOST_DENIED);
    }
}

static void test_hosts_on_a_unix_socket(void **state)
{
    const struct http_guard_place place = { .tcp = false };

    (void)state;
    assert_int_equal(source_of(HEADERS("Host", "localhost"), &place), ERR_NONE);
    assert_int_equal(source_of(HEADERS("Host", "localhost:8080"), &place), ERR_NONE);
    assert_int_equal(source_of(HEADERS("Host", "attacker.example"), &place), ERR_HOST_DENIED);
}

static void test_address_of_the_connection(void **state)
{
    const struct http_guard_place place = { .tcp = true, .port = 80, .address = "192.0.2.7" };

    (void)state;
    assert_int_equal(source_of(HEADERS("Host", "192.0.2.7"), &place), ERR_NONE);
    assert_int_equal(source_of(HEADERS("Host", "192.0.2.8"), &place), ERR_HOST_DENIED);
}

static void test_exactly_one_host(void **state)
{
    const struct http_guard_place place = { .tcp = true, .port = 1 };

    (void)state;
    assert_int_equal(source_of(HEADERS("X-Host", "localhost"), &place), ERR_BAD_HEADER);
    assert_int_equal(source_of(HEADERS("Host", "localhost", "host", "localhost"), &place),
                     ERR_BAD_HEADER);
}

static enum err_code origin_of(const char *origin)
{
    const struct http_guard_place place = { .tcp = true, .port = 5376 };

    return source_of(HEADERS("Host", "localhost:5376", "Origin", origin), &place);
}

static void test_origins(void **state)
{
    const struct http_guard_place place = { .tcp = true, .port = 5376 };

    (void)state;
    assert_int_equal(origin_of("http://localhost:5376"), ERR_NONE);
    assert_int_equal(origin_of("null"), ERR_ORIGIN_DENIED);
    assert_int_equal(origin_of(""), ERR_ORIGIN_DENIED);
    assert_int_equal(origin_of("https://attacker.example"), ERR_ORIGIN_DENIED);
    assert_int_equal(origin_of("http://localhost:5376.attacker.example"), ERR_ORIGIN_DENIED);
    assert_int_equal(origin_of("http://127.0.0.1:5376"), ERR_ORIGIN_DENIED);
    assert_int_equal(origin_of("https://localhost:5376"), ERR_ORIGIN_DENIED);
    assert_int_equal(origin_of("http://localhost"), ERR_ORIGIN_DENIED);
    assert_int_equal(source_of(HEADERS("Host", "localhost", "Origin", "http://localhost", "Origin",
                                       "http://localhost"),
                               &place),
                     ERR_ORIGIN_DENIED);
}

/* ---- media types and request ids ---- */

static enum err_code type_of(enum api_body wanted, const char *type, bool has_body)
{
    struct api_header field = { "Content-Type", type };
    struct http_guard_head head = { .headers = &field, .header_count = type != NULL ? 1 : 0 };
    struct err err = ERR_INIT;

    (void)http_guard_media_type(&head, wanted, has_body, &err);
    return err.code;
}

static void test_media_types(void **state)
{
    static const char *const raw[] = { "application/octet-stream", "application/gzip",
                                       "application/zstd",         "application/x-xz",
                                       "application/x-bzip2",      "application/x-tar" };
    static const char *const not_json[] = { "text/plain",
                                            "application/x-www-form-urlencoded",
                                            "multipart/form-data; boundary=x",
                                            "text/json",
                                            "application/jsonx",
                                            "application/json; charset=latin-1",
                                            "application/json; charset=utf-8x",
                                            "" };

    (void)state;
    assert_int_equal(type_of(API_BODY_JSON, "application/json", true), ERR_NONE);
    assert_int_equal(type_of(API_BODY_JSON, "Application/JSON;charset=\"UTF-8\"", true), ERR_NONE);
    assert_int_equal(type_of(API_BODY_JSON, NULL, false), ERR_NONE);
    assert_int_equal(type_of(API_BODY_JSON, NULL, true), ERR_UNSUPPORTED_MEDIA_TYPE);
    for (size_t i = 0; i < sizeof(not_json) / sizeof(not_json[0]); i++) {
        assert_int_equal(type_of(API_BODY_JSON, not_json[i], true), ERR_UNSUPPORTED_MEDIA_TYPE);
        assert_int_equal(type_of(API_BODY_NONE, not_json[i], true), ERR_NONE);
    }
    assert_int_equal(type_of(API_BODY_JSON, "text/plain", false), ERR_UNSUPPORTED_MEDIA_TYPE);
    assert_int_equal(type_of(API_BODY_FILE, NULL, true), ERR_NONE);
    for (size_t i = 0; i < sizeof(raw) / sizeof(raw[0]); i++) {
        assert_int_equal(type_of(API_BODY_FILE, raw[i], true), ERR_NONE);
    }
    assert_int_equal(type_of(API_BODY_FILE, "text/html", true), ERR_UNSUPPORTED_MEDIA_TYPE);
}

static void test_compressed_or_doubled_types(void **state)
{
    struct api_header fields[] = { { "Content-Type", "application/json" },
                                   { "Content-Encoding", "gzip" } };
    struct http_guard_head head = { .headers = fields, .header_count = 2 };
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(http_guard_media_type(&head, API_BODY_JSON, true, &err), -1);
    assert_int_equal(err.code, ERR_UNSUPPORTED_MEDIA_TYPE);
    fields[1] = fields[0];
    assert_int_equal(http_guard_media_type(&head, API_BODY_JSON, true, &err), -1);
    assert_int_equal(err.code, ERR_BAD_HEADER);
}

static void check_id(const char *given, bool is_taken)
{
    struct api_header field = { "X-Request-Id", given };
    struct http_guard_head head = { .headers = &field, .header_count = 1 };
    char id[HTTP_GUARD_ID_SIZE];

    assert_int_equal(strcmp(http_guard_request_id(&head, id), given) == 0, is_taken);
    assert_true(is_taken || strncmp(id, "req_", 4) == 0);
}

static void test_request_ids(void **state)
{
    char longest[HTTP_GUARD_ID_SIZE + 1];

    (void)state;
    memset(longest, 'a', sizeof(longest));
    longest[HTTP_GUARD_ID_SIZE] = '\0';
    check_id(longest, false);
    longest[HTTP_GUARD_ID_SIZE - 1] = '\0';
    check_id(longest, true);
    check_id("a.B_c-9", true);
    check_id("", false);
    check_id("a b", false);
    check_id("a\"b", false);
}

static const char *trace_of(const char *value)
{
    static struct api_header field;
    struct http_guard_head head = { .headers = &field, .header_count = 1 };

    field = (struct api_header){ "traceparent", value };
    return http_guard_trace(&head);
}

static void test_trace_contexts(void **state)
{
    static const char good[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    (void)state;
    assert_ptr_equal(trace_of(good), good);
    assert_null(trace_of("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"));
    assert_null(trace_of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0"));
    assert_null(trace_of("00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
    assert_null(trace_of(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_line),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_framing_told),
        cmocka_unit_test(test_framing_refused),
        cmocka_unit_test(test_no_chunks_in_http_1_0),
        cmocka_unit_test(test_hosts_on_tcp),
        cmocka_unit_test(test_hosts_on_a_unix_socket),
        cmocka_unit_test(test_address_of_the_connection),
        cmocka_unit_test(test_exactly_one_host),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_media_types),
        cmocka_unit_test(test_compressed_or_doubled_types),
        cmocka_unit_test(test_request_ids),
        cmocka_unit_test(test_trace_contexts),
    };
    int failed;

    strv_add_all(&hosts, "box.test", "tunnel:9000", NULL);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    strv_done(&hosts);
    return failed;
}
