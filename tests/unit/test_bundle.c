/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/cell/bundle.h"

#define DECODE(literal) bundle_decode(literal, sizeof(literal) - 1, &bundle, &err)

static void parts_are_found(void **state)
{
    static const char data[] = "\1\0\2\0\12text/plain\0\0\0\2"
                               "42\0\11image/png\0\0\0\0";
    struct bundle bundle;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(DECODE(data), 0);
    assert_true(bundle.is_main);
    assert_false(bundle.shortened);
    assert_int_equal(bundle.count, 2);
    assert_int_equal(bundle.parts[0].mime_size, 10);
    assert_memory_equal(bundle.parts[0].mime, "text/plain", 10);
    assert_int_equal(bundle.parts[0].data_size, 2);
    assert_memory_equal(bundle.parts[0].data, "42", 2);
    assert_int_equal(bundle.parts[1].data_size, 0);
}

static void a_bundle_without_parts_has_to_say_why(void **state)
{
    struct bundle bundle;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(DECODE("\0\0\0"), -1);
    assert_int_equal(DECODE("\1\0\0"), -1);
    assert_int_equal(DECODE("\2\0\0"), 0);
    assert_true(bundle.shortened);
    assert_int_equal(bundle.count, 0);
}

static void malformed_bundles_are_refused(void **state)
{
    struct bundle bundle = { .count = 7 };
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(bundle_decode("", 0, &bundle, &err), -1);
    assert_int_equal(err.code, ERR_INTERNAL);
    assert_int_equal(DECODE("\0\0"), -1);
    assert_int_equal(DECODE("\4\0\1\0\3a/b\0\0\0\0"), -1);
    assert_int_equal(DECODE("\0\0\1"), -1);
    assert_int_equal(DECODE("\0\0\1\0"), -1);
    assert_int_equal(DECODE("\0\0\1\0\4a/b"), -1);
    assert_int_equal(DECODE("\0\0\1\0\3a/b\0\0\0\2x"), -1);
    assert_int_equal(DECODE("\0\0\1\0\3a/b\xff\xff\xff\xffx"), -1);
    assert_int_equal(DECODE("\0\0\1\0\3a/b\0\0\0\1xy"), -1);
    assert_int_equal(DECODE("\0\0\2\0\3a/b\0\0\0\1x"), -1);
    assert_int_equal(DECODE("\0\xff\xff\0\3a/b\0\0\0\1x"), -1);
    assert_int_equal(DECODE("\0\0\2\0\3a/b\0\0\0\1x\0\3a/b\0\0\0\1y"), -1);
    assert_int_equal(bundle.count, 7);
}

static int decode_mime(const char *mime, size_t size)
{
    CLEANUP_BUF struct buf data = BUF_INIT(1000);
    struct bundle bundle;
    const char length[2] = { 0, (char)size };

    assert_int_equal(buf_append(&data, "\0\0\1", 3), 0);
    assert_int_equal(buf_append(&data, length, 2), 0);
    assert_int_equal(buf_append(&data, mime, size), 0);
    assert_int_equal(buf_append(&data, "\0\0\0\0", 4), 0);
    return bundle_decode(data.data, data.size, &bundle, NULL);
}

static void mime_types_are_checked(void **state)
{
    static const char *const good[] = { "a/b", "text/x-c++", "application/vnd.vega.v5+json",
                                        "image/svg+xml", "0/0" };
    static const char *const bad[] = { "",      "a",     "/",     "a/",      "/b",    "a/b/c",
                                       "A/b",   "a/B",   "a /b",  "a/b;c=d", "a/b\n", "a/\xc3\xa9",
                                       "a\"/b", "<a>/b", "a/b\\", "a/b\x7f", "text" };
    char longest[BUNDLE_MIME_MAX + 1];

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(decode_mime(good[i], strlen(good[i])), 0);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(decode_mime(bad[i], strlen(bad[i])), -1);
    }
    assert_int_equal(decode_mime("a/\0b", 4), -1);
    memset(longest, 'x', sizeof(longest));
    longest[1] = '/';
    assert_int_equal(decode_mime(longest, BUNDLE_MIME_MAX), 0);
    assert_int_equal(decode_mime(longest, BUNDLE_MIME_MAX + 1), -1);
}

static void data_has_to_be_utf8(void **state)
{
    struct bundle bundle;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(DECODE("\0\0\1\0\3a/b\0\0\0\2\xc3\xa9"), 0);
    assert_int_equal(DECODE("\0\0\1\0\3a/b\0\0\0\1\xc3"), -1);
    assert_int_equal(DECODE("\0\0\1\0\3a/b\0\0\0\3\xed\xa0\x80"), -1);
    assert_int_equal(DECODE("\0\0\1\0\3a/b\0\0\0\3x\0y"), 0);
}

static void parts_are_limited_in_number(void **state)
{
    CLEANUP_BUF struct buf data = BUF_INIT(10000);
    struct bundle bundle;

    (void)state;
    assert_int_equal(buf_append(&data, "\0\0\0", 3), 0);
    for (int i = 0; i <= BUNDLE_PARTS_MAX; i++) {
        const char part[] = {
            0, 4, 'a', '/', (char)('a' + i % 26), (char)('a' + i / 26), 0, 0, 0, 0
        };

        assert_int_equal(buf_append(&data, part, sizeof(part)), 0);
        data.data[2] = (char)(i + 1);
        assert_int_equal(bundle_decode(data.data, data.size, &bundle, NULL),
                         i < BUNDLE_PARTS_MAX ? 0 : -1);
    }
    assert_int_equal(bundle.count, BUNDLE_PARTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_found),
        cmocka_unit_test(a_bundle_without_parts_has_to_say_why),
        cmocka_unit_test(malformed_bundles_are_refused),
        cmocka_unit_test(mime_types_are_checked),
        cmocka_unit_test(data_has_to_be_utf8),
        cmocka_unit_test(parts_are_limited_in_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
