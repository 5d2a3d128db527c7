/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/percent.h"

static void assert_path(const char *path, const char *wanted)
{
    CLEANUP_BUF struct buf out = BUF_INIT(1000);

    assert_int_equal(percent_path(&out, path), 0);
    assert_string_equal(out.data, wanted);
}

static void paths(void **state)
{
    CLEANUP_BUF struct buf small = BUF_INIT(4);

    (void)state;
    assert_path("a/b-c._~9", "a/b-c._~9");
    assert_path("a b%+\xC3\"\n", "a%20b%25%2B%C3%22%0A");
    assert_int_equal(percent_path(&small, "a b"), -1);
}

static void assert_attachment(const char *name, const char *wanted)
{
    CLEANUP_BUF struct buf out = BUF_INIT(1000);

    assert_int_equal(percent_attachment(&out, name), 0);
    assert_string_equal(out.data, wanted);
}

static void attachments(void **state)
{
    CLEANUP_BUF struct buf small = BUF_INIT(30);

    (void)state;
    assert_attachment("a.txt", "attachment; filename=\"a.txt\"; filename*=UTF-8''a.txt");
    assert_attachment("a\r\nb\"\\%\x7f.x", "attachment; filename=\"a__b____.x\"; "
                                           "filename*=UTF-8''a%0D%0Ab%22%5C%25%7F.x");
    assert_attachment("\xC3\xA9\xFF", "attachment; filename=\"___\"; "
                                      "filename*=UTF-8''%C3%A9%EF%BF%BD");
    assert_int_equal(percent_attachment(&small, "long enough"), -1);
}

static void cursors(void **state)
{
    static const char *const paths[] = { "a", "ab", "abc", "d/\xFF\xFE/?>", "\n" };
    static const char *const bad[] = { "", "!", "a", "a=", "YQ==", "a+b/", "YWI ", "AA" };
    struct err err;
    char *back;

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char *cursor = percent_cursor(paths[i]);

        assert_null(strpbrk(cursor, "+/=%&"));
        assert_int_equal(percent_cursor_parse(cursor, &back, NULL), 0);
        assert_string_equal(back, paths[i]);
        free(back);
        free(cursor);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err = ERR_INIT;
        back = NULL;
        assert_int_equal(percent_cursor_parse(bad[i], &back, &err), -1);
        assert_int_equal(err.code, ERR_BAD_CURSOR);
        assert_null(back);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(paths), cmocka_unit_test(attachments),
                                        cmocka_unit_test(cursors) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
