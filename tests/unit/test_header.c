/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/header.h"

static const char *const offered[] = { "application/json", "application/x-ndjson",
                                       "text/event-stream", NULL };

static void accept_is_negotiated(void **state)
{
    static const struct {
        const char *value;
        int wanted;
    } samples[] = {
        { NULL, 0 },
        { "*/*", 0 },
        { "application/json", 0 },
        { "APPLICATION/JSON", 0 },
        { "text/event-stream", 2 },
        { "text/*", 2 },
        { "application/*", 0 },
        { "text/html", -1 },
        { "text/html, */*;q=0.1", 0 },
        { "application/json;q=0.5, application/x-ndjson", 1 },
        { "application/json;q=0.5, text/event-stream;q=0.9, application/x-ndjson;q=0.8", 2 },
        { "application/json, text/event-stream", 0 },
        { "text/event-stream, application/json", 0 },
        { "*/*, application/json;q=0", 1 },
        { "application/*;q=0, */*", 2 },
        { "application/json;q=0", -1 },
        { "application/json;q=0.001", 0 },
        { "application/json; charset=utf-8; q=0.7", 0 },
        { "application/json;version=\"a,b;q=0\"", 0 },
        { "text/html,,  ,application/x-ndjson", 1 },
        { "nonsense", 0 },
        { "", 0 },
        { "application/json;q=2", 0 },
        { "application/json;q=abc, text/event-stream", 2 },
        { "text/html;q=0.1234", 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        if (header_accept(samples[i].value, offered) != samples[i].wanted) {
            fail_msg("%s", samples[i].value);
        }
    }
}

static void preferences_are_read(void **state)
{
    struct header_preference preference;

    (void)state;
    header_prefer(NULL, &preference);
    assert_false(preference.respond_async);
    header_prefer("respond-async, wait=10", &preference);
    assert_true(preference.respond_async);
    assert_true(preference.wait_given);
    assert_int_equal(preference.wait_s, 10);
    header_prefer("return=minimal, Respond-Async, wait=x", &preference);
    assert_true(preference.respond_async);
    assert_false(preference.wait_given);
    header_prefer("respond-asynchronously", &preference);
    assert_false(preference.respond_async);
}

static void ranges_are_read(void **state)
{
    static const struct {
        const char *value;
        uint64_t size;
        enum header_range wanted;
        uint64_t from;
        uint64_t length;
    } samples[] = {
        { NULL, 10, HEADER_RANGE_WHOLE, 0, 0 },
        { "bytes=0-3", 10, HEADER_RANGE_PART, 0, 4 },
        { "bytes=3-", 10, HEADER_RANGE_PART, 3, 7 },
        { "bytes=-3", 10, HEADER_RANGE_PART, 7, 3 },
        { "bytes=-30", 10, HEADER_RANGE_PART, 0, 10 },
        { "bytes=9-99", 10, HEADER_RANGE_PART, 9, 1 },
        { "Bytes=0-0", 10, HEADER_RANGE_PART, 0, 1 },
        { "bytes=0-18446744073709551615", 10, HEADER_RANGE_PART, 0, 10 },
        { "bytes=10-", 10, HEADER_RANGE_NOT_SATISFIABLE, 0, 0 },
        { "bytes=0-", 0, HEADER_RANGE_NOT_SATISFIABLE, 0, 0 },
        { "bytes=-0", 10, HEADER_RANGE_NOT_SATISFIABLE, 0, 0 },
        { "bytes=-5", 0, HEADER_RANGE_NOT_SATISFIABLE, 0, 0 },
        { "bytes=5-3", 10, HEADER_RANGE_WHOLE, 0, 0 },
        { "bytes=0-1,3-4", 10, HEADER_RANGE_WHOLE, 0, 0 },
        { "bytes=", 10, HEADER_RANGE_WHOLE, 0, 0 },
        { "bytes=-", 10, HEADER_RANGE_WHOLE, 0, 0 },
        { "bytes=a-b", 10, HEADER_RANGE_WHOLE, 0, 0 },
        { "bytes=1-99999999999999999999", 10, HEADER_RANGE_WHOLE, 0, 0 },
        { "lines=0-3", 10, HEADER_RANGE_WHOLE, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        uint64_t from = 0;
        uint64_t length = 0;

        assert_int_equal(header_range(samples[i].value, samples[i].size, &from, &length),
                         samples[i].wanted);
        assert_int_equal(from, samples[i].from);
        assert_int_equal(length, samples[i].length);
    }
}

static void etags_are_compared(void **state)
{
    (void)state;
    assert_false(header_has_etag(NULL, "\"a\"", true));
    assert_true(header_has_etag("*", "\"a\"", false));
    assert_true(header_has_etag("\"b\", \"a\"", "\"a\"", false));
    assert_true(header_has_etag("\"b,c\",\"a\"", "\"b,c\"", false));
    assert_false(header_has_etag("\"b\", \"c\"", "\"a\"", true));
    assert_true(header_has_etag("W/\"a\"", "\"a\"", true));
    assert_true(header_has_etag("W/\"a\"", "W/\"a\"", true));
    assert_false(header_has_etag("W/\"a\"", "\"a\"", false));
    assert_false(header_has_etag("W/\"a\"", "W/\"a\"", false));
    assert_false(header_has_etag("a", "\"a\"", true));
}

static void codings_are_read(void **state)
{
    (void)state;
    assert_false(header_takes_gzip(NULL));
    assert_false(header_takes_gzip(""));
    assert_true(header_takes_gzip("gzip"));
    assert_true(header_takes_gzip("br, GZIP ; q=0.1"));
    assert_true(header_takes_gzip("x-gzip"));
    assert_true(header_takes_gzip("*"));
    assert_false(header_takes_gzip("gzip;q=0, *"));
    assert_false(header_takes_gzip("*;q=0"));
    assert_false(header_takes_gzip("gzip;q=x"));
    assert_false(header_takes_gzip("identity, deflate"));
    assert_false(header_takes_gzip("gzipped"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accept_is_negotiated), cmocka_unit_test(preferences_are_read),
        cmocka_unit_test(ranges_are_read),      cmocka_unit_test(etags_are_compared),
        cmocka_unit_test(codings_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
