/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/decode.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"

static void paths_are_split_then_decoded_once(void **state)
{
    static const struct {
        const char *raw;
        const char *text;
        size_t count;
    } samples[] = {
        { "/", "", 0 },
        { "/v1", "v1", 1 },
        { "/v1/run", "v1/run", 2 },
        { "/%76%31/r%75n", "v1/run", 2 },
        { "/f/report%2520name.txt", "f/report%20name.txt", 2 },
        { "/f/report%20name.txt", "f/report name.txt", 2 },
        { "/f/a+b.txt", "f/a+b.txt", 2 },
        { "/f/%C3.txt", "f/\xC3.txt", 2 },
        { "/f/a%0Ab%22%C3%A9.txt", "f/a\nb\"\xC3\xA9.txt", 2 },
        { "/f/...", "f/...", 2 },
        { "/f/.a", "f/.a", 2 },
        { "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r", 18 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct decode_path path;
        struct err err = ERR_INIT;

        assert_int_equal(decode_path(samples[i].raw, &path, &err), 0);
        assert_string_equal(path.text, samples[i].text);
        assert_int_equal(path.count, samples[i].count);
        assert_int_equal(path.size, strlen(samples[i].text));
    }
}

static void bad_paths_are_refused(void **state)
{
    static const struct {
        const char *raw;
        enum err_code code;
    } samples[] = {
        { "", ERR_BAD_PATH },
        { "v1/run", ERR_BAD_PATH },
        { "http://host/v1", ERR_BAD_PATH },
        { "/f/%2e%2e%2f%2e%2e%2fetc%2fpasswd", ERR_BAD_PATH },
        { "/f/..%2f..%2fetc%2fpasswd", ERR_BAD_PATH },
        { "/f/%2Fetc%2Fpasswd", ERR_BAD_PATH },
        { "/f/../x", ERR_BAD_PATH },
        { "/f/.", ERR_BAD_PATH },
        { "/f/%2E%2e", ERR_BAD_PATH },
        { "/f/a%00b", ERR_BAD_PATH },
        { "/f/%zz", ERR_BAD_PATH },
        { "/f/%4", ERR_BAD_PATH },
        { "/f/%", ERR_BAD_PATH },
        { "//", ERR_ROUTE_NOT_FOUND },
        { "/v1/", ERR_ROUTE_NOT_FOUND },
        { "/v1//run", ERR_ROUTE_NOT_FOUND },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct decode_path path;
        struct err err = ERR_INIT;

        assert_int_equal(decode_path(samples[i].raw, &path, &err), -1);
        assert_int_equal(err.code, samples[i].code);
    }
}

static void long_paths_are_refused(void **state)
{
    CLEANUP_FREE char *raw = alloc_zero(DECODE_PATH_MAX + 2, 1);
    struct decode_path path;
    struct err err = ERR_INIT;

    (void)state;
    memset(raw, 'a', DECODE_PATH_MAX + 1);
    raw[0] = '/';
    assert_int_equal(decode_path(raw, &path, &err), -1);
    assert_int_equal(err.code, ERR_URI_TOO_LONG);
    raw[DECODE_PATH_MAX] = '\0';
    assert_int_equal(decode_path(raw, &path, &err), 0);
    assert_int_equal(path.size, DECODE_PATH_MAX - 1);
}

static void segments_tell_what_they_are_fit_for(void **state)
{
    struct decode_path path;

    (void)state;
    assert_int_equal(decode_path("/plain%20%C3%A9/tab%09/%7F/%C3", &path, NULL), 0);
    assert_int_equal(path.count, 4);
    assert_true(path.segments[0].plain);
    assert_int_equal(path.segments[0].size, 8);
    assert_false(path.segments[1].plain);
    assert_false(path.segments[2].plain);
    assert_false(path.segments[3].plain);
}

static const char *const known[] = { "path", "limit", "follow", NULL };

static void queries_are_read(void **state)
{
    const struct decode_range range = { .min = 1, .max = 100 };
    struct decode_query query;
    struct err err = ERR_INIT;
    uint64_t limit = 50;
    bool follow = false;

    (void)state;
    assert_int_equal(decode_query("", known, &query, &err), 0);
    assert_null(decode_query_text(&query, "path"));
    assert_int_equal(decode_query_count(&query, "limit", &range, &limit, &err), 0);
    assert_int_equal(limit, 50);
    assert_int_equal(decode_query("p%61th=a+b%2Bc%26d%C3%A9&&limit=7&follow", known, &query, &err),
                     0);
    assert_string_equal(decode_query_text(&query, "path"), "a b+c&d\xC3\xA9");
    assert_int_equal(decode_query_count(&query, "limit", &range, &limit, &err), 0);
    assert_int_equal(limit, 7);
    assert_int_equal(decode_query_bool(&query, "follow", &follow, &err), 0);
    assert_true(follow);
    assert_int_equal(decode_query("follow=false&path=", known, &query, &err), 0);
    assert_int_equal(decode_query_bool(&query, "follow", &follow, &err), 0);
    assert_false(follow);
    assert_string_equal(decode_query_text(&query, "path"), "");
}

static void bad_queries_are_refused(void **state)
{
    static const struct {
        const char *raw;
        enum err_code code;
    } samples[] = {
        { "token=x", ERR_UNKNOWN_FIELD },   { "Path=x", ERR_UNKNOWN_FIELD },
        { "=x", ERR_UNKNOWN_FIELD },        { "%zz=x", ERR_UNKNOWN_FIELD },
        { "path=%zz", ERR_BAD_VALUE },      { "path=a%00b", ERR_BAD_VALUE },
        { "path=%FF", ERR_BAD_VALUE },      { "path=%", ERR_BAD_VALUE },
        { "path=a&path=b", ERR_BAD_VALUE },
    };
    static char long_query[DECODE_QUERY_MAX + 10] = "path=";
    struct decode_query query;

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct err err = ERR_INIT;

        assert_int_equal(decode_query(samples[i].raw, known, &query, &err), -1);
        assert_int_equal(err.code, samples[i].code);
    }
    memset(long_query + 5, 'a', DECODE_QUERY_MAX);
    assert_int_equal(decode_query(long_query, known, &query, NULL), -1);
}

static void bad_query_values_are_refused(void **state)
{
    static const char *const texts[] = { "limit=",   "limit=0",   "limit=101",
                                         "limit=-1", "limit=1.5", "limit=x" };
    const struct decode_range range = { .min = 1, .max = 100 };
    struct decode_query query;
    uint64_t limit = 50;
    bool follow = true;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct err err = ERR_INIT;

        assert_int_equal(decode_query(texts[i], known, &query, &err), 0);
        assert_int_equal(decode_query_count(&query, "limit", &range, &limit, &err), -1);
        assert_int_equal(err.code, ERR_BAD_VALUE);
        assert_int_equal(limit, 50);
    }
    assert_int_equal(decode_query("follow=maybe", known, &query, NULL), 0);
    assert_int_equal(decode_query_bool(&query, "follow", &follow, NULL), -1);
    assert_true(follow);
}

static void some_parameters_take_any_bytes(void **state)
{
    static const char *const names[] = { "*path", "text", NULL };
    struct decode_query query;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(decode_query("path=d%E9/%FF&text=x", names, &query, &err), 0);
    assert_string_equal(decode_query_text(&query, "path"), "d\xE9/\xFF");
    assert_int_equal(decode_query("text=d%E9", names, &query, &err), -1);
    assert_int_equal(err.code, ERR_BAD_VALUE);
    assert_int_equal(decode_query("path=%00", names, &query, &err), -1);
    assert_int_equal(decode_query("*path=x", names, &query, &err), -1);
    assert_int_equal(err.code, ERR_UNKNOWN_FIELD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(some_parameters_take_any_bytes),
        cmocka_unit_test(paths_are_split_then_decoded_once),
        cmocka_unit_test(bad_paths_are_refused),
        cmocka_unit_test(long_paths_are_refused),
        cmocka_unit_test(segments_tell_what_they_are_fit_for),
        cmocka_unit_test(queries_are_read),
        cmocka_unit_test(bad_queries_are_refused),
        cmocka_unit_test(bad_query_values_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
