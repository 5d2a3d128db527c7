/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/json_in.h"
#include "api/json_scan.h"
#include "lib/base/buf.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct sample {
    const char *text;
    size_t size;
    const char *complaint; /* part of the message */
};

#define SAMPLE(text, complaint)               \
    {                                         \
        (text), sizeof(text) - 1, (complaint) \
    }

static void refuses_what_is_not_strict(void **state)
{
    static const struct sample samples[] = {
        SAMPLE("", "no body"),
        SAMPLE("   ", "ends where a value"),
        SAMPLE("{\"a\":1,\"a\":2}", "has already"),
        SAMPLE("{\"a\":1,\"\\u0061\":2}", "has already"),
        SAMPLE("{\"x\":{\"a\":1,\"b\":1,\"a\":2}}", "has already"),
        SAMPLE("{\"code\":1} x", "more text"),
        SAMPLE("{}{}", "more text"),
        SAMPLE("{}\0", "more text"),
        SAMPLE("{'code':1}", "double quotes"),
        SAMPLE("{\"code\":'1'}", "single quotes"),
        SAMPLE("/*c*/{\"a\":1}", "comment"),
        SAMPLE("{\"a\":1} // c", "comment"),
        SAMPLE("{\"a\":1,}", "comma before"),
        SAMPLE("{\"a\":[1,]}", "comma before"),
        SAMPLE("{\"a\":[1 2]}", "comma or a closing"),
        SAMPLE("{\"a\" 1}", "colon"),
        SAMPLE("{a:1}", "name in double quotes"),
        SAMPLE("{\"a\":NaN}", "a value was expected"),
        SAMPLE("{\"a\":Infinity}", "a value was expected"),
        SAMPLE("{\"a\":-Infinity}", "minus sign"),
        SAMPLE("{\"a\":True}", "a value was expected"),
        SAMPLE("{\"a\":01}", "leading zero"),
        SAMPLE("{\"a\":-01}", "leading zero"),
        SAMPLE("{\"a\":+1}", "a value was expected"),
        SAMPLE("{\"a\":.5}", "a value was expected"),
        SAMPLE("{\"a\":5.}", "ends in its point"),
        SAMPLE("{\"a\":5e}", "exponent"),
        SAMPLE("{\"a\":0x10}", "comma or a closing"),
        SAMPLE("{\"a\":1e999}", "1e308"),
        SAMPLE("{\"a\":-1E+99999999999999999999}", "1e308"),
        SAMPLE("{\"a\":0.001e311}", "1e308"),
        SAMPLE("{\"a\":123.4e306}", "1e308"),
        SAMPLE("{\"a\":\"\xFF\"}", "not UTF-8"),
        SAMPLE("{\"a\":\"\xC0\xAE\"}", "not UTF-8"),
        SAMPLE("{\"a\":\"\xED\xA0\x80\"}", "not UTF-8"),
        SAMPLE("{\"a\":\"\xE2\x82\"}", "not UTF-8"),
        SAMPLE("{\"\xFF\":1}", "not UTF-8"),
        SAMPLE("{\"a\":\"1\n2\"}", "control character"),
        SAMPLE("{\"a\":\"1\0\"}", "control character"),
        SAMPLE("{\"a\":\"\\x41\"}", "escape that JSON"),
        SAMPLE("{\"a\":\"\\u12\"}", "four hexadecimal"),
        SAMPLE("{\"a\":\"\\u12g4\"}", "four hexadecimal"),
        SAMPLE("{\"a\":\"\\ud800\"}", "surrogate"),
        SAMPLE("{\"a\":\"\\ud800b\"}", "surrogate"),
        SAMPLE("{\"a\":\"\\udc00\"}", "surrogate"),
        SAMPLE("{\"a\":\"\\ud800\\ud800\"}", "surrogate"),
        SAMPLE("{\"a\":\"\\ud800\\u0041\"}", "surrogate"),
        SAMPLE("{\"a\\u0000b\":1}", "NUL"),
        SAMPLE("{\"a\":\"x", "does not end"),
        SAMPLE("{\"a\":\"x\\", "ends inside a string"),
        SAMPLE("{\"a\":", "ends where a value"),
        SAMPLE("{\"a\":1", "comma or a closing"),
        SAMPLE("{\"a\":tru", "a value was expected"),
        SAMPLE("\xEF\xBB\xBF{}", "byte order mark"),
        SAMPLE("\xFF\xFE{\0}\0", "a value was expected"),
        SAMPLE("[]", "not an object"),
        SAMPLE(" null", "not an object"),
        SAMPLE("5", "not an object"),
        SAMPLE("\"{}\"", "not an object"),
        SAMPLE("]", "a value was expected"),
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        struct err err = ERR_INIT;
        struct json_object *object = json_in_parse(samples[i].text, samples[i].size, &err);

        if (object != NULL || err.code != ERR_BAD_JSON ||
            strstr(err.msg, samples[i].complaint) == NULL) {
            fail_msg("%s: %s", samples[i].text, err.msg);
        }
    }
}

static void names_the_place(void **state)
{
    static const char text[] = "{\n  \"a\": 1,\n  \"b\": nope\n}";
    struct err err = ERR_INIT;

    (void)state;
    assert_null(json_in_parse(text, sizeof(text) - 1, &err));
    assert_non_null(strstr(err.msg, "line 3, column 8 (byte 19)"));
}

static void accepts_what_is_strict(void **state)
{
    static const char *const texts[] = {
        "{}",
        " \t\r\n{ } \n",
        "{\"a\":[]}",
        "{\"a\":{\"a\":{\"a\":null}}}",
        "{\"a\":[0,-0,1.5,-1e9,1E+2,0.1e-3,true,false,null]}",
        "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\ude00\"}",
        "{\"a\":\"\xC3\xA9\xE2\x98\x83\xF0\x9F\x98\x80\x7F\"}",
        "{\"\":1,\" \":2}",
        "{\"a\":[9.99e307,0.0099e310,1e-999,0e999,0.0e99999999999999999999,-99e306]}",
        "{\"a\":\"\\u0000\"}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct err err = ERR_INIT;
        CLEANUP_JSON struct json_object *object = json_in_parse(texts[i], strlen(texts[i]), &err);

        if (object == NULL) {
            fail_msg("%s: %s", texts[i], err.msg);
        }
    }
}

static void strings_arrive_whole(void **state)
{
    static const char text[] = "{\"a\":\"x\\u0000y\\ud83d\\ude00\"}";
    CLEANUP_JSON struct json_object *object = json_in_parse(text, sizeof(text) - 1, NULL);
    struct json_object *value = json_object_object_get(object, "a");

    (void)state;
    assert_int_equal(json_object_get_string_len(value), 7);
    assert_memory_equal(json_object_get_string(value), "x\0y\xF0\x9F\x98\x80", 7);
}

static void nest(struct buf *out, unsigned arrays)
{
    (void)buf_append_text(out, "{\"a\":");
    for (unsigned i = 0; i < arrays; i++) {
        (void)buf_append_text(out, "[");
    }
    for (unsigned i = 0; i < arrays; i++) {
        (void)buf_append_text(out, "]");
    }
    (void)buf_append_text(out, "}");
}

static void depth_is_bounded(void **state)
{
    CLEANUP_BUF struct buf allowed = BUF_INIT(1000);
    CLEANUP_BUF struct buf above = BUF_INIT(1000);
    CLEANUP_BUF struct buf brackets = BUF_INIT(200000);
    CLEANUP_JSON struct json_object *object = NULL;
    struct err err = ERR_INIT;

    (void)state;
    nest(&allowed, JSON_IN_DEPTH - 1);
    object = json_in_parse(allowed.data, allowed.size, &err);
    assert_non_null(object);
    nest(&above, JSON_IN_DEPTH);
    assert_null(json_in_parse(above.data, above.size, &err));
    assert_non_null(strstr(err.msg, "too deeply"));
    for (int i = 0; i < 100000; i++) {
        (void)buf_append_text(&brackets, "[");
    }
    assert_null(json_in_parse(brackets.data, brackets.size, &err));
    assert_int_equal(err.code, ERR_BAD_JSON);
}

static void number_of_values_is_bounded(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT(1000000);
    struct err err = ERR_INIT;

    (void)state;
    (void)buf_append_text(&text, "{\"a\":[0");
    for (int i = 0; i < JSON_IN_VALUES; i++) {
        (void)buf_append_text(&text, ",0");
    }
    (void)buf_append_text(&text, "]}");
    assert_null(json_in_parse(text.data, text.size, &err));
    assert_non_null(strstr(err.msg, "more values"));
}

/* Names chosen to collide in a hash table would make a quadratic check take minutes. */
static void many_names_take_no_time(void **state)
{
    const struct json_scan_bounds bounds = { .depth = 2, .values = SIZE_MAX };
    CLEANUP_BUF struct buf text = BUF_INIT(10000000);
    struct err err = ERR_INIT;

    (void)state;
    (void)buf_append_text(&text, "{\"x\":0");
    for (int i = 0; i < 300000; i++) {
        (void)buf_printf(&text, ",\"%d\":0", i);
    }
    (void)buf_append_text(&text, "}");
    assert_int_equal(json_scan(text.data, text.size, &bounds, &err), 0);
    (void)buf_append_text(&text, " ");
    text.data[text.size - 2] = ',';
    (void)buf_append_text(&text, "\"777\":1}");
    assert_int_equal(json_scan(text.data, text.size, &bounds, &err), -1);
    assert_non_null(strstr(err.msg, "has already"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_is_not_strict), cmocka_unit_test(names_the_place),
        cmocka_unit_test(accepts_what_is_strict),     cmocka_unit_test(strings_arrive_whole),
        cmocka_unit_test(depth_is_bounded),           cmocka_unit_test(number_of_values_is_bounded),
        cmocka_unit_test(many_names_take_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
