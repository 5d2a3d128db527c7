/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/text.h"

static void equality(void **state)
{
    (void)state;
    assert_true(text_equal(NULL, NULL));
    assert_false(text_equal(NULL, ""));
    assert_false(text_equal("a", NULL));
    assert_true(text_equal("a", "a"));
    assert_false(text_equal("a", "A"));
    assert_true(text_starts_with("abc", "ab"));
    assert_true(text_starts_with("abc", ""));
    assert_false(text_starts_with("ab", "abc"));
    assert_true(text_ends_with("abc", "bc"));
    assert_true(text_ends_with("abc", ""));
    assert_false(text_ends_with("bc", "abc"));
}

static void constant_time_equality(void **state)
{
    (void)state;
    assert_true(text_equal_constant_time("token", "token", 5));
    assert_true(text_equal_constant_time("a", "b", 0));
    assert_false(text_equal_constant_time("token", "tokem", 5));
    assert_false(text_equal_constant_time("\x80"
                                          "oken",
                                          "\x00"
                                          "oken",
                                          5));
}

static void whole_numbers(void **state)
{
    static const char *const bad[] = { "",
                                       " 1",
                                       "1 ",
                                       "+1",
                                       "-1",
                                       "0x1",
                                       "1.0",
                                       "1e3",
                                       "a",
                                       "18446744073709551616",
                                       "99999999999999999999" };
    uint64_t value = 7;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(text_parse_u64(bad[i], &value), -1);
        assert_int_equal(value, 7);
    }
    assert_int_equal(text_parse_u64(NULL, &value), -1);
    assert_int_equal(text_parse_u64("18446744073709551615", &value), 0);
    assert_true(value == UINT64_MAX);
    assert_int_equal(text_parse_u64("007", &value), 0);
    assert_int_equal(value, 7);
}

static void decimal_numbers(void **state)
{
    static const char *const bad[] = { "",    " 1",  "1 ",  "+1",       "1.",   ".5",  "1e3", "nan",
                                       "inf", "0x1", "1,5", "infinity", "1.5.", "--1", "-" };
    char long_number[80];
    double value = 7;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(text_parse_double(bad[i], &value), -1);
        assert_true(value > 6.9 && value < 7.1);
    }
    assert_int_equal(text_parse_double(NULL, &value), -1);
    assert_int_equal(text_parse_double("0.5", &value), 0);
    assert_true(value > 0.49 && value < 0.51);
    assert_int_equal(text_parse_double("-2", &value), 0);
    assert_true(value > -2.1 && value < -1.9);
    memset(long_number, '9', sizeof(long_number));
    long_number[64] = '\0';
    assert_int_equal(text_parse_double(long_number, &value), -1);
    long_number[63] = '\0';
    assert_int_equal(text_parse_double(long_number, &value), 0);
}

static void well_formed_utf8(void **state)
{
    static const char *const good[] = { "",
                                        "a",
                                        "\xC2\x80",
                                        "\xDF\xBF",
                                        "\xE0\xA0\x80",
                                        "\xED\x9F\xBF",
                                        "\xEE\x80\x80",
                                        "\xEF\xBF\xBF",
                                        "\xF0\x90\x80\x80",
                                        "\xF4\x8F\xBF\xBF" };
    static const char *const bad[] = {
        "\x80",         "\xBF",         "\xC0\x80",         "\xC1\xBF",         "\xE0\x9F\xBF",
        "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
        "\xFF",         "\xC2",         "\xE2\x82",         "\xF0\x9F\x98",     "a\xE2\x82z"
    };

    (void)state;
    assert_true(text_utf8_valid(NULL, 0));
    assert_true(text_utf8_valid("a\0b", 3));
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(text_utf8_valid(good[i], strlen(good[i])));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(text_utf8_valid(bad[i], strlen(bad[i])));
    }
}

/* Expected text with "?" standing for U+FFFD. */
static void assert_repaired(const char *data, size_t size, const char *expected)
{
    CLEANUP_BUF struct buf out = BUF_INIT(1000);
    CLEANUP_BUF struct buf want = BUF_INIT(1000);

    for (const char *at = expected; *at != '\0'; at++) {
        assert_int_equal(
            *at == '?' ? buf_append_text(&want, "\xEF\xBF\xBD") : buf_append(&want, at, 1), 0);
    }
    assert_int_equal(text_utf8_repair(&out, data, size), 0);
    assert_int_equal(out.size, want.size);
    assert_memory_equal(out.data, want.data, want.size);
    assert_true(text_utf8_valid(out.data, out.size));
}

#define REPAIRED(literal, expected) assert_repaired(literal, sizeof(literal) - 1, expected)

/* The four tables of examples in section 3.9 of the Unicode standard, and the ends of input. */
static void repair_by_maximal_subpart(void **state)
{
    (void)state;
    REPAIRED("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64", "a???b?c??d");
    REPAIRED("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", "????????A");
    REPAIRED("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", "????????A");
    REPAIRED("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", "?????A??B");
    REPAIRED("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "????A");
    REPAIRED("ok\xF0\x9F\x98", "ok?");
    REPAIRED("\xE2\x82", "?");
    REPAIRED("\xE2", "?");
    REPAIRED("", "");
}

static void repair_stops_at_the_maximum(void **state)
{
    CLEANUP_BUF struct buf out = BUF_INIT(4);

    (void)state;
    assert_int_equal(buf_append_text(&out, "ab"), 0);
    assert_int_equal(text_utf8_repair(&out, "\xFF", 1), -1);
    assert_int_equal(text_utf8_repair(&out, "c\xFF", 2), -1);
    assert_string_equal(out.data, "ab");
    assert_int_equal(text_utf8_repair(&out, "cd", 2), 0);
    assert_string_equal(out.data, "abcd");
}

static void partial_tail(void **state)
{
    (void)state;
    assert_int_equal(text_utf8_partial_tail(NULL, 0), 0);
    assert_int_equal(text_utf8_partial_tail("abc", 3), 0);
    assert_int_equal(text_utf8_partial_tail("\xC3\xA9", 2), 0);
    assert_int_equal(text_utf8_partial_tail("a\xC3", 2), 1);
    assert_int_equal(text_utf8_partial_tail("a\xE2\x82", 3), 2);
    assert_int_equal(text_utf8_partial_tail("\xF0\x9F\x98", 3), 3);
    assert_int_equal(text_utf8_partial_tail("a\xF0\x9F\x98", 4), 3);
    assert_int_equal(text_utf8_partial_tail("\xF0\x9F\x98\x80", 4), 0);
    /* Ill-formed whatever follows: nothing to wait for. */
    assert_int_equal(text_utf8_partial_tail("\x80", 1), 0);
    assert_int_equal(text_utf8_partial_tail("\xE0\x80", 2), 0);
    assert_int_equal(text_utf8_partial_tail("\xFF", 1), 0);
    assert_int_equal(text_utf8_partial_tail("\xED\xA0", 2), 0);
}

/* However a text is cut, pieces joined by their tails repair to the same as the whole. */
static void pieces_repair_as_the_whole(void **state)
{
    static const char whole[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xF0\x9F"
                                "b\xED\xA0\x80\xE2";
    size_t size = sizeof(whole) - 1;
    CLEANUP_BUF struct buf expected = BUF_INIT(200);

    (void)state;
    assert_int_equal(text_utf8_repair(&expected, whole, size), 0);
    for (size_t cut = 0; cut <= size; cut++) {
        CLEANUP_BUF struct buf out = BUF_INIT(200);
        size_t kept = text_utf8_partial_tail(whole, cut);

        assert_int_equal(text_utf8_repair(&out, whole, cut - kept), 0);
        assert_int_equal(text_utf8_repair(&out, whole + cut - kept, size - cut + kept), 0);
        assert_string_equal(out.data, expected.data);
    }
}

static void base64_both_ways(void **state)
{
    static const char *const plain[] = { "", "f", "fo", "foo", "foob", "fooba", "foobar" };
    static const char *const coded[] = { "",         "Zg==",     "Zm8=",    "Zm9v",
                                         "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" };

    (void)state;
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        CLEANUP_BUF struct buf out = BUF_INIT(100);
        CLEANUP_BUF struct buf back = BUF_INIT(100);

        assert_int_equal(text_base64_encode(&out, plain[i], strlen(plain[i])), 0);
        assert_string_equal(out.data, coded[i]);
        assert_int_equal(text_base64_decode(&back, out.data, out.size), 0);
        assert_string_equal(back.data, plain[i]);
    }
}

static void base64_of_every_byte(void **state)
{
    unsigned char bytes[256];
    CLEANUP_BUF struct buf out = BUF_INIT(1000);
    CLEANUP_BUF struct buf back = BUF_INIT(256);

    (void)state;
    for (unsigned i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(255 - i);
    }
    assert_int_equal(text_base64_encode(&out, bytes, sizeof(bytes)), 0);
    assert_int_equal(text_base64_decode(&back, out.data, out.size), 0);
    assert_int_equal(back.size, sizeof(bytes));
    assert_memory_equal(back.data, bytes, sizeof(bytes));
}

static void base64_refusals(void **state)
{
    static const char *const bad[] = { "Z",        "Zg",    "Zg=",  "Zg===", "====",    "=Zg=",
                                       "Z===",     "Zm9v ", " Zm9", "Zm9\n", "Zm-v",    "Zm_v",
                                       "Zg==Zg==", "Zh==",  "Zm9=", "Zm9vZ", "Zm\x80v", "Zm9v\n" };
    CLEANUP_BUF struct buf out = BUF_INIT(4);

    (void)state;
    assert_int_equal(buf_append_text(&out, "x"), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(text_base64_decode(&out, bad[i], strlen(bad[i])), -1);
        assert_string_equal(out.data, "x");
    }
    assert_int_equal(text_base64_decode(&out, "Zm9vYmFy", 8), -1);
    assert_int_equal(text_base64_encode(&out, "foo", 3), -1);
    assert_string_equal(out.data, "x");
    assert_int_equal(text_base64_decode(&out, "Zm9v", 4), 0);
    assert_string_equal(out.data, "xfoo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equality),
        cmocka_unit_test(constant_time_equality),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(decimal_numbers),
        cmocka_unit_test(well_formed_utf8),
        cmocka_unit_test(repair_by_maximal_subpart),
        cmocka_unit_test(repair_stops_at_the_maximum),
        cmocka_unit_test(partial_tail),
        cmocka_unit_test(pieces_repair_as_the_whole),
        cmocka_unit_test(base64_both_ways),
        cmocka_unit_test(base64_of_every_byte),
        cmocka_unit_test(base64_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
