/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/id.h"

static void made_ones_have_prefix_and_alphabet(void **state)
{
    char id[ID_SIZE];

    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_ptr_equal(id_make("exe", id), id);
        assert_int_equal(strlen(id), 24);
        assert_memory_equal(id, "exe_", 4);
        assert_int_equal(strspn(id + 4, "0123456789abcdefghijklmnopqrstuvwxyz"), 20);
        assert_true(id_valid(id));
    }
}

static void made_ones_differ(void **state)
{
    char ids[200][ID_SIZE];

    (void)state;
    for (size_t i = 0; i < 200; i++) {
        (void)id_make("x", ids[i]);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(ids[i], ids[j]);
        }
    }
}

static void a_long_prefix_is_cut(void **state)
{
    char id[ID_SIZE];

    (void)state;
    (void)id_make("muchtoolongprefix", id);
    assert_int_equal(strlen(id), ID_SIZE - 1);
    assert_memory_equal(id, "muchtoolon_", 11);
}

static void ids_of_clients(void **state)
{
    static const char *const good[] = { "a", "0", "A", "a.b_c-D9", "exe_0123" };
    static const char *const bad[] = { "",    ".",   "..",       "-a",   "_a", "a/b",
                                       "a b", "a\n", "\xC3\xA9", "a%41", "a:b" };
    char longest[66];

    (void)state;
    assert_false(id_valid(NULL));
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(id_valid(good[i]));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(id_valid(bad[i]));
    }
    memset(longest, 'a', 65);
    longest[65] = '\0';
    assert_false(id_valid(longest));
    longest[64] = '\0';
    assert_true(id_valid(longest));
}

static void random_bytes_fill_everything(void **state)
{
    unsigned char bytes[4096] = { 0 };
    unsigned seen[256] = { 0 };

    (void)state;
    id_random(bytes, 0);
    assert_int_equal(bytes[0], 0);
    id_random(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        seen[bytes[i]]++;
    }
    /* 16 expected; 100 of one value has no chance in a lifetime. */
    for (size_t i = 0; i < 256; i++) {
        assert_true(seen[i] < 100);
    }
}

static void hex(void **state)
{
    char text[9];

    (void)state;
    id_hex("\x00\x0F\xA5\xFF", 4, text);
    assert_string_equal(text, "000fa5ff");
    id_hex("", 0, text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_ones_have_prefix_and_alphabet),
        cmocka_unit_test(made_ones_differ),
        cmocka_unit_test(a_long_prefix_is_cut),
        cmocka_unit_test(ids_of_clients),
        cmocka_unit_test(random_bytes_fill_everything),
        cmocka_unit_test(hex),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
