/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes forked of a warm interpreter. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/box/box_internal.h"
#include "lib/box/initlink.h"
#include "lib/box/template_wire.h"
#include "tests/unit/boxkit.h"
#include "tests/unit/cellkit.h"

/* A template over a directory of workspaces, one of which is there. */
struct fixture {
    char *workspaces;
    char *workspace;
    bool readonly;
    struct box *box;
    struct cell_booted *booted;
};

/* module: to be imported ahead, may be NULL. place: not NULL, a workspace of its own, read-only. */
static struct fixture *template_open_for(const char *module, const char *place, struct err *err)
{
    struct fixture *fixture = alloc_zero(1, sizeof(*fixture));
    CLEANUP_STRV struct strv preload = { 0 };
    CLEANUP_STRV struct strv env = { 0 };
    struct cell_boot boot = { .language = CELL_PYTHON,
                              .env = &env,
                              .preload = &preload,
                              .deadline = clock_deadline_after_s(60) };
    struct box_spec spec = { .driver = true, .deadline = clock_deadline_after_s(60) };
    static int number;

    fixture->workspaces = alloc_printf("%s/forked-%d", boxkit_dir, number++);
    fixture->workspace = alloc_printf("%s/one", fixture->workspaces);
    assert_int_equal(mkdir(fixture->workspaces, 0700), 0);
    assert_int_equal(mkdir(fixture->workspace, 0700), 0);
    spec.fork_workspaces = fixture->workspaces;
    spec.workspace = place;
    spec.workspace_readonly = place != NULL;
    if (module != NULL) {
        strv_add(&preload, module);
        strv_add(&env, "PYTHONPATH=/run/kernd-lib/modules");
    }
    if (box_start(cellkit_factory(), &spec, &fixture->box, err) < 0) {
        fail_msg("box_start: %s", err->msg);
    }
    if (cell_boot_template(fixture->box, &boot, &fixture->booted, err) < 0) {
        fixture->booted = NULL;
    }
    return fixture;
}

static struct fixture *template_open(const char *module, struct err *err)
{
    return template_open_for(module, NULL, err);
}

static void template_close(struct fixture *fixture)
{
    struct box_outcome outcome;

    cell_unboot(fixture->booted);
    box_end(fixture->box, NULL, &outcome);
    assert_true(outcome.gone);
    free(fixture->workspace);
    free(fixture->workspaces);
    free(fixture);
}

static struct box_spec spec_of(const struct fixture *fixture)
{
    struct box_spec spec = { .workspace = fixture->workspace,
                             .workspace_readonly = fixture->readonly,
                             .driver = true,
                             .deadline = clock_deadline_after_s(60) };
    struct stat status;

    assert_int_equal(stat(fixture->workspace, &status), 0);
    spec.workspace_pin = (struct box_pin){ .device = status.st_dev, .inode = status.st_ino };
    return spec;
}

/*
 * While `behind` is set, what a look finds alive dies right behind that look, and waits that run
 * out are counted: in place of the C library's poll(2).
 */
static bool behind;
static int run_out;

int poll(struct pollfd *watched, nfds_t count, int timeout_ms)
{
    const int result = (int)syscall(SYS_poll, watched, count, timeout_ms);

    if (behind && result == 0) {
        if (timeout_ms == 0 && count == 1) {
            (void)syscall(SYS_poll, watched, count, 10000);
        }
        run_out += timeout_ms > 0 ? 1 : 0;
    }
    return result;
}

/* With its link ended, all that tells of the death of a first process is that death. */
static void leave(struct box *box)
{
    while (!box->link.report.lost) {
        struct pollfd end = { .fd = box->link.fd, .events = POLLIN };

        (void)poll(&end, 1, -1);
        initlink_hear(&box->link);
    }
    behind = true;
    (void)box_end_leave(box);
    behind = false;
    assert_int_equal(run_out, 0);
}

static void run(struct fixture *fixture, const char *code, struct cellkit_result *result)
{
    const struct cell_boot boot = { .language = CELL_PYTHON,
                                    .deadline = clock_deadline_after_s(60) };
    struct cell_code what = { .language = CELL_PYTHON, .code = code, .code_size = strlen(code) };
    const struct box_spec spec = spec_of(fixture);
    struct err err = ERR_INIT;
    struct box *box = NULL;
    struct cell_booted *booted = NULL;

    cellkit_prepare(result, 60);
    what.results = &result->results;
    if (box_fork(fixture->box, &spec, &box, &err) < 0) {
        fail_msg("box_fork: %s", err.msg);
    }
    if (cell_boot_forked(box, &boot, false, &booted, &err) < 0 ||
        cell_run_booted(booted, &what, &result->io, &result->stop, &err) < 0) {
        fail_msg("cell_boot_forked: %s", err.msg);
    }
    cell_unboot(booted);
    box_end_settle(box, &result->io, &result->outcome);
    assert_true(result->outcome.gone);
    leave(box);
}

static void check(struct fixture *fixture, const char *code, const char *out)
{
    struct cellkit_result result;

    run(fixture, code, &result);
    if (result.stop != BOX_STOP_EXITED || result.outcome.wait_status != 0) {
        fail_msg("'%s': stop %d, status %x, stderr: %s", code, result.stop,
                 (unsigned)result.outcome.wait_status, cellkit_err(&result));
    }
    assert_string_equal(cellkit_out(&result), out);
    cellkit_done(&result);
}

static struct fixture *open_one(void)
{
    struct err err = ERR_INIT;
    struct fixture *fixture = template_open(NULL, &err);

    if (fixture->booted == NULL) {
        fail_msg("%s", err.msg);
    }
    return fixture;
}

static void a_box_is_forked(void **state)
{
    struct fixture *fixture = open_one();

    (void)state;
    check(fixture, "print(6 * 7)", "42\n");
    check(fixture, "import os; print(os.getpid(), os.getppid(), os.getuid(), os.getcwd())",
          "2 1 1000 /workspace\n");
    check(fixture,
          "import sys; print('_ctypes' in sys.modules, [m for m in sys.modules if "
          "'driver' in m])",
          "False []\n");
    check(fixture, "import ctypes; print(ctypes.CDLL(None).getpid())", "2\n");
    /* The kernel tells libc where a thread runs: it has to know of this one (rseq(2)). */
    check(fixture,
          "import ctypes, os\nlibc = ctypes.CDLL(None)\n"
          "def ask(cpu): os.sched_setaffinity(0, {cpu}); return libc.sched_getcpu() == cpu\n"
          "print(all([ask(cpu) for cpu in os.sched_getaffinity(0)]))",
          "True\n");
    template_close(fixture);
}

static void its_end_is_told_as_ever(void **state)
{
    struct fixture *fixture = open_one();
    struct cellkit_result result;

    (void)state;
    run(fixture, "import sys; sys.exit(3)", &result);
    assert_int_equal(WEXITSTATUS(result.outcome.wait_status), 3);
    assert_true(result.outcome.started && result.outcome.cpu_user_us >= 0);
    cellkit_done(&result);
    run(fixture, "import os; os.kill(os.getpid(), 9)", &result);
    assert_int_equal(WTERMSIG(result.outcome.wait_status), SIGKILL);
    cellkit_done(&result);
    run(fixture, "import ctypes; ctypes.CDLL(None).mount(0, 0, 0, 0, 0)", &result);
    assert_true(result.outcome.escape_blocked);
    cellkit_done(&result);
    template_close(fixture);
}

/* Modules that are imported ahead, in a folder of the library that the template has on its path. */
static void write_module(const char *name, const char *text)
{
    CLEANUP_FREE char *folder = alloc_printf("%s/drivers/modules", boxkit_dir);
    CLEANUP_FREE char *path = alloc_printf("%s/%s.py", folder, name);

    (void)mkdir(folder, 0755);
    assert_int_equal(fd_write_file(path, text, strlen(text), 0644), 0);
}

static void refuses(const char *name, const char *text, const char *why)
{
    struct err err = ERR_INIT;
    struct fixture *fixture;

    write_module(name, text);
    fixture = template_open(name, &err);
    assert_null(fixture->booted);
    if (strstr(err.msg, why) == NULL) {
        fail_msg("%s: %s", name, err.msg);
    }
    template_close(fixture);
}

static void what_is_imported_ahead_is_there(void **state)
{
    struct err err = ERR_INIT;
    struct fixture *fixture;

    (void)state;
    write_module("harmless", "import random\nstate = [random.random()]\n");
    fixture = template_open("harmless", &err);
    if (fixture->booted == NULL) {
        fail_msg("%s", err.msg);
    }
    check(fixture, "import sys; print('harmless' in sys.modules, 'harmless' in globals())",
          "True False\n");
    check(fixture, "import harmless; harmless.state.append(1); print(len(harmless.state))", "2\n");
    check(fixture, "import harmless; harmless.state.append(1); print(len(harmless.state))", "2\n");
    template_close(fixture);
}

/* A box would have a copy of it that does not work, or that other boxes see. */
static void what_can_not_be_forked_is_refused(void **state)
{
    (void)state;
    refuses("threads",
            "import threading, time\nthreading.Thread(target=time.sleep, args=(99,), "
            "daemon=True).start()\n",
            "more than one thread");
    refuses("opener", "file = open('/usr/bin/env', 'rb')\n", "descriptors open");
    refuses("sharer", "import mmap\nmemory = mmap.mmap(-1, 4096)\n", "would share");
}

/* Of mounts, those that lead where the template can't go, or would let a box write. */
static void refuses_mount(const struct fixture *fixture, const struct box_mount *mount)
{
    struct box_spec spec = spec_of(fixture);
    struct err err = ERR_INIT;
    struct box *box = NULL;

    spec.mounts = mount;
    spec.mount_count = 1;
    assert_int_equal(box_fork(fixture->box, &spec, &box, &err), -1);
    assert_int_equal(err.code, ERR_BOX_START_FAILED);
    assert_non_null(strstr(err.msg, "no template makes boxes of this kind"));
}

static void mounts_it_can_not_make(void **state)
{
    struct fixture *fixture = open_one();
    CLEANUP_FREE char *inside = alloc_printf("%s/.deps", fixture->workspace);
    CLEANUP_FREE char *deep = alloc_printf("%s/a/b", fixture->workspace);
    const struct box_pin pin = { .device = 1, .inode = 1 };

    (void)state;
    refuses_mount(fixture, &(struct box_mount){ .source = inside, .target = "/workspace/.deps" });
    refuses_mount(fixture, &(struct box_mount){ .source = inside,
                                                .target = "/workspace/.deps",
                                                .writable = true,
                                                .pin = pin });
    refuses_mount(fixture,
                  &(struct box_mount){ .source = inside, .target = "/workspace/x", .pin = pin });
    refuses_mount(fixture,
                  &(struct box_mount){ .source = deep, .target = "/workspace/a/b", .pin = pin });
    refuses_mount(fixture, &(struct box_mount){ .source = "/srv", .target = "/data", .pin = pin });
    refuses_mount(fixture, &(struct box_mount){ .source = "/srv", .target = "/run/environment" });
    template_close(fixture);
}

/* A directory that is not the one that was looked at is the caller's doing (ESTALE). */
static void what_is_to_be_read_only_is_looked_at(void **state)
{
    struct fixture *fixture = open_one();
    CLEANUP_FREE char *inside = alloc_printf("%s/.deps", fixture->workspace);
    struct box_spec spec = spec_of(fixture);
    const struct box_mount mount = { .source = inside,
                                     .target = "/workspace/.deps",
                                     .pin = { .device = 1, .inode = 1 } };
    struct err err = ERR_INIT;
    struct box *box = NULL;

    (void)state;
    spec.mounts = &mount;
    spec.mount_count = 1;
    assert_int_equal(box_fork(fixture->box, &spec, &box, &err), -1);
    assert_int_equal(err.sys, ESTALE); /* it is not there */
    assert_int_equal(mkdir(inside, 0700), 0);
    assert_int_equal(box_fork(fixture->box, &spec, &box, &err), -1);
    assert_int_equal(err.sys, ESTALE); /* it is another */
    assert_int_equal(rmdir(inside), 0);
    assert_int_equal(symlink("/", inside), 0);
    assert_int_equal(box_fork(fixture->box, &spec, &box, &err), -1);
    assert_int_equal(err.sys, ESTALE); /* it leads elsewhere */
    assert_int_equal(unlink(inside), 0);
    template_close(fixture);
}

static void orders_it_can_not_fill(void **state)
{
    struct fixture *fixture = open_one();
    struct box_spec spec = spec_of(fixture);
    struct err err = ERR_INIT;
    struct box *box = NULL;

    (void)state;
    spec.workspace_pin.inode++;
    assert_int_equal(box_fork(fixture->box, &spec, &box, &err), -1);
    assert_int_equal(err.code, ERR_BOX_START_FAILED);
    assert_non_null(strstr(err.msg, "mount /workspace"));
    spec = spec_of(fixture);
    spec.workspace = boxkit_workspace;
    assert_int_equal(box_fork(fixture->box, &spec, &box, &err), -1);
    spec = spec_of(fixture);
    spec.network = true;
    assert_int_equal(box_fork(fixture->box, &spec, &box, &err), -1);
    spec.network = false;
    spec.workspace_readonly = true;
    assert_int_equal(box_fork(fixture->box, &spec, &box, &err), -1);
    assert_int_equal(box_fork_count(fixture->box), 0);
    check(fixture, "print(1)", "1\n");
    template_close(fixture);
}

/* A template for one workspace, which its boxes may not write to. */
static void a_workspace_of_its_own(void **state)
{
    CLEANUP_FREE char *place = alloc_printf("%s/own", boxkit_dir);
    struct fixture *fixture;
    struct box_spec spec;
    struct err err = ERR_INIT;
    struct box *box = NULL;

    (void)state;
    assert_int_equal(mkdir(place, 0700), 0);
    fixture = template_open_for(NULL, place, &err);
    if (fixture->booted == NULL) {
        fail_msg("%s", err.msg);
    }
    spec = spec_of(fixture);
    assert_int_equal(box_fork(fixture->box, &spec, &box, &err), -1); /* of all others */
    free(fixture->workspace);
    fixture->workspace = alloc_text(place);
    spec = spec_of(fixture);
    assert_int_equal(box_fork(fixture->box, &spec, &box, &err), -1); /* to be written to */
    fixture->readonly = true;
    check(fixture,
          "import os\n"
          "try: open('new', 'w')\n"
          "except OSError as error: print(error.strerror, os.listdir('.'))",
          "Read-only file system []\n");
    template_close(fixture);
}

/* A link in the place of a workspace leads nowhere. */
static void links_are_not_followed(void **state)
{
    struct fixture *fixture = open_one();
    CLEANUP_FREE char *link = alloc_printf("%s/link", fixture->workspaces);
    CLEANUP_FREE char *gone = alloc_printf("%s/gone", fixture->workspaces);
    struct box_spec spec = spec_of(fixture);
    struct err err = ERR_INIT;
    struct box *box = NULL;

    (void)state;
    assert_int_equal(symlink(fixture->workspace, link), 0);
    spec.workspace = link;
    assert_int_equal(box_fork(fixture->box, &spec, &box, &err), -1);
    assert_non_null(strstr(err.msg, "mount /workspace"));
    assert_int_equal(err.sys, ESTALE);
    spec.workspace = gone;
    assert_int_equal(box_fork(fixture->box, &spec, &box, &err), -1);
    assert_int_equal(err.sys, ENOENT);
    template_close(fixture);
}

static void names_are_checked(void **state)
{
    struct template_wire_fork order = { .version = TEMPLATE_WIRE_VERSION, .inode = 1 };

    (void)state;
    (void)snprintf(order.box, sizeof(order.box), "box_1");
    (void)snprintf(order.workspace, sizeof(order.workspace), "one");
    assert_true(template_wire_is_order(&order));
    order.version++;
    assert_false(template_wire_is_order(&order));
    order.version--;
    for (size_t i = 0; i < 4; i++) {
        static const char *const bad[] = { "", ".", "..", "a/b" };

        (void)snprintf(order.workspace, sizeof(order.workspace), "%s", bad[i]);
        assert_false(template_wire_is_order(&order));
    }
    memset(order.workspace, 'a', sizeof(order.workspace));
    assert_false(template_wire_is_order(&order));
    (void)snprintf(order.workspace, sizeof(order.workspace), "one");
    order.has_cgroup = 2;
    assert_false(template_wire_is_order(&order));
    order.has_cgroup = 0;
    order.prepares = 2;
    assert_false(template_wire_is_order(&order));
    order.prepares = 1;
    order.ahead = 2;
    assert_false(template_wire_is_order(&order));
    order.ahead = 1;
    (void)snprintf(order.locked, sizeof(order.locked), ".deps");
    assert_false(template_wire_is_order(&order)); /* whatever it is */
    order.locked_inode = 1;
    assert_true(template_wire_is_order(&order));
    (void)snprintf(order.locked, sizeof(order.locked), "../x");
    assert_false(template_wire_is_order(&order));
    order.locked[0] = '\0';
    (void)snprintf(order.layer, sizeof(order.layer), "env_1");
    assert_true(template_wire_is_order(&order));
    (void)snprintf(order.layer, sizeof(order.layer), "..");
    assert_false(template_wire_is_order(&order));
    order.layer[0] = '\0';
    order.inode = 0;
    assert_false(template_wire_is_order(&order));
}

/* Its boxes live on, and it is gone when they are. */
static void boxes_outlive_their_template(void **state)
{
    struct fixture *fixture = open_one();
    const struct cell_boot boot = { .language = CELL_PYTHON,
                                    .deadline = clock_deadline_after_s(60) };
    const char *code = "print(6 * 7)";
    struct cell_code what = { .language = CELL_PYTHON, .code = code, .code_size = strlen(code) };
    const struct box_spec spec = spec_of(fixture);
    struct cellkit_result result;
    struct err err = ERR_INIT;
    struct box *box = NULL;
    struct cell_booted *booted = NULL;

    (void)state;
    assert_int_equal(box_fork(fixture->box, &spec, &box, &err), 0);
    assert_int_equal(cell_boot_forked(box, &boot, false, &booted, &err), 0);
    box_fork_close(fixture->box);
    for (int i = 0; i < 1000 && box_lives(fixture->box); i++) {
        (void)usleep(10000); /* it is told when it has ended */
    }
    assert_false(box_lives(fixture->box));
    assert_int_equal(box_fork_count(fixture->box), 1);
    cellkit_prepare(&result, 60);
    what.results = &result.results;
    assert_int_equal(cell_run_booted(booted, &what, &result.io, &result.stop, &err), 0);
    cell_unboot(booted);
    box_end(box, &result.io, &result.outcome);
    assert_string_equal(cellkit_out(&result), "42\n");
    assert_int_equal(result.outcome.wait_status, 0);
    cellkit_done(&result);
    assert_int_equal(box_fork_count(fixture->box), 0);
    template_close(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(a_box_is_forked),
        cmocka_unit_test(its_end_is_told_as_ever),
        cmocka_unit_test(what_is_imported_ahead_is_there),
        cmocka_unit_test(what_can_not_be_forked_is_refused),
        cmocka_unit_test(orders_it_can_not_fill),
        cmocka_unit_test(mounts_it_can_not_make),
        cmocka_unit_test(what_is_to_be_read_only_is_looked_at),
        cmocka_unit_test(a_workspace_of_its_own),
        cmocka_unit_test(links_are_not_followed),
        cmocka_unit_test(boxes_outlive_their_template),
    };

    return cmocka_run_group_tests(tests, cellkit_begin, cellkit_end);
}
