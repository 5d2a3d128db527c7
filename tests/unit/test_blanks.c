/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/work/blanks.h"
#include "lib/work/workspace.h"
#include "tests/unit/scratch.h"

/* Once the clock of file times has gone on, which takes a tick. */
static void watch(struct blank *blank)
{
    for (blanks_watch(blank); !blank->watched; blanks_watch(blank)) {
        (void)poll(NULL, 0, 1);
    }
}

/* On a file system whose change times say nothing, none is used again: there is nothing to see. */
static struct blank take(struct blanks *blanks)
{
    struct blank blank;

    assert_int_equal(blanks_open(blanks, &blank, NULL), 0);
    if (blank.changed.tv_nsec == 0) {
        skip();
    }
    return blank;
}

static void give(struct blanks *blanks, struct blank *blank, bool unreachable)
{
    struct remove_left left;

    assert_int_equal(blanks_close(blanks, blank, unreachable, &left), 0);
}

/* Is it the next one that anybody gets? */
static bool comes_again(struct blanks *blanks, const char *name)
{
    struct blank next = take(blanks);
    const bool again = text_equal(next.name, name);

    give(blanks, &next, false);
    return again;
}

static void untouched_comes_again(void **state)
{
    CLEANUP_FD int parent = scratch_workspaces();
    struct blanks *blanks = blanks_new(parent, "call-x");
    struct blank first = take(blanks);
    struct blank second = take(blanks);
    struct blank third;

    (void)state;
    assert_true(text_starts_with(first.name, "call-x_"));
    assert_string_not_equal(first.name, second.name);
    watch(&first);
    watch(&second);
    assert_true(blanks_untouched(&first));
    give(blanks, &first, true);
    give(blanks, &second, true);
    third = take(blanks);
    assert_string_equal(third.name, second.name); /* the warmest */
    assert_false(third.watched);
    assert_true(scratch_has(parent, third.name));
    give(blanks, &third, false);
    assert_false(scratch_has(parent, third.name));
    blanks_free(blanks);
    assert_false(scratch_has(parent, first.name));
}

static void make_file(int root)
{
    scratch_file(root, "f", "1");
}

static void make_and_remove(int root)
{
    scratch_file(root, "f", "1");
    assert_int_equal(unlinkat(root, "f", 0), 0);
}

static void make_directory_and_remove(int root)
{
    assert_int_equal(mkdirat(root, "d", 0700), 0);
    assert_int_equal(unlinkat(root, "d", AT_REMOVEDIR), 0);
}

static void change_mode_and_back(int root)
{
    assert_int_equal(fchmod(root, 0755), 0);
    assert_int_equal(fchmod(root, 0700), 0);
}

static void set_times(int root)
{
    const struct timespec times[] = { { .tv_sec = 1 }, { .tv_sec = 1 } };

    assert_int_equal(futimens(root, times), 0);
}

static void set_attribute(int root)
{
    if (fsetxattr(root, "user.kernd", "1", 1, 0) < 0) {
        change_mode_and_back(root); /* a file system without */
    }
}

/* Whatever was done to it, even if nothing of it is left. */
static void touched_is_removed(void **state)
{
    static void (*const touches[])(
        int root) = { make_file, make_and_remove, make_directory_and_remove, change_mode_and_back,
                      set_times, set_attribute };
    CLEANUP_FD int parent = scratch_workspaces();
    struct blanks *blanks = blanks_new(parent, "call-x");

    (void)state;
    for (size_t i = 0; i < sizeof(touches) / sizeof(touches[0]); i++) {
        struct blank blank = take(blanks);

        watch(&blank);
        touches[i](blank.root);
        assert_false(blanks_untouched(&blank));
        give(blanks, &blank, true);
        assert_false(scratch_has(parent, blank.name));
        assert_false(comes_again(blanks, blank.name));
    }
    blanks_free(blanks);
}

static void unwatched_or_reachable_is_removed(void **state)
{
    CLEANUP_FD int parent = scratch_workspaces();
    struct blanks *blanks = blanks_new(parent, "call-x");
    struct blank unwatched = take(blanks);
    struct blank reachable = take(blanks);

    (void)state;
    assert_false(blanks_untouched(&unwatched));
    give(blanks, &unwatched, true);
    assert_false(comes_again(blanks, unwatched.name));
    watch(&reachable);
    give(blanks, &reachable, false);
    assert_false(comes_again(blanks, reachable.name));
    blanks_free(blanks);
}

/* What was written within the tick in which it was made could not be seen. */
static void watched_too_early_is_not_watched(void **state)
{
    struct blank blank = { .root = -1 };

    (void)state;
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &blank.changed),
                     0); /* ahead of the coarse one */
    blank.changed.tv_nsec |= 1;
    blanks_watch(&blank);
    assert_false(blank.watched);
    blank.changed = (struct timespec){ .tv_sec = 1 }; /* a file system that knows whole seconds */
    blanks_watch(&blank);
    assert_false(blank.watched);
    blank.changed.tv_nsec = 1;
    blanks_watch(&blank);
    assert_true(blank.watched);
}

static struct timespec read_time(const struct blank *blank)
{
    struct stat status;

    assert_int_equal(fstat(blank->root, &status), 0);
    assert_int_equal(status.st_ctim.tv_nsec, blank->changed.tv_nsec);
    return status.st_atim;
}

/* Nobody sees that it was read, or when. */
static void one_that_was_read_has_new_times(void **state)
{
    const struct timespec read[] = { { .tv_sec = 1 }, { .tv_nsec = UTIME_OMIT } };
    CLEANUP_FD int parent = scratch_workspaces();
    struct blanks *blanks = blanks_new(parent, "call-x");
    struct blank blank = take(blanks);
    struct stat status;

    (void)state;
    /* As if it had been read then: when reading changes the time is up to the mount. */
    assert_int_equal(futimens(blank.root, read), 0);
    assert_int_equal(fstat(blank.root, &status), 0);
    blank.changed = status.st_ctim;
    watch(&blank);
    give(blanks, &blank, true);
    blank = take(blanks);
    assert_int_not_equal(read_time(&blank).tv_sec, 1);
    watch(&blank);
    assert_true(blanks_untouched(&blank));
    give(blanks, &blank, true);
    blanks_free(blanks);
}

static size_t count_of(int parent)
{
    CLEANUP_DIR DIR *dir = fdopendir(openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const struct dirent *entry;
    size_t count = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        count += text_starts_with(entry->d_name, "call-x") ? 1 : 0;
    }
    return count;
}

static void few_are_kept_and_not_for_long(void **state)
{
    enum { MANY = 40, KEPT = 16 };
    CLEANUP_FD int parent = scratch_workspaces();
    struct blanks *blanks = blanks_new(parent, "call-x");
    struct blank all[MANY];

    (void)state;
    for (int i = 0; i < MANY; i++) {
        all[i] = take(blanks);
    }
    for (int i = 0; i < MANY; i++) {
        watch(&all[i]);
        give(blanks, &all[i], true);
    }
    assert_int_equal(count_of(parent), KEPT);
    blanks_age(blanks, 0);
    assert_int_equal(count_of(parent), KEPT);
    blanks_age(blanks, INT64_MAX);
    assert_int_equal(count_of(parent), 0);
    blanks_free(blanks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(untouched_comes_again, scratch_fresh),
        cmocka_unit_test_setup(touched_is_removed, scratch_fresh),
        cmocka_unit_test_setup(unwatched_or_reachable_is_removed, scratch_fresh),
        cmocka_unit_test(watched_too_early_is_not_watched),
        cmocka_unit_test_setup(one_that_was_read_has_new_times, scratch_fresh),
        cmocka_unit_test_setup(few_are_kept_and_not_for_long, scratch_fresh),
    };

    return cmocka_run_group_tests_name("blanks", tests, scratch_begin, scratch_end);
}
