/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/json_out.h"
#include "api/json_scan.h"

#define ROOM 10000

static const struct json_scan_bounds bounds = { .depth = 32, .values = 1000 };

/* What was written, checked to be strict. */
static void expect(const struct json_out *json, const char *wanted)
{
    struct err err = ERR_INIT;

    assert_false(json_out_failed(json));
    assert_string_equal(json->out->data, wanted);
    if (json_scan(json->out->data, json->out->size, &bounds, &err) < 0) {
        fail_msg("%s: %s", json->out->data, err.msg);
    }
}

static void commas_and_brackets(void **state)
{
    CLEANUP_BUF struct buf out = BUF_INIT(ROOM);
    struct json_out json;

    (void)state;
    json_out_init(&json, &out);
    json_out_open(&json, '{');
    json_out_key(&json, "a");
    json_out_open(&json, '[');
    json_out_close(&json, ']');
    json_out_key(&json, "b");
    json_out_open(&json, '[');
    json_out_whole(&json, -1);
    json_out_count(&json, UINT64_MAX);
    json_out_bool(&json, true);
    json_out_null(&json);
    json_out_open(&json, '{');
    json_out_close(&json, '}');
    json_out_string(&json, NULL);
    json_out_close(&json, ']');
    json_out_key(&json, "c\"");
    json_out_raw(&json, "[1]", 3);
    json_out_close(&json, '}');
    expect(&json, "{\"a\":[],\"b\":[-1,18446744073709551615,true,null,{},null],\"c\\\"\":[1]}");
}

/* Text is copied in steps of eight bytes: every special one must be seen at every place in them. */
static void special_bytes_at_every_place(void **state)
{
    static const struct {
        char byte;
        const char *wanted;
    } specials[] = { { '"', "\\\"" },     { '\\', "\\\\" }, { '\n', "\\n" }, { 0, "\\u0000" },
                     { 0x1F, "\\u001f" }, { 0x20, " " },    { 0x21, "!" },   { 0x7F, "\x7F" },
                     { '#', "#" },        { '[', "[" } };

    (void)state;
    for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++) {
        for (size_t place = 0; place < 20; place++) {
            CLEANUP_BUF struct buf out = BUF_INIT(ROOM);
            struct json_out json;
            char text[20];
            char wanted[64];

            memset(text, 'a', sizeof(text));
            text[place] = specials[i].byte;
            (void)snprintf(wanted, sizeof(wanted), "\"%.*s%s%.*s\"", (int)place,
                           "aaaaaaaaaaaaaaaaaaaa", specials[i].wanted, (int)(19 - place),
                           "aaaaaaaaaaaaaaaaaaaa");
            json_out_init(&json, &out);
            json_out_text(&json, text, sizeof(text));
            expect(&json, wanted);
        }
    }
}

static void text_is_escaped_and_repaired(void **state)
{
    static const struct {
        const char *text;
        size_t size;
        const char *wanted;
    } samples[] = {
        { "", 0, "\"\"" },
        { "plain", 5, "\"plain\"" },
        { "\"\\/\b\f\n\r\t", 8, "\"\\\"\\\\/\\b\\f\\n\\r\\t\"" },
        { "a\0b\x1F\x7F", 5, "\"a\\u0000b\\u001f\x7F\"" },
        { "\xC3\xA9\xF0\x9F\x98\x80", 6, "\"\xC3\xA9\xF0\x9F\x98\x80\"" },
        { "ok\xff\xfe\x80"
          "end\n",
          9,
          "\"ok\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
          "end\\n\"" },
        { "A\xe2\x82"
          "B\n",
          5,
          "\"A\xEF\xBF\xBD"
          "B\\n\"" },
        { "\xed\xa0\x80x", 4, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDx\"" },
        { "50%\r100%\rdone", 13, "\"50%\\r100%\\rdone\"" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        CLEANUP_BUF struct buf out = BUF_INIT(ROOM);
        struct json_out json;

        json_out_init(&json, &out);
        json_out_text(&json, samples[i].text, samples[i].size);
        expect(&json, samples[i].wanted);
    }
}

/* Short text takes another way than long: both are the same JSON, at every length around that. */
static void text_of_any_length(void **state)
{
    char text[300];

    (void)state;
    memset(text, 'x', sizeof(text));
    for (size_t size = 0; size < sizeof(text); size++) {
        CLEANUP_BUF struct buf out = BUF_INIT(ROOM);
        char wanted[2 * sizeof(text) + 32];
        struct json_out json;

        json_out_init(&json, &out);
        json_out_open(&json, '{');
        json_out_key(&json, "a");
        json_out_null(&json);
        json_out_key_bytes(&json, text, size);
        json_out_text(&json, text, size);
        json_out_close(&json, '}');
        (void)snprintf(wanted, sizeof(wanted), "{\"a\":null,\"%.*s\":\"%.*s\"}", (int)size, text,
                       (int)size, text);
        expect(&json, wanted);
    }
}

static void numbers_are_json(void **state)
{
    static const struct {
        double value;
        const char *wanted;
    } samples[] = {
        { 0, "0" },
        { 0.1, "0.1" },
        { 30, "30" },
        { -1.5, "-1.5" },
        { 1e300, "1e+300" },
        { 41.25, "41.25" },
        { -0.0, "-0" },
        { -30, "-30" },
        { 1e14 + 0.5, "100000000000000" },
        { 999999999999999, "999999999999999" },
        { 1e15, "1e+15" },
        { 1234567890123456, "1.23456789012346e+15" },
        { (double)NAN, "null" },
        { (double)INFINITY, "null" },
        { -(double)INFINITY, "null" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        CLEANUP_BUF struct buf out = BUF_INIT(ROOM);
        struct json_out json;

        json_out_init(&json, &out);
        json_out_number(&json, samples[i].value);
        expect(&json, samples[i].wanted);
    }
}

static void times_and_measures(void **state)
{
    CLEANUP_BUF struct buf out = BUF_INIT(ROOM);
    struct json_out json;

    (void)state;
    json_out_init(&json, &out);
    json_out_open(&json, '[');
    json_out_ms(&json, 41.23456);
    json_out_ms(&json, -1);
    json_out_time(&json, 0);
    json_out_time(&json, 1000);
    json_out_base64(&json, "\x00\xFF\x10", 3);
    json_out_base64(&json, NULL, 0);
    json_out_close(&json, ']');
    expect(&json, "[41.235,null,null,\"1970-01-01T00:00:01.000Z\",\"AP8Q\",\"\"]");
}

static void a_full_buffer_is_a_failure(void **state)
{
    CLEANUP_BUF struct buf out = BUF_INIT(8);
    struct json_out json;

    (void)state;
    json_out_init(&json, &out);
    json_out_open(&json, '[');
    json_out_text(&json, "0123456789", 10);
    json_out_whole(&json, 1);
    json_out_base64(&json, "0123456789", 10);
    json_out_close(&json, ']');
    assert_true(json_out_failed(&json));
    assert_true(out.size <= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_and_brackets),
        cmocka_unit_test(special_bytes_at_every_place),
        cmocka_unit_test(text_is_escaped_and_repaired),
        cmocka_unit_test(text_of_any_length),
        cmocka_unit_test(numbers_are_json),
        cmocka_unit_test(times_and_measures),
        cmocka_unit_test(a_full_buffer_is_a_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
