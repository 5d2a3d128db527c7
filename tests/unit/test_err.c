/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"

static void a_set_value_holds_all_it_was_given(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(err_set(&err, ERR_IO, ENOSPC, "can't write %s", "x"), -1);
    assert_int_equal(err.code, ERR_IO);
    assert_int_equal(err.sys, ENOSPC);
    assert_string_equal(err.msg, "can't write x");
    assert_string_equal(err.pointer, "");
    assert_string_equal(err.remedy, "");
    assert_int_equal(err.retry_after_s, 0);
}

static void setting_again_forgets_the_old_value(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    (void)err_field(&err, ERR_BAD_VALUE, "/timeoutS", "must be a number");
    (void)err_remedy(&err, "send a number");
    err.retry_after_s = 3;
    assert_string_equal(err.pointer, "/timeoutS");
    assert_string_equal(err.remedy, "send a number");
    (void)err_set(&err, ERR_IO, 0, "no");
    assert_string_equal(err.pointer, "");
    assert_string_equal(err.remedy, "");
    assert_int_equal(err.retry_after_s, 0);
}

static void a_prefix_keeps_the_rest(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    (void)err_set(&err, ERR_IO, EACCES, "permission denied");
    assert_int_equal(err_prefix(&err, "file %d", 3), -1);
    assert_string_equal(err.msg, "file 3: permission denied");
    assert_int_equal(err.code, ERR_IO);
    assert_int_equal(err.sys, EACCES);
}

static void long_texts_are_cut(void **state)
{
    char big[1000];
    struct err err = ERR_INIT;

    (void)state;
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    (void)err_field(&err, ERR_BAD_VALUE, big, "%s", big);
    assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
    assert_int_equal(strlen(err.pointer), sizeof(err.pointer) - 1);
    (void)err_prefix(&err, "first");
    assert_memory_equal(err.msg, "first: xxx", 10);
    (void)err_prefix(&err, "%s", big);
    assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
    (void)err_remedy(&err, "%s", big);
    assert_int_equal(strlen(err.remedy), sizeof(err.remedy) - 1);
}

static void nobody_may_want_the_value(void **state)
{
    (void)state;
    assert_int_equal(err_set(NULL, ERR_IO, 0, "x"), -1);
    assert_int_equal(err_field(NULL, ERR_IO, "/x", "x"), -1);
    assert_int_equal(err_prefix(NULL, "x"), -1);
    assert_int_equal(err_remedy(NULL, "x"), -1);
}

static void errno_texts(void **state)
{
    (void)state;
    assert_string_equal(err_errno_text(ENOENT), "No such file or directory");
    assert_string_equal(err_errno_text(123456), "unknown error");
    assert_string_equal(err_errno_text(-1), "unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_value_holds_all_it_was_given),
        cmocka_unit_test(setting_again_forgets_the_old_value),
        cmocka_unit_test(a_prefix_keeps_the_rest),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(nobody_may_want_the_value),
        cmocka_unit_test(errno_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
