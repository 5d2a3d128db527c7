/* SPDX-License-Identifier: Apache-2.0 */
/* The quota of a workspace, kept by measuring. */
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
#include "tests/unit/boxkit.h"

#define QUOTA (20 * BOXKIT_MIB)

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
    run("for i in 1 2 3 4 5 6; do head -c 5M /dev/zero >many$i; done; sleep 1000", &result);
    assert_stopped(&result);
    boxkit_done(&result);
    run("rm many*", &result);
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
    run("rm -r a", &result);
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
    run("rm -f sparse* data second third symbolic everything", &result);
    boxkit_done(&result);
}

static void one_file_never_gets_larger(void **state)
{
    struct boxkit_result result;

    (void)state;
    /* The limit of a single file comes first: an ordinary error of its writer. */
    run("trap '' XFSZ; head -c 30M /dev/zero >one; stat -c %s one; rm one", &result);
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
    diskwatch_start(&watch, UINT64_C(2500) * 4096);
    do {
        watch.next_ns = 0;
        looks++;
    } while (!diskwatch_look(&watch) && looks < 100);
    assert_true(looks > 1 && looks < 100);
    assert_true(watch.over_bytes > UINT64_C(2500) * 4096);
    diskwatch_done(&watch);
    assert_int_equal(watch.next_ns, CLOCK_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_files_count_together),
        cmocka_unit_test(deep_folders_count),
        cmocka_unit_test(links_and_holes_are_not_data),
        cmocka_unit_test(one_file_never_gets_larger),
        cmocka_unit_test(a_large_tree_is_added_up_in_slices),
    };

    return cmocka_run_group_tests(tests, boxkit_begin, boxkit_end);
}
