/* SPDX-License-Identifier: Apache-2.0 */
/* The pure parts of boxes: arguments of the launcher, START messages, smaps, the filter's table,
 * remedies. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/strv.h"
#include "lib/box/engine.h"
#include "lib/box/init_wire.h"
#include "lib/box/remedy.h"
#include "lib/box/seccomp.h"
#include "lib/box/smaps.h"

/* ---- engine ---- */

static const struct engine_root merged[] = {
    { .path = "/bin", .link = (char[]){ "usr/bin" }, .present = true },
    { .path = "/lib64", .present = true },
    { .path = "/lib32" },
};

/* The argument vector of a plan as one text, an argument a line. */
static char *arguments(const struct box_spec *spec, const char *library_dir)
{
    const struct engine_plan plan = { .spec = spec,
                                      .box_dir = "/run/k/boxes/b",
                                      .library_dir = library_dir,
                                      .etc_dir = "/run/k/etc",
                                      .resolv_conf = "/run/resolv.conf",
                                      .root = merged,
                                      .root_count = 3 };
    struct strv argv = { 0 };
    struct buf text = BUF_INIT(65536);

    engine_bwrap.argv(&plan, &argv);
    for (size_t i = 0; i < argv.count; i++) {
        assert_int_equal(buf_printf(&text, "%s\n", argv.items[i]), 0);
    }
    strv_done(&argv);
    return buf_take(&text, NULL);
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("%s is not in\n%s", part, text);
    }
}

static void the_launcher_gets_all_walls(void **state)
{
    const struct box_mount mounts[] = {
        { .source = "/data", .target = "/data" },
        { .source = "/out", .target = "/workspace/out", .writable = true },
    };
    const struct box_spec spec = {
        .workspace = "/w", .mounts = mounts, .mount_count = 2, .limits = { .memory_bytes = 1234567 }
    };
    char *text = arguments(&spec, "/usr/libexec/kernd");

    (void)state;
    assert_has(text, "\n--unshare-user\n");
    assert_has(text, "\n--unshare-pid\n");
    assert_has(text, "\n--unshare-net\n");
    assert_has(text, "\n--unshare-ipc\n");
    assert_has(text, "\n--unshare-uts\n");
    assert_has(text, "\n--unshare-cgroup-try\n");
    assert_has(text, "\n--die-with-parent\n");
    assert_has(text, "\n--cap-drop\nALL\n");
    assert_has(text, "\n--add-seccomp-fd\n3\n--add-seccomp-fd\n4\n");
    assert_has(text, "\n--symlink\nusr/bin\n/bin\n");
    assert_has(text, "\n--ro-bind\n/lib64\n/lib64\n");
    assert_null(strstr(text, "lib32"));
    assert_null(strstr(text, "resolv.conf"));
    assert_has(text, "\n--size\n1234567\n--perms\n1777\n--tmpfs\n/tmp\n");
    assert_has(text, "\n--symlink\n/usr/libexec/kernd\n/run/kernd-lib\n");
    assert_has(text, "\n--bind\n/w\n/workspace\n--ro-bind\n/data\n/data\n--bind\n/out\n"
                     "/workspace/out\n--remount-ro\n/\n--chdir\n/workspace\n--\n"
                     "/run/kernd-lib/kernd-init\n");
    free(text);
}

static void a_network_is_the_hosts_with_its_resolver(void **state)
{
    const struct box_spec spec = { .workspace = "/w", .network = true };
    char *text = arguments(&spec, "/opt/kernd");

    (void)state;
    assert_null(strstr(text, "--unshare-net"));
    assert_null(strstr(text, "--size"));
    assert_has(text, "\n--ro-bind\n/run/resolv.conf\n/etc/resolv.conf\n");
    assert_has(text, "\n--ro-bind\n/opt/kernd\n/run/kernd-lib\n");
    free(text);
}

/* ---- START ---- */

static void put_start(struct buf *bytes, uint32_t arguments_count, uint32_t environment_count,
                      const char *strings, size_t size)
{
    const struct init_wire_start start = { .argument_count = arguments_count,
                                           .environment_count = environment_count,
                                           .pin_count = 1 };

    buf_reset(bytes);
    assert_int_equal(buf_append(bytes, &start, sizeof(start)), 0);
    assert_int_equal(buf_append(bytes, strings, size), 0);
}

#define PUT(arguments_count, environment_count, text) \
    put_start(&bytes, arguments_count, environment_count, text, sizeof(text))
#define PARSES() init_wire_parse_start(bytes.data, bytes.size, &start, &strings)

static void a_start_message_is_checked(void **state)
{
    CLEANUP_BUF struct buf bytes = BUF_INIT(4096);
    struct init_wire_start start = { 0 };
    struct init_wire_strings strings = { 0 };

    (void)state;
    PUT(2, 1,
        "/w\0"
        "w 1 2 /p\0cat\0-\0K=V");
    assert_true(PARSES());
    assert_string_equal(strings.cwd, "/w");
    assert_string_equal(strings.pins, "w 1 2 /p");
    assert_string_equal(strings.argv, "cat");
    assert_string_equal(strings.environment, "K=V");
    for (size_t size = 0; size < bytes.size; size++) {
        assert_false(init_wire_parse_start(bytes.data, size, &start, &strings));
    }
    PUT(2, 0, "/w\0\0cat\0-\0more");
    assert_false(PARSES());
    PUT(3, 1, "/w\0\0cat\0-\0K=V");
    assert_false(PARSES());
    PUT(0, 1, "/w\0\0K=V");
    assert_false(PARSES());
    PUT(UINT32_MAX, UINT32_MAX, "/w\0\0cat");
    assert_false(PARSES());
}

/* ---- smaps ---- */

static uint64_t measure(const char *const *lines)
{
    const struct memfiles files = { .device = makedev(0, 1), .known = { 99 }, .known_count = 1 };
    struct smaps smaps = { .files = &files };

    for (size_t i = 0; lines[i] != NULL; i++) {
        smaps_line(&smaps, lines[i]);
    }
    smaps_finish(&smaps);
    return smaps.bytes / 1024;
}

static void memory_is_counted_by_kind_of_mapping(void **state)
{
    static const char *const anonymous[] = {
        "7f0000000000-7f0000100000 rw-p 00000000 00:00 0 ",
        "Rss:                1000 kB",
        "Pss:                 400 kB",
        "Pss_Dirty:           399 kB",
        "Anonymous:          1000 kB",
        "SwapPss:               8 kB",
        "VmFlags: rd wr mr mw me ac",
        NULL,
    };
    static const char *const library[] = {
        "7f0000000000-7f0000100000 r-xp 00000000 fe:00 1234   /usr/lib/libx.so (deleted)",
        "Pss:                 900 kB",
        "Anonymous:            12 kB",
        "Swap:                  3 kB",
        "SwapPss:               1 kB",
        NULL,
    };
    static const char *const memory_file[] = {
        "7f0000000000-7f0000100000 rw-s 00000000 00:01 77   /memfd:x (deleted)",
        "Pss:                 500 kB",
        "Anonymous:             0 kB",
        "7f0000200000-7f0000300000 rw-s 00000000 00:01 99   /memfd:counted-as-open",
        "Pss:                 700 kB",
        "7f0000200000-7f0000300000 rw-s 00000000 00:2d 78   /dev/shm/counted-by-its-mount",
        "Pss:                 600 kB",
        "Anonymous:             0 kB",
        NULL,
    };
    static const char *const nonsense[] = { "", "Pss: 5 kB", "Pss:", "-", "zz", NULL };

    (void)state;
    assert_int_equal(measure(anonymous), 408);
    assert_int_equal(measure(library), 15);
    assert_int_equal(measure(memory_file), 500);
    assert_int_equal(measure(nonsense), 0);
}

static void this_process_holds_some_memory(void **state)
{
    const struct memfiles files = { .device = memfiles_device() };
    uint64_t before = smaps_of_process(getpid(), &files);
    size_t size = (size_t)32 << 20;
    char *block = malloc(size);

    (void)state;
    assert_true(before > 0);
    assert_non_null(block);
    memset(block, 1, size);
    assert_true(smaps_of_process(getpid(), &files) >= before + size / 2);
    free(block);
}

static void open_memory_files_are_summed_up_once(void **state)
{
    pid_t both[] = { getpid(), getpid() };
    const struct proctree tree = { .pids = both, .count = 2 };
    struct memfiles files = { .device = memfiles_device() };
    uint64_t before;
    int fd = memfd_create("test", MFD_CLOEXEC);

    (void)state;
    assert_true(files.device != 0);
    memfiles_scan(&files, &tree, 0);
    before = files.bytes;
    assert_int_equal(posix_fallocate(fd, 0, 5 << 20), 0);
    memfiles_scan(&files, &tree, 1);
    assert_int_equal(files.bytes, before + (5 << 20));
    (void)close(fd);
}

/* ---- filter ---- */

static void the_table_can_be_listed(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT(1 << 20);

    (void)state;
    assert_int_equal(seccomp_describe(&text), 0);
    assert_has(text.data, "\nread\tallow\t\n");
    assert_has(text.data, "\nmount\tkill\t\n");
    assert_has(text.data, "\nclone3\tENOSYS\t\n");
    assert_has(text.data, "\nunshare\tkill\tCLONE_NEWUSER\n");
    assert_has(text.data, "\nioctl\tEPERM\tTIOCSTI\n");
    assert_has(text.data, "\nsetrlimit\tignore\ta new RLIMIT_CORE\n");
}

/* ---- remedies ---- */

static const struct remedy_host plain = { .userns_clone = -1,
                                          .max_user_namespaces = 10000,
                                          .apparmor_userns = -1 };

static void assert_remedy(const char *words, const struct remedy_host *host, enum err_code code,
                          const char *remedy)
{
    struct err err = ERR_INIT;

    assert_int_equal(remedy_explain(words, "exit 1", host, &err), -1);
    assert_int_equal(err.code, code);
    assert_has(err.remedy, remedy);
}

static void what_the_owner_can_do_is_named(void **state)
{
    const struct remedy_host debian = { .userns_clone = 0, .apparmor_userns = -1 };
    const struct remedy_host none = { .userns_clone = -1, .max_user_namespaces = 0 };
    const struct remedy_host ubuntu = { .userns_clone = 1,
                                        .max_user_namespaces = 9,
                                        .apparmor_userns = 1 };
    const struct remedy_host docker = {
        .userns_clone = -1, .max_user_namespaces = 9, .apparmor_userns = -1, .in_container = true
    };
    const char *refused =
        "bwrap: No permissions to create new namespace, likely because the kernel "
        "does not allow non-privileged user namespaces.\n";

    (void)state;
    assert_remedy(refused, &debian, ERR_ENGINE_UNAVAILABLE, "kernel.unprivileged_userns_clone=1");
    assert_remedy("bwrap: Creating new namespace failed: No space left on device", &none,
                  ERR_ENGINE_UNAVAILABLE, "user.max_user_namespaces");
    assert_remedy("bwrap: unshare user ns: No space left on device", &docker,
                  ERR_ENGINE_UNAVAILABLE, "sysctl user.max_user_namespaces=10000");
    assert_remedy("bwrap: Creating new namespace failed: nesting depth or "
                  "/proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
                  &plain, ERR_ENGINE_UNAVAILABLE, "sysctl user.max_user_namespaces=10000");
    assert_remedy("bwrap: setting up uid map: Permission denied", &ubuntu, ERR_ENGINE_UNAVAILABLE,
                  "kernel.apparmor_restrict_unprivileged_userns=0");
    assert_remedy("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", &ubuntu,
                  ERR_ENGINE_UNAVAILABLE, "AppArmor profile");
    assert_remedy(refused, &docker, ERR_ENGINE_UNAVAILABLE, "seccomp");
    assert_remedy("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", &docker,
                  ERR_ENGINE_UNAVAILABLE, "/proc");
    assert_remedy("error: sandbox: uid_map: Operation not permitted", &plain,
                  ERR_ENGINE_UNAVAILABLE,
                  "kernel.apparmor_restrict_unprivileged_userns; within a chroot");
    assert_remedy("bwrap: Can't find source path /w: No such file or directory", &plain,
                  ERR_BOX_START_FAILED, "");
}

static void words_become_one_harmless_line(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    (void)remedy_explain("a\n\x1b[31mb\xff\n\n", "signal 9", &plain, &err);
    assert_string_equal(err.msg, "the launcher ended (signal 9) before the box was up: "
                                 "a  [31mb\xef\xbf\xbd");
    (void)remedy_explain(" \n", "", &plain, &err);
    assert_has(err.msg, "it said nothing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_launcher_gets_all_walls),
        cmocka_unit_test(a_network_is_the_hosts_with_its_resolver),
        cmocka_unit_test(a_start_message_is_checked),
        cmocka_unit_test(memory_is_counted_by_kind_of_mapping),
        cmocka_unit_test(this_process_holds_some_memory),
        cmocka_unit_test(open_memory_files_are_summed_up_once),
        cmocka_unit_test(the_table_can_be_listed),
        cmocka_unit_test(what_the_owner_can_do_is_named),
        cmocka_unit_test(words_become_one_harmless_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
