/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the cgroup tree: made-up ones for the values, the kernel's for what it does. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/cgroupdir.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/box/cgroup.h"
#include "lib/box/spawn.h"
#include "lib/box/tree.h"

#define MIB (UINT64_C(1) << 20)
#define SMALL ((size_t)4096)

/* ---- made-up files ---- */

static char made_up[64];

static void put(const char *name, const char *text)
{
    CLEANUP_FREE char *path = alloc_printf("%s/%s", made_up, name);

    assert_int_equal(fd_write_file(path, text, strlen(text), 0600), 0);
}

static void assert_holds(const char *name, const char *text)
{
    CLEANUP_FREE char *path = alloc_printf("%s/%s", made_up, name);
    CLEANUP_FREE char *content = fd_read_file(path, SMALL, NULL);

    assert_non_null(content);
    assert_string_equal(content, text);
}

static int begin_made_up(void **state)
{
    (void)state;
    (void)snprintf(made_up, sizeof(made_up), "/tmp/kernd-cgroup-XXXXXX");
    return mkdtemp(made_up) == NULL ? -1 : 0;
}

static int end_made_up(void **state)
{
    CLEANUP_FD int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    return tree_remove(tmp, strrchr(made_up, '/') + 1);
}

static void what_the_kernel_counted_is_read(void **state)
{
    const struct cgroup_tree tree = {
        .fd = -1, .memory = true, .pids = true, .cpu = true, .peaks = true
    };
    CLEANUP_FD int fd = open(made_up, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct cgroup_usage usage;

    (void)state;
    put("cpu.stat", "usage_usec 30\nuser_usec 10\nsystem_usec 20\nnr_periods 0\n");
    put("memory.current", "4096\n");
    put("memory.peak", "8192\n");
    put("pids.peak", "7\n");
    put("memory.events", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n");
    cgroup_read(&tree, fd, &usage);
    assert_int_equal(usage.cpu_user_us, 10);
    assert_int_equal(usage.cpu_system_us, 20);
    assert_int_equal(usage.memory_bytes, 4096);
    assert_int_equal(usage.peak_memory_bytes, 8192);
    assert_int_equal(usage.peak_pids, 7);
    assert_int_equal(usage.oom_kills, 2);
}

static void what_is_not_there_is_not_known(void **state)
{
    const struct cgroup_tree tree = {
        .fd = -1, .memory = true, .pids = true, .cpu = true, .peaks = true
    };
    CLEANUP_FD int fd = open(made_up, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct cgroup_usage usage;

    (void)state;
    put("memory.current", "a word\n");
    put("memory.peak", "99999999999999999999999\n");
    put("memory.events", "oom_kills 5\n");
    cgroup_read(&tree, fd, &usage);
    assert_int_equal(usage.cpu_user_us, -1);
    assert_int_equal(usage.cpu_system_us, -1);
    assert_int_equal(usage.memory_bytes, -1);
    assert_int_equal(usage.peak_memory_bytes, -1);
    assert_int_equal(usage.peak_pids, -1);
    assert_int_equal(usage.oom_kills, -1);
}

static void limits_are_written_in_the_kernels_words(void **state)
{
    static const char *const names[] = { "memory.max", "memory.oom.group", "memory.swap.max",
                                         "pids.max",   "cpu.max",          "io.weight" };
    const struct cgroup_tree tree = {
        .fd = -1, .memory = true, .pids = true, .cpu = true, .io = true
    };
    const struct cgroup_limits some = {
        .memory_bytes = 64 * MIB, .pids = 10, .own_tasks = 2, .cpus = 0.5
    };
    const struct cgroup_limits none = { .memory_bytes = 0 };
    CLEANUP_FD int fd = open(made_up, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        put(names[i], "");
    }
    assert_int_equal(cgroup_limit(&tree, fd, &some, NULL), 0);
    assert_holds("memory.max", "67108864");
    assert_holds("memory.oom.group", "1");
    assert_holds("memory.swap.max", "0");
    assert_holds("pids.max", "12");
    assert_holds("cpu.max", "50000 100000");
    assert_holds("io.weight", "50");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        put(names[i], "");
    }
    assert_int_equal(cgroup_limit(&tree, fd, &none, NULL), 0);
    assert_holds("memory.max", "max");
    assert_holds("pids.max", "max");
    assert_holds("cpu.max", "max 100000");
}

static void a_limit_that_is_not_taken_is_an_error(void **state)
{
    const struct cgroup_tree tree = { .fd = -1, .pids = true };
    const struct cgroup_limits limits = { .pids = 10 };
    CLEANUP_FD int fd = open(made_up, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(cgroup_limit(&tree, fd, &limits, &err), -1);
    assert_int_equal(err.code, ERR_IO);
}

/* Of descriptors, say: what was begun is undone. */
static void running_out_leaves_nothing(void **state)
{
    const struct cgroup_limits limits = { .pids = 10 };
    CLEANUP_FD int fd = open(made_up, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct cgroup_tree tree = { .fd = fd };
    struct err err = ERR_INIT;
    struct rlimit before;
    struct rlimit none_left;
    int made = -1;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none_left = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_left), 0);
    assert_int_equal(cgroup_make(&tree, "box_x", &limits, &made, &err), -1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(err.sys, EMFILE);
    assert_int_equal(faccessat(fd, "box_x", F_OK, 0), -1);
    assert_int_equal(cgroup_make(&tree, "box_x", &limits, &made, NULL), 0);
    fd_close(made);
    assert_int_equal(faccessat(fd, "box_x", F_OK, 0), 0);
}

/* ---- the kernel's ---- */

static char own[128]; /* a cgroup for this test program, "": none can be had here */
static struct cgroup_tree real;

static bool write_pid(const char *directory, const char *pid)
{
    CLEANUP_FREE char *path = alloc_printf("%s/cgroup.procs", directory);
    CLEANUP_FD int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, pid, strlen(pid)) > 0;
}

static int begin_real(void **state)
{
    struct cgroupdir found;

    (void)state;
    cgroupdir_find(&found);
    real.fd = -1;
    if (found.path != NULL && cgroupdir_writable(found.path)) {
        (void)snprintf(own, sizeof(own), "%s/kernd-test-%d", found.path, (int)getpid());
        if (mkdir(own, 0755) < 0 || !write_pid(own, "0")) {
            own[0] = '\0';
        }
    }
    cgroupdir_done(&found);
    cgroup_open(&real);
    return 0;
}

static int end_real(void **state)
{
    CLEANUP_FREE char *main_path = alloc_printf("%s/main", own);
    char *slash = strrchr(own, '/');

    (void)state;
    cgroup_close(&real);
    if (own[0] == '\0') {
        return 0;
    }
    *slash = '\0';
    (void)write_pid(own, "0");
    *slash = '/';
    (void)rmdir(main_path);
    return rmdir(own);
}

/* A process in a box's cgroup that would live for ever. */
static void spawn_forever(int cgroup_fd, struct spawn_child *child)
{
    char sleep_name[] = "sleep";
    char sleep_time[] = "1000";
    char *const argv[] = { sleep_name, sleep_time, NULL };
    char *const environment[] = { NULL };
    const struct spawn_request request = {
        .path = "/bin/sleep", .argv = argv, .environment = environment, .cgroup_fd = cgroup_fd
    };

    assert_int_equal(spawn_start(&request, child, NULL), 0);
}

static int make(const char *id)
{
    const struct cgroup_limits limits = { .memory_bytes = 64 * MIB, .pids = 20, .cpus = 1 };
    struct err err = ERR_INIT;
    int fd = -1;

    if (cgroup_make(&real, id, &limits, &fd, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    return fd;
}

static void a_place_that_is_not_ours_says_why(void **state)
{
    (void)state;
    if (own[0] == '\0') {
        assert_int_equal(real.fd, -1);
        assert_true(real.why[0] != '\0');
    } else {
        assert_true(real.fd >= 0);
        assert_string_equal(real.why, "");
    }
}

static void a_process_is_born_counted_and_killed_there(void **state)
{
    struct spawn_child child = { .pidfd = -1, .exec_error = -1 };
    struct cgroup_usage usage;
    int fd;

    (void)state;
    if (real.fd < 0) {
        return;
    }
    fd = make("box_one");
    assert_false(cgroup_populated(fd));
    spawn_forever(fd, &child);
    assert_true(cgroup_populated(fd));
    cgroup_read(&real, fd, &usage);
    assert_true(usage.cpu_user_us >= 0);
    assert_int_equal(cgroup_kill(fd), 0);
    assert_true(spawn_await(&child, clock_deadline_after_s(30)));
    spawn_done(&child);
    assert_true(cgroup_remove(&real, "box_one", fd, clock_deadline_after_s(30)));
    assert_int_equal(faccessat(real.fd, "box_one", F_OK, 0), -1);
}

static void removing_kills_what_is_left_even_frozen(void **state)
{
    struct spawn_child child = { .pidfd = -1, .exec_error = -1 };
    int fd;

    (void)state;
    if (real.fd < 0) {
        return;
    }
    fd = make("box_two");
    spawn_forever(-1, &child);
    assert_int_equal(cgroup_enter(fd, child.pid), 0);
    assert_int_equal(cgroup_freeze(fd, true), 0);
    assert_true(cgroup_remove(&real, "box_two", fd, clock_deadline_after_s(30)));
    assert_true(spawn_await(&child, clock_deadline_after_s(30)));
    spawn_done(&child);
}

static void a_second_kernd_keeps_off_and_a_successor_sweeps(void **state)
{
    struct spawn_child child = { .pidfd = -1, .exec_error = -1 };
    struct cgroup_tree second;
    int fd;

    (void)state;
    if (real.fd < 0) {
        return;
    }
    fd = make("box_left");
    spawn_forever(fd, &child);
    fd_close(fd);
    cgroup_open(&second);
    assert_int_equal(second.fd, -1);
    assert_non_null(strstr(second.why, "another kernd"));
    assert_int_equal(faccessat(real.fd, "box_left", F_OK, 0), 0);
    cgroup_close(&real);
    cgroup_open(&real);
    assert_true(real.fd >= 0);
    assert_true(spawn_await(&child, clock_deadline_after_s(30)));
    spawn_done(&child);
    assert_int_equal(faccessat(real.fd, "box_left", F_OK, 0), -1);
}

int main(void)
{
    const struct CMUnitTest in_made_up[] = {
        cmocka_unit_test_setup_teardown(what_the_kernel_counted_is_read, begin_made_up,
                                        end_made_up),
        cmocka_unit_test_setup_teardown(what_is_not_there_is_not_known, begin_made_up, end_made_up),
        cmocka_unit_test_setup_teardown(limits_are_written_in_the_kernels_words, begin_made_up,
                                        end_made_up),
        cmocka_unit_test_setup_teardown(a_limit_that_is_not_taken_is_an_error, begin_made_up,
                                        end_made_up),
        cmocka_unit_test_setup_teardown(running_out_leaves_nothing, begin_made_up, end_made_up),
    };
    const struct CMUnitTest in_real[] = {
        cmocka_unit_test(a_place_that_is_not_ours_says_why),
        cmocka_unit_test(a_process_is_born_counted_and_killed_there),
        cmocka_unit_test(removing_kills_what_is_left_even_frozen),
        cmocka_unit_test(a_second_kernd_keeps_off_and_a_successor_sweeps),
    };
    int failed = cmocka_run_group_tests(in_made_up, NULL, NULL);

    return failed + cmocka_run_group_tests(in_real, begin_real, end_real);
}
