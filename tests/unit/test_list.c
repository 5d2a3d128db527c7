/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/work/glob.h"
#include "lib/work/list.h"
#include "lib/work/path.h"
#include "tests/unit/scratch.h"

/* All paths of all pages of this size, each followed by a space. */
static void gather(struct list_options options, size_t limit, struct buf *out)
{
    char *after = NULL;

    options.limit = limit;
    do {
        struct list list;

        options.after = after;
        assert_int_equal(list_take(scratch_fd, &options, &list, NULL), 0);
        assert_true(list.count <= limit);
        for (size_t i = 0; i < list.count; i++) {
            assert_int_equal(buf_append_text(out, list.rows[i].path), 0);
            assert_int_equal(buf_append_text(out, " "), 0);
        }
        free(after);
        after = list.next;
        list.next = NULL;
        list_done(&list);
    } while (after != NULL);
}

static void assert_listed(struct list_options options, const char *expected)
{
    static const size_t limits[] = { 1, 2, 3, 1000 };

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct buf out = BUF_INIT(100000);

        gather(options, limits[i], &out);
        assert_string_equal(out.size > 0 ? out.data : "", expected);
        buf_done(&out);
    }
}

static void plant_tree(void)
{
    scratch_file(scratch_fd, "b/x.csv", "12");
    scratch_file(scratch_fd, "b/c/y.csv", "1");
    scratch_file(scratch_fd, "b/c/z.txt", "1");
    scratch_file(scratch_fd, "b-", "1");
    scratch_file(scratch_fd, "a.csv", "1");
    scratch_file(scratch_fd, ".deps/lib/m.py", "1");
    assert_int_equal(mkdirat(scratch_fd, "empty", 0700), 0);
    assert_int_equal(symlinkat("/etc", scratch_fd, "link"), 0);
    assert_int_equal(mkfifoat(scratch_fd, "p", 0600), 0);
}

static void one_directory(void **state)
{
    (void)state;
    plant_tree();
    assert_listed((struct list_options){ .directory = "." }, ".deps a.csv b b- empty link p ");
    assert_listed((struct list_options){ .directory = "b" }, "b/c b/x.csv ");
    assert_listed((struct list_options){ .directory = "empty" }, "");
}

static void all_below(void **state)
{
    static const char *const skip[] = { ".deps", "b/c/y.csv", NULL };

    (void)state;
    plant_tree();
    assert_listed((struct list_options){ .directory = ".", .recursive = true },
                  ".deps .deps/lib .deps/lib/m.py a.csv b b/c b/c/y.csv b/c/z.txt b/x.csv b- "
                  "empty link p ");
    assert_listed((struct list_options){ .directory = "b/c", .recursive = true },
                  "b/c/y.csv b/c/z.txt ");
    assert_listed((struct list_options){ .directory = ".", .recursive = true, .skip = skip },
                  "a.csv b b/c b/c/z.txt b/x.csv b- empty link p ");
}

static void by_pattern(void **state)
{
    (void)state;
    plant_tree();
    assert_listed((struct list_options){ .directory = ".", .recursive = true, .glob = "*.csv" },
                  "a.csv b/c/y.csv b/x.csv ");
    assert_listed((struct list_options){ .directory = ".", .recursive = true, .glob = "b/*.csv" },
                  "b/x.csv ");
    assert_listed((struct list_options){ .directory = ".", .recursive = true, .glob = "b/**" },
                  "b b/c b/c/y.csv b/c/z.txt b/x.csv ");
    assert_listed((struct list_options){ .directory = "b", .recursive = true, .glob = "c/*" },
                  "b/c/y.csv b/c/z.txt ");
}

static void not_a_directory(void **state)
{
    static const char *const bad[] = { "a.csv", "link", "link/ssl", "p" };
    struct list_options options = { .limit = 10 };
    struct err err = ERR_INIT;
    struct list list;

    (void)state;
    plant_tree();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options.directory = bad[i];
        assert_int_equal(list_take(scratch_fd, &options, &list, &err), -1);
        assert_int_equal(err.code, ERR_BAD_PATH);
    }
    options.directory = "none";
    assert_int_equal(list_take(scratch_fd, &options, &list, &err), -1);
    assert_int_equal(err.code, ERR_FILE_NOT_FOUND);
}

static void rows_tell_all(void **state)
{
    struct list_options options = { .directory = ".", .recursive = true, .limit = 100 };
    struct list list;

    (void)state;
    scratch_file(scratch_fd, "d/e/f", "12345");
    scratch_file(scratch_fd, "no", "1");
    assert_int_equal(fchmodat(scratch_fd, "no", 0, 0), 0);
    assert_int_equal(fchmodat(scratch_fd, "d/e", 0, 0), 0);
    assert_int_equal(fchmod(scratch_fd, 0555), 0);
    assert_int_equal(list_take(scratch_fd, &options, &list, NULL), 0);
    assert_int_equal(list.count, 3);
    assert_null(list.next);
    assert_false(list.incomplete);
    assert_string_equal(list.rows[1].path, "d/e");
    assert_true(list.rows[1].entry.unreadable);
    assert_int_equal(list.rows[1].entry.mode, 0);
    assert_int_equal(list.rows[1].entry.type, ENTRY_DIRECTORY);
    assert_false(list.rows[0].entry.unreadable);
    assert_string_equal(list.rows[2].path, "no");
    assert_true(list.rows[2].entry.unreadable);
    assert_int_equal(list.rows[2].entry.size, 1);
    assert_int_equal(strlen(list.rows[2].entry.etag), 16);
    list_done(&list);
    assert_int_equal(fchmod(scratch_fd, 0700), 0);
}

/* The page behind a path that was deleted, and names made meanwhile. */
static void pages_survive_changes(void **state)
{
    struct list_options options = { .directory = ".", .recursive = true, .limit = 100 };
    struct list list;

    (void)state;
    plant_tree();
    options.after = "b/c/gone/deeper";
    assert_int_equal(list_take(scratch_fd, &options, &list, NULL), 0);
    assert_string_equal(list.rows[0].path, "b/c/y.csv");
    list_done(&list);
    options.after = "\xff\xff";
    assert_int_equal(list_take(scratch_fd, &options, &list, NULL), 0);
    assert_int_equal(list.count, 0);
    list_done(&list);
}

static void deep_and_long(void **state)
{
    struct list_options options = { .directory = ".", .recursive = true, .limit = 100000 };
    struct list list;
    int dir = dup(scratch_fd);
    char name[256];

    (void)state;
    memset(name, 'n', sizeof(name));
    name[100] = '\0';
    for (int i = 0; i < 60; i++) {
        int next;

        assert_int_equal(mkdirat(dir, name, 0700), 0);
        next = fd_open_beneath(dir, name, O_RDONLY | O_DIRECTORY, 0);
        scratch_file(next, "z", "1");
        fd_close(dir);
        dir = next;
    }
    fd_close(dir);
    assert_int_equal(list_take(scratch_fd, &options, &list, NULL), 0);
    assert_true(list.incomplete);
    assert_int_equal(list.count, 80); /* 40 levels of 101 bytes fit, each with its file */
    for (size_t i = 1; i < list.count; i++) {
        assert_true(path_compare(list.rows[i - 1].path, list.rows[i].path) < 0);
    }
    list_done(&list);
}

static void patterns(void **state)
{
    static const struct {
        const char *pattern;
        const char *path;
        bool match;
    } cases[] = {
        { "*.py", "a.py", true },
        { "*.py", "d/a.py", true },
        { "*.py", "a.pyc", false },
        { "a?c", "abc", true },
        { "a?c", "ac", false },
        { "[a-c]x", "bx", true },
        { "[!a-c]x", "bx", false },
        { "[^a-c]x", "zx", true },
        { "[]]x", "]x", true },
        { "[x", "[x", true },
        { "\\*x", "*x", true },
        { "\\*x", "ax", false },
        { "x\\", "x\\", true },
        { "*", "", true },
        { "", "a", false },
        { "d/*.py", "d/a.py", true },
        { "d/*.py", "d/e/a.py", false },
        { "d/**", "d/e/a.py", true },
        { "d/**/a.py", "d/a.py", true },
        { "**/a.py", "d/e/a.py", true },
        { "**", "d/e", true },
        { "d/**/e/**/f", "d/x/e/y/e/f", true },
        { "d/**/e", "d/x/f", false },
        { "*/*", "a/b", true },
        { "*/*", "a", false },
        { "a/[a/]b", "a/[a/]b", true },
        { "**x", "ax", true },
        { ".*", ".hidden", true },
        { "[\xc3]", "\xc3", true },
        { "a*b*c*d", "axxbxxcxxd", true },
        { "[a-]", "-", true },
        { "[z-a]", "m", false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (glob_match(cases[i].pattern, cases[i].path) != cases[i].match) {
            fail_msg("%s against %s", cases[i].pattern, cases[i].path);
        }
    }
}

/* Exponential in a naive matcher. */
static void hostile_patterns(void **state)
{
    char pattern[2001];
    char path[4001];

    (void)state;
    for (size_t i = 0; i + 1 < sizeof(pattern); i += 2) {
        memcpy(pattern + i, "*a", 2);
    }
    pattern[sizeof(pattern) - 1] = '\0';
    memset(path, 'a', sizeof(path));
    path[sizeof(path) - 2] = 'b';
    path[sizeof(path) - 1] = '\0';
    assert_false(glob_match(pattern, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_directory, scratch_fresh),
        cmocka_unit_test_setup(all_below, scratch_fresh),
        cmocka_unit_test_setup(by_pattern, scratch_fresh),
        cmocka_unit_test_setup(not_a_directory, scratch_fresh),
        cmocka_unit_test_setup(rows_tell_all, scratch_fresh),
        cmocka_unit_test_setup(pages_survive_changes, scratch_fresh),
        cmocka_unit_test_setup(deep_and_long, scratch_fresh),
        cmocka_unit_test(patterns),
        cmocka_unit_test(hostile_patterns),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
