/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 against the examples of FIPS 180-4.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/base/hash.h"

static void known_answers(void **state)
{
    char out[HASH_HEX_SIZE];
    struct hash *hash = hash_new();

    (void)state;
    hash_sha256_hex("", 0, out);
    assert_string_equal(out, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hash_add(hash, "a", 1);
    hash_add(hash, "bc", 2);
    hash_end_hex(hash, out);
    assert_string_equal(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(known_answers) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
