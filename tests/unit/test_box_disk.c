/* SPDX-License-Identifier: Apache-2.0 */
/* The quota of a workspace, kept by measuring. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/box/diskwatch.h"
#include "lib/box/tree.h"
#include "tests/unit/boxkit.h"

#define QUOTA (20 * BOXKIT_MIB)

/* From outside: what is above its quota is stopped, whatever it does. */
static int begin_empty(void **state)
{
    CLEANUP_FD int parent = open(boxkit_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    return tree_remove(parent, "work") < 0 ? -1 : mkdirat(parent, "work", 0700);
}

static void run(const char *script, struct boxkit_result *result)
{
    boxkit_run(&(const struct boxkit_call){ .script = script, .limits = { .disk_bytes = QUOTA } },
               result);
}

static void assert_stopped(const struct boxkit_result *result)
{
    if (result->stop != BOX_STOP_DISK) {
        fail_msg("stop %d: %s%s", result->stop, boxkit_out(result), boxkit_err(result));
    }
    assert_true(result->outcome.disk_full);
    assert_false(result->outcome.oom);
    assert_non_null(strstr(result->outcome.evidence, "above its quota of 20 MiB"));
}

static void many_files_count_together(void **state)
{
    struct boxkit_result result;

    (void)state;
    run("for i in 1 2 3 4 5 6 7; do head -c 5M /dev/zero >many$i; done; sleep 1000", &result);
    assert_stopped(&result);
    boxkit_done(&result);
}

static void deep_folders_count(void **state)
{
    struct boxkit_result result;

    (void)state;
    run("mkdir -p a/b/c/d/e; cd a/b/c/d/e; for i in 1 2 3; do head -c 8M /dev/zero >f$i; done; "
        "sleep 1000",
        &result);
    assert_stopped(&result);
    boxkit_done(&result);
}

static void links_and_holes_are_not_data(void **state)
{
    struct boxkit_result result;

    (void)state;
    run("truncate -s 19M sparse1; truncate -s 19M sparse2; head -c 9M /dev/zero >data; "
        "ln data second; ln data third; ln -s data symbolic; ln -s / everything; sleep 1",
        &result);
    boxkit_assert_exit(&result, 0);
    assert_false(result.outcome.disk_full);
    boxkit_done(&result);
}

static void one_file_never_gets_larger(void **state)
{
    struct boxkit_result result;

    (void)state;
    /* The limit of a single file comes first: an ordinary error of its writer. */
    run("trap '' XFSZ; head -c 30M /dev/zero >one; stat -c %s one", &result);
    assert_string_equal(boxkit_out(&result), "20971520\n");
    boxkit_done(&result);
}

static void a_large_tree_is_added_up_in_slices(void **state)
{
    struct diskwatch watch;
    size_t looks = 0;

    (void)state;
    diskwatch_init(&watch);
    assert_int_equal(watch.next_ns, CLOCK_NEVER);
    assert_false(diskwatch_look(&watch));
    for (int i = 0; i < 3000; i++) {
        CLEANUP_FREE char *path = alloc_printf("%s/x%d", boxkit_workspace, i);

        assert_int_equal(fd_write_file(path, "x", 1, 0600), 0);
    }
    assert_int_equal(diskwatch_open(&watch, boxkit_workspace), 0);
    diskwatch_start(&watch, UINT64_C(2000) * 4096, 0);
    do {
        watch.next_ns = 0;
        looks++;
    } while (!diskwatch_look(&watch) && looks < 100);
    assert_true(looks > 1 && looks < 100);
    assert_true(watch.over_bytes > UINT64_C(2000) * 4096);
    diskwatch_done(&watch);
    assert_int_equal(watch.next_ns, CLOCK_NEVER);
}

#define DEEP (2 * DISKWATCH_OPEN + 10)

/* One directory in the other, more than are open at once, and a file beside each. */
static void make_deep(int dirs[static DEEP + 1])
{
    dirs[0] = open(boxkit_workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < DEEP; i++) {
        CLEANUP_FD int file = openat(dirs[i], "z", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        assert_int_equal(mkdirat(dirs[i], "d", 0700), 0);
        dirs[i + 1] = openat(dirs[i], "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(file >= 0 && dirs[i + 1] >= 0);
    }
}

static void remove_deep(const int dirs[static DEEP + 1])
{
    fd_close(dirs[DEEP]);
    for (size_t i = DEEP; i > 0; i--) {
        assert_int_equal(unlinkat(dirs[i - 1], "d", AT_REMOVEDIR), 0);
        assert_int_equal(unlinkat(dirs[i - 1], "z", 0), 0);
        fd_close(dirs[i - 1]);
    }
}

static void what_is_far_down_counts_and_what_comes_behind_it(void **state)
{
    struct diskwatch watch;
    int dirs[DEEP + 1];

    (void)state;
    make_deep(dirs);
    diskwatch_init(&watch);
    assert_int_equal(diskwatch_open(&watch, boxkit_workspace), 0);
    diskwatch_start(&watch, 0, UINT64_C(2) * DEEP);
    watch.next_ns = 0;
    assert_false(diskwatch_look(&watch));
    assert_int_equal(watch.depth, 0);
    assert_int_equal(watch.files, 2 * DEEP);
    diskwatch_start(&watch, 0, UINT64_C(2) * DEEP - 1);
    watch.next_ns = 0;
    assert_true(diskwatch_look(&watch));
    diskwatch_done(&watch);
    remove_deep(dirs);
}

static void files_are_counted_too(void **state)
{
    struct diskwatch watch;

    (void)state;
    for (int i = 0; i < 100; i++) {
        CLEANUP_FREE char *path = alloc_printf("%s/d%d", boxkit_workspace, i);

        assert_int_equal(mkdir(path, 0700), 0);
    }
    diskwatch_init(&watch);
    assert_int_equal(diskwatch_open(&watch, boxkit_workspace), 0);
    /* Without a quota: seldom. */
    diskwatch_start(&watch, 0, 100);
    assert_true(watch.next_ns - clock_mono_ns() > 500 * CLOCK_NS_PER_MS);
    watch.next_ns = 0;
    assert_false(diskwatch_look(&watch));
    assert_true(watch.next_ns - clock_mono_ns() > 500 * CLOCK_NS_PER_MS);
    diskwatch_start(&watch, 0, 99);
    watch.next_ns = 0;
    assert_true(diskwatch_look(&watch));
    assert_int_equal(watch.over_files, 100);
    assert_int_equal(watch.over_bytes, 0);
    diskwatch_done(&watch);
    diskwatch_start(&watch, 0, 0);
    assert_int_equal(watch.next_ns, CLOCK_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(many_files_count_together, begin_empty),
        cmocka_unit_test_setup(deep_folders_count, begin_empty),
        cmocka_unit_test_setup(links_and_holes_are_not_data, begin_empty),
        cmocka_unit_test_setup(one_file_never_gets_larger, begin_empty),
        cmocka_unit_test_setup(a_large_tree_is_added_up_in_slices, begin_empty),
        cmocka_unit_test_setup(what_is_far_down_counts_and_what_comes_behind_it, begin_empty),
        cmocka_unit_test_setup(files_are_counted_too, begin_empty),
    };

    return cmocka_run_group_tests(tests, boxkit_begin, boxkit_end);
}
