/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/work/hostdir.h"
#include "tests/unit/scratch.h"

static char home[96];
static char state[160];
static const char *own[] = { state, NULL };
static const struct hostdir_rules rules = { .home = home, .own = own };

static int fresh_home(void **unused)
{
    int result = scratch_fresh(unused);

    (void)snprintf(home, sizeof(home), "%s/home/me", scratch_path);
    (void)snprintf(state, sizeof(state), "%s/home/me/state/kernd", scratch_path);
    scratch_file(scratch_fd, "home/me/state/kernd/db", "");
    scratch_file(scratch_fd, "home/me/.ssh/key", "secret");
    scratch_file(scratch_fd, "home/me/work/data/x", "1");
    return result;
}

static char *below(const char *name)
{
    return alloc_printf("%s/%s", scratch_path, name);
}

static void assert_source(const char *path, enum err_code expected)
{
    struct err err = ERR_INIT;
    CLEANUP_FREE char *real = NULL;
    int result = hostdir_source(path, &rules, &real, NULL, &err);

    if (err.code != expected) {
        fail_msg("%s: %d %s", path, (int)err.code, err.msg);
    }
    assert_int_equal(result, expected == ERR_NONE ? 0 : -1);
    assert_int_equal(real != NULL, expected == ERR_NONE);
}

static void assert_source_below(const char *name, enum err_code expected)
{
    CLEANUP_FREE char *path = below(name);

    assert_source(path, expected);
}

static void sources_of_the_system(void **unused)
{
    static const char *const refused[] = { "/",     "/etc",     "/etc/ssl",        "/etc/passwd",
                                           "/root", "/boot",    "/proc",           "/proc/self",
                                           "/sys",  "/dev",     "/dev/shm",        "/dev/null",
                                           "/run",  "/var/run", "/usr/../etc/ssl", "//etc//",
                                           "/etc/." };
    static const char *const malformed[] = { "relative", "", "/none/at/all", "/usr:/x", "/usr\n" };

    (void)unused;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        bool has_parent = strstr(refused[i], "..") != NULL;

        assert_source(refused[i], has_parent ? ERR_BAD_VALUE : ERR_MOUNT_REFUSED);
    }
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        assert_source(malformed[i], ERR_BAD_VALUE);
    }
    assert_source("/usr/share", ERR_NONE);
}

static void sources_of_the_home(void **unused)
{
    (void)unused;
    assert_source_below("home/me/work", ERR_NONE);
    assert_source_below("home/me/work/data/x", ERR_NONE);
    assert_source_below("home/me/work/./data//", ERR_NONE);
    assert_source_below("home/me", ERR_MOUNT_REFUSED);
    assert_source_below("home", ERR_MOUNT_REFUSED);
    assert_source_below("home/me/.ssh", ERR_MOUNT_REFUSED);
    assert_source_below("home/me/.ssh/key", ERR_MOUNT_REFUSED);
    assert_source_below("home/me/state", ERR_MOUNT_REFUSED);
    assert_source_below("home/me/state/kernd", ERR_MOUNT_REFUSED);
    assert_source_below("home/me/state/kernd/db", ERR_MOUNT_REFUSED);
}

static void links_are_judged_by_their_end(void **unused)
{
    (void)unused;
    assert_int_equal(symlinkat("/etc", scratch_fd, "home/me/work/etc"), 0);
    assert_int_equal(symlinkat("../.ssh", scratch_fd, "home/me/work/keys"), 0);
    assert_int_equal(symlinkat("data", scratch_fd, "home/me/work/fine"), 0);
    assert_source_below("home/me/work/etc", ERR_MOUNT_REFUSED);
    assert_source_below("home/me/work/etc/ssl", ERR_MOUNT_REFUSED);
    assert_source_below("home/me/work/keys/key", ERR_MOUNT_REFUSED);
    assert_source_below("home/me/work/fine/x", ERR_NONE);
}

static void sockets_are_refused(void **unused)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    CLEANUP_FD int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)unused;
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/docker.sock", scratch_path);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(mkfifoat(scratch_fd, "fifo", 0600), 0);
    assert_source_below("docker.sock", ERR_MOUNT_REFUSED);
    assert_source_below("fifo", ERR_MOUNT_REFUSED);
}

static void allowed_roots(void **unused)
{
    CLEANUP_FREE char *root = below("home/me/work");
    CLEANUP_FREE char *inside = below("home/me/work/data");
    CLEANUP_FREE char *outside = below("other");
    const char *const roots[] = { root, NULL };
    const struct hostdir_rules strict = { .home = home, .own = own, .roots = roots };
    CLEANUP_FREE char *real = NULL;
    struct err err = ERR_INIT;

    (void)unused;
    scratch_file(scratch_fd, "other/x", "");
    assert_int_equal(hostdir_source(inside, &strict, &real, NULL, NULL), 0);
    assert_string_equal(real, inside);
    assert_int_equal(hostdir_source(outside, &strict, &real, NULL, &err), -1);
    assert_int_equal(err.code, ERR_MOUNT_REFUSED);
}

static void a_workspace_is_made(void **unused)
{
    CLEANUP_FREE char *path = below("home/me/work/new/deep/");
    CLEANUP_FREE char *real = NULL;
    CLEANUP_FREE char *again = NULL;
    CLEANUP_FD int fd = -1;
    int second = -1;

    (void)unused;
    assert_int_equal(hostdir_workspace(path, &rules, &real, &fd, NULL), 0);
    path[strlen(path) - 1] = '\0';
    assert_string_equal(real, path);
    scratch_file(fd, "x", "1");
    assert_string_equal(scratch_text(scratch_fd, "home/me/work/new/deep/x"), "1");
    assert_int_equal(hostdir_workspace(path, &rules, &again, &second, NULL), 0);
    fd_close(second);
}

static void assert_workspace_refused(const char *name, enum err_code expected)
{
    CLEANUP_FREE char *path = name[0] == '/' ? alloc_text(name) : below(name);
    struct err err = ERR_INIT;
    char *real = NULL;
    int fd = -1;

    assert_int_equal(hostdir_workspace(path, &rules, &real, &fd, &err), -1);
    if (err.code != expected) {
        fail_msg("%s: %d %s", path, (int)err.code, err.msg);
    }
    assert_null(real);
    assert_int_equal(fd, -1);
}

static void workspaces_refused(void **unused)
{
    (void)unused;
    assert_int_equal(symlinkat(".ssh", scratch_fd, "home/me/link"), 0);
    assert_int_equal(symlinkat("nowhere", scratch_fd, "home/me/dangling"), 0);
    assert_workspace_refused("home/me/.ssh/new", ERR_MOUNT_REFUSED);
    assert_workspace_refused("home/me/link/new", ERR_MOUNT_REFUSED);
    assert_workspace_refused("home/me/.new", ERR_MOUNT_REFUSED);
    assert_workspace_refused("home/me/state/kernd/new", ERR_MOUNT_REFUSED);
    assert_workspace_refused("home/me/dangling", ERR_BAD_VALUE);
    assert_workspace_refused("home/me/dangling/new", ERR_BAD_VALUE);
    assert_workspace_refused("home/me/work/data/x", ERR_BAD_VALUE);
    assert_workspace_refused("home/me/work/data/x/y", ERR_BAD_VALUE);
    assert_workspace_refused("home/me/work/../new", ERR_BAD_VALUE);
    assert_workspace_refused("/", ERR_MOUNT_REFUSED);
    assert_workspace_refused("/etc/new", ERR_MOUNT_REFUSED);
    assert_workspace_refused("/usr/share/kernd-new", ERR_BAD_VALUE);
    assert_false(scratch_has(scratch_fd, "home/me/.ssh/new"));
    assert_false(scratch_has(scratch_fd, "home/me/.new"));
    assert_false(scratch_has(scratch_fd, "home/me/nowhere"));
}

static void targets(void **unused)
{
    static const char *const refused[] = { "/",          "//",           "/proc",
                                           "/proc/x",    "/sys",         "/dev",
                                           "/dev/shm/x", "/run",         "/usr",
                                           "/etc/",      "/workspace/.", "/workspace/data",
                                           "/run/kernd", "/lib",         "/run/kernd/init.sock" };
    static const char *const malformed[] = { "data", "", "/a/../b", "/..", "/a:b", "/a\tb" };
    struct err err = ERR_INIT;
    char *path = NULL;

    (void)unused;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_equal(hostdir_target(refused[i], &path, &err), -1);
        assert_int_equal(err.code, ERR_MOUNT_REFUSED);
    }
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        assert_int_equal(hostdir_target(malformed[i], &path, &err), -1);
        assert_int_equal(err.code, ERR_BAD_VALUE);
    }
    assert_null(path);
    assert_int_equal(hostdir_target("//data/./x/", &path, NULL), 0);
    assert_string_equal(path, "/data/x");
    free(path);
    assert_int_equal(hostdir_target("/usr/local/x", &path, NULL), 0);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(sources_of_the_system, fresh_home),
        cmocka_unit_test_setup(sources_of_the_home, fresh_home),
        cmocka_unit_test_setup(links_are_judged_by_their_end, fresh_home),
        cmocka_unit_test_setup(sockets_are_refused, fresh_home),
        cmocka_unit_test_setup(allowed_roots, fresh_home),
        cmocka_unit_test_setup(a_workspace_is_made, fresh_home),
        cmocka_unit_test_setup(workspaces_refused, fresh_home),
        cmocka_unit_test(targets),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
