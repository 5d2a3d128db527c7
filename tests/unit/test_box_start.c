/* SPDX-License-Identifier: Apache-2.0 */
/* Launchers that fail, and what is told about them. Their places are taken by small scripts. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "tests/unit/boxkit.h"

/* Of the factories with stubs; boxkit's own is in use. */
static char stub_runtime[96];

/* Nothing is left when box_start failed: no live box, no per-box directory. */
static void assert_nothing_left(struct boxes *boxes)
{
    char path[128];

    assert_int_equal(boxes_running(boxes), 0);
    /* Only an empty directory can be removed; it is made again by the next boxes_open. */
    (void)snprintf(path, sizeof(path), "%s/boxes", stub_runtime);
    assert_int_equal(rmdir(path), 0);
}

static struct boxes *open_with(const char *launcher)
{
    const struct boxes_config config = { .runtime_dir = stub_runtime,
                                         .library_dir = boxkit_library,
                                         .engine = "bubblewrap",
                                         .launcher = launcher };
    struct err err = ERR_INIT;
    struct boxes *boxes = NULL;

    if (boxes_open(&config, &boxes, &err) < 0) {
        fail_msg("boxes_open: %s", err.msg);
    }
    return boxes;
}

/* Starts a box with this shell script as the launcher; it must fail. */
static void fail_with(const char *script, double timeout_s, struct err *err)
{
    char text[512];
    struct boxes *boxes;
    struct box_spec spec = { .workspace = boxkit_workspace };
    struct box *box = NULL;

    (void)snprintf(text, sizeof(text),
                   "#!/bin/sh\n[ \"$1\" = --version ] && { echo stub 1.2.3; exit; }\n%s\n", script);
    boxes = open_with(boxkit_file("stub", text, 0755));
    spec.deadline = clock_deadline_after_s(timeout_s);
    *err = ERR_INIT;
    assert_int_equal(box_start(boxes, &spec, &box, err), -1);
    assert_null(box);
    assert_nothing_left(boxes);
    boxes_close(boxes);
}

static void its_own_words_name_the_setting(void **state)
{
    struct err err;

    (void)state;
    fail_with("echo 'error: sandbox: uid_map: Operation not permitted' >&2; exit 125", 60, &err);
    assert_int_equal(err.code, ERR_ENGINE_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "uid_map: Operation not permitted"));
    assert_non_null(strstr(err.remedy, "user"));
}

static void a_launcher_without_words_is_no_success(void **state)
{
    struct err err;

    (void)state;
    fail_with("exit 125", 60, &err);
    assert_int_equal(err.code, ERR_BOX_START_FAILED);
    assert_non_null(strstr(err.msg, "exit 125"));
    fail_with("kill -SEGV $$", 60, &err);
    assert_int_equal(err.code, ERR_BOX_START_FAILED);
    assert_non_null(strstr(err.msg, "signal 11"));
    fail_with("exit 0", 60, &err);
    assert_int_equal(err.code, ERR_BOX_START_FAILED);
}

static void a_flood_of_words_is_bounded(void **state)
{
    struct err err;

    (void)state;
    fail_with("head -c 3000000 /dev/zero >&2; echo 'the reason' >&2; exit 1", 60, &err);
    assert_int_equal(err.code, ERR_BOX_START_FAILED);
    fail_with("head -c 3000000 /dev/zero; exit 1", 3, &err); /* nobody reads that yet */
    assert_true(err.code == ERR_DEADLINE || err.code == ERR_BOX_START_FAILED);
}

static void a_launcher_that_hangs_ends_at_the_deadline(void **state)
{
    char path[160];
    struct err err;
    int64_t began = clock_mono_ns();
    char *pid;

    (void)state;
    (void)snprintf(path, sizeof(path), "trap '' TERM HUP; echo $$ >%s/pid; sleep 1000; sleep 1000",
                   boxkit_dir);
    fail_with(path, 0.5, &err);
    assert_int_equal(err.code, ERR_DEADLINE);
    assert_true(clock_ms_between(began, clock_mono_ns()) < 20000);
    (void)snprintf(path, sizeof(path), "%s/pid", boxkit_dir);
    pid = fd_read_file(path, 64, NULL);
    assert_non_null(pid);
    assert_int_equal(kill((pid_t)atoi(pid), 0), -1);
    free(pid);
}

static void *fire(void *cancel)
{
    cancel_fire(cancel, CANCEL_REQUESTED);
    return NULL;
}

static void starting_can_be_cancelled(void **state)
{
    struct boxes *boxes = open_with(boxkit_file("stub", "#!/bin/sh\nsleep 1000\n", 0755));
    struct cancel cancel;
    struct box_spec spec = { .workspace = boxkit_workspace, .cancel = &cancel };
    struct box *box = NULL;
    struct err err = ERR_INIT;
    pthread_t thread;

    (void)state;
    spec.deadline = clock_deadline_after_s(60);
    assert_int_equal(cancel_init(&cancel, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, fire, &cancel), 0);
    assert_int_equal(box_start(boxes, &spec, &box, &err), -1);
    assert_int_equal(err.code, ERR_CANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_nothing_left(boxes);
    cancel_done(&cancel);
    boxes_close(boxes);
}

static void a_file_that_is_no_program_is_told(void **state)
{
    struct boxes *boxes = open_with(boxkit_file("stub", "\177ELF, but not really", 0755));
    const struct box_spec spec = { .workspace = boxkit_workspace,
                                   .deadline = clock_deadline_after_s(60) };
    struct box *box = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(box_start(boxes, &spec, &box, &err), -1);
    assert_int_equal(err.code, ERR_ENGINE_UNAVAILABLE);
    assert_int_equal(err.sys, ENOEXEC);
    assert_nothing_left(boxes);
    boxes_close(boxes);
}

static void a_launcher_that_is_not_there_is_refused_at_once(void **state)
{
    struct boxes_config config = { .runtime_dir = stub_runtime,
                                   .library_dir = boxkit_library,
                                   .engine = "bubblewrap",
                                   .launcher = "/nowhere/bwrap" };
    struct boxes *boxes = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(boxes_open(&config, &boxes, &err), -1);
    assert_non_null(strstr(err.msg, "/nowhere/bwrap"));
    config.launcher = boxkit_file("stub", "text", 0644);
    assert_int_equal(boxes_open(&config, &boxes, &err), -1);
    config.launcher = NULL;
    config.engine = "magic";
    assert_int_equal(boxes_open(&config, &boxes, &err), -1);
    assert_int_equal(err.code, ERR_BAD_VALUE);
    config.engine = "auto";
    config.library_dir = "/nowhere";
    assert_int_equal(boxes_open(&config, &boxes, &err), -1);
    config.library_dir = boxkit_library;
    config.runtime_dir = "/nowhere";
    assert_int_equal(boxes_open(&config, &boxes, &err), -1);
    assert_null(boxes);
}

static void the_probe_remembers_success_and_tells_failure(void **state)
{
    struct boxes *boxes =
        open_with(boxkit_file("stub",
                              "#!/bin/sh\necho 'bwrap: setting up uid map: Permission "
                              "denied' >&2; exit 1\n",
                              0755));
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(boxes_ready(boxes, &err), -1);
    assert_int_equal(err.code, ERR_ENGINE_UNAVAILABLE);
    assert_true(err.remedy[0] != '\0');
    /* Remembered for a second; the same answer either way. */
    err = ERR_INIT;
    assert_int_equal(boxes_ready(boxes, &err), -1);
    assert_int_equal(err.code, ERR_ENGINE_UNAVAILABLE);
    boxes_close(boxes);
}

/* Not by boxes_open; and what could not be made is made once it can. */
static void what_boxes_share_is_made_for_the_first(void **state)
{
    struct box_spec spec = { .workspace = boxkit_workspace };
    struct boxes *boxes = open_with(NULL);
    struct box *box = NULL;
    struct err err = ERR_INIT;
    char path[128];

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/etc.stamp", stub_runtime);
    (void)unlink(path);
    assert_int_equal(chmod(stub_runtime, 0500), 0);
    spec.deadline = clock_deadline_after_s(60);
    assert_int_equal(box_start(boxes, &spec, &box, &err), -1);
    assert_int_equal(err.code, ERR_IO);
    assert_non_null(strstr(err.msg, "/etc"));
    assert_int_equal(chmod(stub_runtime, 0700), 0);
    assert_int_equal(boxes_ready(boxes, NULL), 0);
    assert_int_equal(access(path, F_OK), 0);
    boxes_close(boxes);
}

static void leftovers_of_a_killed_daemon_are_swept(void **state)
{
    char path[256];
    struct boxes *boxes;

    (void)state;
    boxes = open_with(NULL);
    boxes_close(boxes);
    (void)snprintf(path, sizeof(path), "%s/boxes/box_left", stub_runtime);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/boxes/box_left/cell.py", stub_runtime);
    assert_int_equal(fd_write_file(path, "x", 1, 0400), 0);
    boxes = open_with(NULL);
    assert_nothing_left(boxes);
    boxes_close(boxes);
}

static void a_runtime_directory_has_one_owner(void **state)
{
    const struct boxes_config config = { .runtime_dir = boxkit_runtime,
                                         .library_dir = boxkit_library,
                                         .engine = "auto" };
    struct boxes *boxes = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(boxes_open(&config, &boxes, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_non_null(strstr(err.msg, boxkit_runtime));
}

/* A process that looks like a launcher left over, with a child of its own. */
static pid_t leave_a_launcher(void)
{
    char script[512];
    char path[160];
    pid_t pid;

    (void)snprintf(path, sizeof(path), "%s/bwrap", boxkit_dir);
    (void)unlink(path);
    assert_int_equal(symlink("/bin/bash", path), 0);
    (void)snprintf(script, sizeof(script), "sleep 1000; : %s/boxes/box_left", stub_runtime);
    pid = fork();
    if (pid == 0) {
        (void)execl(path, "bwrap", "-c", script, (char *)NULL);
        _exit(1);
    }
    return pid;
}

static void a_launcher_that_lives_on_is_swept(void **state)
{
    char path[256];
    pid_t left = leave_a_launcher();
    struct boxes *boxes;
    int64_t deadline = clock_deadline_after_s(20);
    int status = 0;

    (void)state;
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", left);
    for (;;) {
        char *comm = fd_read_file(path, 64, NULL);
        bool ready = comm != NULL && strcmp(comm, "bwrap\n") == 0;

        free(comm);
        if (ready) {
            break;
        }
        assert_false(clock_passed(deadline));
    }
    (void)snprintf(path, sizeof(path), "%s/boxes", stub_runtime);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof(path), "%s/boxes/box_left", stub_runtime);
    assert_int_equal(mkdir(path, 0700), 0);
    boxes = open_with(NULL);
    assert_int_equal(waitpid(left, &status, 0), left);
    assert_true(WIFSIGNALED(status) || WIFEXITED(status));
    assert_nothing_left(boxes);
    boxes_close(boxes);
}

static void a_path_longer_than_a_socket_address_works(void **state)
{
    char path[512];
    struct boxes_config config = { .runtime_dir = path,
                                   .library_dir = boxkit_library,
                                   .engine = "bubblewrap" };
    struct boxes *boxes = NULL;
    struct err err = ERR_INIT;

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/%0200d", boxkit_dir, 7);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(boxes_open(&config, &boxes, &err), 0);
    if (boxes_ready(boxes, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    boxes_close(boxes);
}

enum { THREADS = 6, ROUNDS = 5 };

static void *run_boxes(void *counter)
{
    for (int i = 0; i < ROUNDS; i++) {
        static const struct boxkit_call call = { .script = "echo $$; exit 7" };
        struct box *box = boxkit_start(&call);
        struct boxkit_result result;

        boxkit_prepare(&call, &result);
        boxkit_launch(box, &call);
        result.stop = box_pump(box, &result.io);
        box_end(box, &result.io, &result.outcome);
        if (result.outcome.gone && result.outcome.wait_status == 7 << 8 &&
            strcmp(boxkit_out(&result), "2\n") == 0) {
            (void)atomic_fetch_add((atomic_int *)counter, 1);
        }
        boxkit_done(&result);
    }
    return NULL;
}

static void many_threads_have_boxes_at_once(void **state)
{
    pthread_t threads[THREADS];
    atomic_int good = 0;

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_boxes, &good), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(good, THREADS * ROUNDS);
    assert_int_equal(boxes_running(boxkit_boxes), 0);
}

static int begin(void **state)
{
    if (boxkit_begin(state) < 0) {
        return -1;
    }
    (void)snprintf(stub_runtime, sizeof(stub_runtime), "%s/stub-run", boxkit_dir);
    return mkdir(stub_runtime, 0700);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_have_boxes_at_once), /* first: the others remove boxes/ */
        cmocka_unit_test(its_own_words_name_the_setting),
        cmocka_unit_test(a_launcher_without_words_is_no_success),
        cmocka_unit_test(a_flood_of_words_is_bounded),
        cmocka_unit_test(a_launcher_that_hangs_ends_at_the_deadline),
        cmocka_unit_test(starting_can_be_cancelled),
        cmocka_unit_test(a_file_that_is_no_program_is_told),
        cmocka_unit_test(a_launcher_that_is_not_there_is_refused_at_once),
        cmocka_unit_test(the_probe_remembers_success_and_tells_failure),
        cmocka_unit_test(what_boxes_share_is_made_for_the_first),
        cmocka_unit_test(leftovers_of_a_killed_daemon_are_swept),
        cmocka_unit_test(a_runtime_directory_has_one_owner),
        cmocka_unit_test(a_launcher_that_lives_on_is_swept),
        cmocka_unit_test(a_path_longer_than_a_socket_address_works),
    };

    return cmocka_run_group_tests(tests, begin, boxkit_end);
}
