/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/work/path.h"

#define PARSE(text, ret, err) path_parse(text, sizeof(text) - 1, ret, err)

static void assert_parsed(const char *text, const char *expected)
{
    CLEANUP_FREE char *path = NULL;

    assert_int_equal(path_parse(text, strlen(text), &path, NULL), 0);
    assert_string_equal(path, expected);
}

static void assert_refused(const char *text, size_t size, const char *why)
{
    struct err err = ERR_INIT;
    char *path = NULL;

    assert_int_equal(path_parse(text, size, &path, &err), -1);
    assert_null(path);
    assert_int_equal(err.code, ERR_BAD_PATH);
    assert_non_null(strstr(err.msg, why));
    assert_true(err.remedy[0] != '\0');
}

static void names_below_the_workspace(void **state)
{
    (void)state;
    assert_parsed("a", "a");
    assert_parsed("a/b", "a/b");
    assert_parsed("a/b/", "a/b");
    assert_parsed("./a//./b/.", "a/b");
    assert_parsed("/workspace/a", "a");
    assert_parsed("/workspace//a/", "a");
    assert_parsed("workspace/a", "workspace/a");
    assert_parsed("/workspace/workspace/a", "workspace/a");
    assert_parsed("...", "...");
    assert_parsed("..a/b..", "..a/b..");
    assert_parsed(".hidden", ".hidden");
    assert_parsed("a+b%20\"\n'.txt", "a+b%20\"\n'.txt");
    assert_parsed("\xc3.txt", "\xc3.txt");
    assert_parsed("\xc0\xae\xc0\xae/x", "\xc0\xae\xc0\xae/x"); /* bytes, never decoded again */
    assert_parsed("a\\..\\b", "a\\..\\b");
}

static void names_refused(void **state)
{
    static const char *const parents[] = { "..",      "../x",   "a/../b",
                                           "a/..",    "./../x", "/workspace/../etc/passwd",
                                           "a//..//b" };
    static const char *const absolute[] = {
        "/", "/etc/passwd", "//workspace/a", "/workspacex/a", "/workspac", "/WORKSPACE/a"
    };
    static const char *const whole[] = { ".", "./", "/workspace", "/workspace/", "/workspace/./." };

    (void)state;
    for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++) {
        assert_refused(parents[i], strlen(parents[i]), "'..'");
    }
    for (size_t i = 0; i < sizeof(absolute) / sizeof(absolute[0]); i++) {
        assert_refused(absolute[i], strlen(absolute[i]), "absolute");
    }
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        assert_refused(whole[i], strlen(whole[i]), "workspace itself");
    }
    assert_refused("", 0, "empty");
    assert_refused("a\0b", 3, "NUL");
    assert_refused("\0", 1, "NUL");
    assert_refused("a\0", 2, "NUL");
}

static void lengths(void **state)
{
    char name[PATH_BYTES_MAX + 2];
    CLEANUP_FREE char *path = NULL;

    (void)state;
    memset(name, 'n', sizeof(name));
    assert_int_equal(path_parse(name, 255, &path, NULL), 0);
    assert_int_equal(strlen(path), 255);
    assert_refused(name, 256, "255 bytes");
    for (size_t i = 200; i < sizeof(name); i += 201) {
        name[i] = '/';
    }
    free(path);
    path = NULL;
    assert_int_equal(path_parse(name, PATH_BYTES_MAX, &path, NULL), 0);
    assert_int_equal(strlen(path), PATH_BYTES_MAX);
    assert_refused(name, PATH_BYTES_MAX + 1, "4095 bytes");
}

static void the_workspace_as_directory(void **state)
{
    static const char *const root[] = { "", ".", "./", "/workspace", "/workspace/" };
    struct err err = ERR_INIT;
    char *path = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof(root) / sizeof(root[0]); i++) {
        assert_int_equal(path_parse_directory(root[i], strlen(root[i]), &path, NULL), 0);
        assert_string_equal(path, PATH_ROOT);
        free(path);
        path = NULL;
    }
    assert_int_equal(path_parse_directory("a/b", 3, &path, NULL), 0);
    assert_string_equal(path, "a/b");
    free(path);
    path = NULL;
    assert_int_equal(path_parse_directory("/", 1, &path, &err), -1);
    assert_int_equal(err.code, ERR_BAD_PATH);
    assert_null(path);
}

static void single_names(void **state)
{
    char name[257];

    (void)state;
    memset(name, 'x', sizeof(name));
    name[256] = '\0';
    assert_false(path_is_name(name));
    name[255] = '\0';
    assert_true(path_is_name(name));
    assert_true(path_is_name("ses_1"));
    assert_true(path_is_name("..."));
    assert_false(path_is_name(""));
    assert_false(path_is_name("."));
    assert_false(path_is_name(".."));
    assert_false(path_is_name("a/b"));
}

static void order(void **state)
{
    static const char *const sorted[] = { "a",   "a/b", "a/b/c", "a/c", "a ",
                                          "a-b", "a.b", "ab",    "b",   "\xc3" };

    (void)state;
    for (size_t i = 0; i < sizeof(sorted) / sizeof(sorted[0]); i++) {
        for (size_t j = 0; j < sizeof(sorted) / sizeof(sorted[0]); j++) {
            int got = path_compare(sorted[i], sorted[j]);

            assert_int_equal((got > 0) - (got < 0), (i > j) - (i < j));
        }
    }
}

static void relations(void **state)
{
    CLEANUP_FREE char *parent = path_parent("a/b/c");
    CLEANUP_FREE char *top = path_parent("a");
    CLEANUP_FREE char *joined = path_join("a/b", "c");
    CLEANUP_FREE char *joined_top = path_join(PATH_ROOT, "c");

    (void)state;
    assert_string_equal(parent, "a/b");
    assert_string_equal(top, PATH_ROOT);
    assert_string_equal(joined, "a/b/c");
    assert_string_equal(joined_top, "c");
    assert_string_equal(path_base("a/b/c"), "c");
    assert_string_equal(path_base("a"), "a");
    assert_true(path_is_beneath("a/b", "a"));
    assert_true(path_is_beneath("a", "a"));
    assert_true(path_is_beneath("a", PATH_ROOT));
    assert_true(path_is_beneath("/x", "/"));
    assert_false(path_is_beneath("ab", "a"));
    assert_false(path_is_beneath("a", "a/b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_below_the_workspace),
        cmocka_unit_test(names_refused),
        cmocka_unit_test(lengths),
        cmocka_unit_test(the_workspace_as_directory),
        cmocka_unit_test(single_names),
        cmocka_unit_test(order),
        cmocka_unit_test(relations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
