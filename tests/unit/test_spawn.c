/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a launcher: what it finds, and that starts elsewhere keep no written file busy. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/box/spawn.h"
#include "tests/unit/scratch.h"

#define PROGRAM "/usr/bin/true"
#define PROGRAM_MAX (1 << 20)
#define WAIT_S 60
#define ROUNDS 500

static struct spawn_child start(const char *path, int *ret_reason)
{
    char *const argv[] = { alloc_text(path), NULL };
    char *const environment[] = { NULL };
    const struct spawn_request request = { .path = path,
                                           .argv = argv,
                                           .environment = environment,
                                           .cgroup_fd = -1,
                                           .ends_with_parent = true };
    struct spawn_child child = { 0 };

    assert_int_equal(spawn_start(&request, &child, NULL), 0);
    *ret_reason = spawn_exec_errno(&child);
    free(argv[0]);
    return child;
}

static int run(const char *path)
{
    int reason;
    struct spawn_child child = start(path, &reason);

    assert_true(spawn_await(&child, clock_deadline_after_s(WAIT_S)));
    spawn_done(&child);
    return reason;
}

static void a_start_tells_whether_exec_worked(void **state)
{
    (void)state;
    assert_int_equal(run(PROGRAM), 0);
    assert_int_equal(run("/nonexistent"), ENOENT);
    assert_int_equal(run("/"), EACCES);
}

static void *start_and_start(void *context)
{
    atomic_bool *over = context;

    while (!atomic_load(over)) {
        (void)run(PROGRAM);
    }
    return NULL;
}

/* As the files of a call: written, closed, and executed at once. */
static void a_written_program_can_be_executed(void **state)
{
    static char bytes[PROGRAM_MAX];
    char *path = alloc_printf("%s/program", scratch_path);
    int source = open(PROGRAM, O_RDONLY | O_CLOEXEC);
    ssize_t size = read(source, bytes, sizeof(bytes));
    atomic_bool over = false;
    pthread_t others[2];

    (void)state;
    assert_true(size > 0 && size < PROGRAM_MAX);
    (void)close(source);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&others[i], NULL, start_and_start, &over), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

        assert_int_equal(write(fd, bytes, (size_t)size), size);
        assert_int_equal(close(fd), 0);
        spawn_settle();
        assert_int_equal(run(path), 0);
        assert_int_equal(unlink(path), 0);
    }
    atomic_store(&over, true);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(others[i], NULL), 0);
    }
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_start_tells_whether_exec_worked, scratch_fresh),
        cmocka_unit_test_setup(a_written_program_can_be_executed, scratch_fresh),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
