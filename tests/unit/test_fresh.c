/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/work/fresh.h"
#include "lib/work/workspace.h"
#include "tests/unit/scratch.h"

static int parent = -1;
static struct fresh *fresh;

static int begin(void **state)
{
    char path[96];

    if (scratch_fresh(state) < 0) {
        return -1;
    }
    (void)snprintf(path, sizeof(path), "%s/workspaces", scratch_path);
    if (workspace_open_parent(path, &parent, NULL) < 0) {
        return -1;
    }
    fresh = fresh_new(parent, 1);
    return 0;
}

static int end(void **state)
{
    (void)state;
    fresh_free(fresh);
    close(parent);
    return 0;
}

/* Takes one, lets change do something to it, gives it back. Is it used again? */
static int used_again(void (*change)(int directory))
{
    char name[ID_SIZE];
    char next[ID_SIZE];
    int directory = -1;
    int again;

    assert_int_equal(fresh_take(fresh, name, &directory, NULL), 0);
    change(directory);
    fresh_give(fresh, name, directory);
    again = scratch_has(parent, name);
    assert_int_equal(fresh_take(fresh, next, &directory, NULL), 0);
    assert_int_equal(strcmp(name, next) == 0, again);
    assert_true(scratch_has(parent, next));
    fresh_give(fresh, next, directory);
    return again;
}

static void nothing(int directory)
{
    (void)directory;
}

static void make_and_delete(int directory)
{
    scratch_file(directory, "x", "1");
    assert_int_equal(unlinkat(directory, "x", 0), 0);
}

static void leave_file(int directory)
{
    scratch_file(directory, ".hidden", "1");
}

static void leave_directory(int directory)
{
    assert_int_equal(mkdirat(directory, "d", 0), 0);
}

static void change_mode(int directory)
{
    assert_int_equal(fchmod(directory, 01700), 0);
}

static void lock_out(int directory)
{
    scratch_file(directory, "x", "1");
    assert_int_equal(fchmod(directory, 0), 0);
}

static void set_attribute(int directory)
{
    assert_int_equal(fsetxattr(directory, "user.note", "1", 1, 0), 0);
}

static void untouched_ones_are_used_again(void **state)
{
    (void)state;
    assert_true(used_again(nothing));
    assert_true(used_again(make_and_delete));
}

static void changed_ones_are_not(void **state)
{
    (void)state;
    assert_false(used_again(leave_file));
    assert_false(used_again(leave_directory));
    assert_false(used_again(change_mode));
    assert_false(used_again(lock_out));
    assert_false(used_again(set_attribute));
}

static void only_so_many_are_kept(void **state)
{
    char names[3][ID_SIZE];
    int directories[3];
    int kept = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fresh_take(fresh, names[i], &directories[i], NULL), 0);
    }
    assert_string_not_equal(names[0], names[1]);
    for (int i = 0; i < 3; i++) {
        fresh_give(fresh, names[i], directories[i]);
    }
    for (int i = 0; i < 3; i++) {
        kept += scratch_has(parent, names[i]);
    }
    assert_int_equal(kept, 1);
    fresh_free(fresh);
    fresh = NULL;
    for (int i = 0; i < 3; i++) {
        assert_false(scratch_has(parent, names[i]));
    }
    fresh_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(untouched_ones_are_used_again, begin, end),
        cmocka_unit_test_setup_teardown(changed_ones_are_not, begin, end),
        cmocka_unit_test_setup_teardown(only_so_many_are_kept, begin, end),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
