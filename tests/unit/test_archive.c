/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/work/link.h"
#include "lib/work/pack.h"
#include "lib/work/unpack.h"
#include "tests/unit/scratch.h"

static const struct unpack_limits limits = { .max_bytes = 1 << 20, .max_entries = 1000 };

static int open_directory(const char *name)
{
    int fd;

    (void)mkdirat(scratch_fd, name, 0700);
    fd = openat(scratch_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static int open_file(const char *name)
{
    int fd = openat(scratch_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    return fd;
}

/* Packs "tree" into a file of this name. */
static void pack(const char *archive, struct pack_options options, struct pack_result *ret_result)
{
    CLEANUP_FD int tree = open_directory("tree");
    CLEANUP_FD int out = open_file(archive);
    struct err err = ERR_INIT;

    options.directory = options.directory != NULL ? options.directory : ".";
    if (pack_write(tree, &options, out, ret_result, &err) < 0) {
        fail_msg("%s", err.msg);
    }
}

static int unpack(const char *archive, const char *into, struct err *err)
{
    CLEANUP_FD int directory = open_directory(into);
    CLEANUP_FD int in = open_file(archive);
    struct unpack_result result;

    return unpack_into(directory, in, &limits, &result, err);
}

static void assert_unpacks(const char *archive, const char *into)
{
    struct err err = ERR_INIT;

    if (unpack(archive, into, &err) < 0) {
        fail_msg("%s", err.msg);
    }
}

/* Runs a program in the scratch directory. */
static void run(const char *program, ...)
{
    char *argv[16] = { NULL };
    posix_spawn_file_actions_t actions;
    va_list arguments;
    pid_t child;
    int status;
    size_t count = 0;

    va_start(arguments, program);
    argv[count++] = strdup(program);
    for (const char *next; (next = va_arg(arguments, const char *)) != NULL;) {
        argv[count++] = strdup(next);
    }
    va_end(arguments);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_addchdir_np(&actions, scratch_path), 0);
    assert_int_equal(posix_spawnp(&child, program, &actions, NULL, argv, environ), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    for (size_t i = 0; i < count; i++) {
        free(argv[i]);
    }
}

static char deep_name[260];

/* What ordinary work leaves behind, and some things that no archive can hold. */
static void plant_tree(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    CLEANUP_FD int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CLEANUP_FD int tree = open_directory("tree");

    scratch_file(tree, "a", "1");
    scratch_file(tree, "run.sh", "#!/bin/sh\n");
    scratch_file(tree, ".kernd-put_0123456789abcdefghij", "half of a write");
    scratch_file(tree, ".kernd-put_but not really", "a file");
    scratch_file(tree, "caf\xc3\xa9 \xe2\x98\x83.txt", "utf8");
    scratch_file(tree, "\xc3\n\".txt", "raw");
    scratch_file(tree, "ro/x", "in a read-only directory");
    memset(deep_name, 'n', 244);
    deep_name[244] = '\0';
    deep_name[60] = deep_name[121] = deep_name[182] = '/';
    deep_name[243] = 'z';
    scratch_file(tree, deep_name, "deep");
    assert_int_equal(mkdirat(tree, "empty", 0700), 0);
    assert_int_equal(fchmodat(tree, "run.sh", 0755, 0), 0);
    assert_int_equal(fchmodat(tree, "ro", 0555, 0), 0);
    assert_int_equal(linkat(tree, "a", tree, "b", 0), 0);
    assert_int_equal(mkfifoat(tree, "p", 0600), 0);
    assert_int_equal(symlinkat("/etc/passwd", tree, "abs"), 0);
    assert_int_equal(symlinkat("ro/x", tree, "rel"), 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/tree/s", scratch_path);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
    scratch_file(tree, "sparse", "");
    {
        CLEANUP_FD int sparse = openat(tree, "sparse", O_RDWR | O_CLOEXEC);

        assert_int_equal(ftruncate(sparse, 1 << 30), 0);
        assert_int_equal(pwrite(sparse, "middle", 6, 500 << 20), 6);
    }
}

static mode_t mode_of(int dir, const char *name)
{
    struct stat status;

    assert_int_equal(fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW), 0);
    return status.st_mode & 07777;
}

static void assert_same_tree(const char *name)
{
    CLEANUP_FD int there = open_directory(name);
    CLEANUP_FD int tree = open_directory("tree");
    char link[32] = "";
    struct stat status;
    struct stat original;

    assert_string_equal(scratch_text(there, "a"), "1");
    assert_string_equal(scratch_text(there, "b"), "1");
    assert_int_equal(mode_of(there, "run.sh"), 0755);
    assert_string_equal(scratch_text(there, "caf\xc3\xa9 \xe2\x98\x83.txt"), "utf8");
    assert_string_equal(scratch_text(there, "\xc3\n\".txt"), "raw");
    assert_int_equal(mode_of(there, "ro"), 0555);
    assert_string_equal(scratch_text(there, "ro/x"), "in a read-only directory");
    assert_string_equal(scratch_text(there, deep_name), "deep");
    assert_int_equal(mode_of(there, "empty"), 0700);
    assert_int_equal(readlinkat(there, "rel", link, sizeof(link) - 1), 4);
    assert_string_equal(link, "ro/x");
    assert_false(scratch_has(there, "abs"));
    assert_true(scratch_has(there, ".kernd-put_but not really"));
    assert_false(scratch_has(there, "p"));
    assert_int_equal(fstatat(there, "sparse", &status, 0), 0);
    assert_int_equal(status.st_size, 1 << 30);
    assert_true(status.st_blocks * 512 < 1 << 20);
    assert_int_equal(fstatat(there, "ro", &status, 0), 0);
    assert_int_equal(fstatat(tree, "ro", &original, 0), 0);
    assert_int_equal(status.st_mtim.tv_sec, original.st_mtim.tv_sec);
}

static void there_and_back(void **state)
{
    struct pack_options options = { .gzip = true, .links = true };
    struct pack_result result;
    struct pack_result again;
    struct stat status;

    (void)state;
    plant_tree();
    pack("one.tar.gz", options, &result);
    assert_int_equal(fstatat(scratch_fd, "one.tar.gz", &status, 0), 0);
    assert_int_equal(status.st_size, result.bytes);
    assert_true(result.bytes < 10 << 20);
    assert_int_equal(result.left_count, 3);
    assert_string_equal(result.left[0].path, "abs");
    assert_string_equal(result.left[0].why, "symlink");
    assert_string_equal(result.left[1].path, "p");
    assert_string_equal(result.left[1].why, "fifo");
    assert_string_equal(result.left[2].why, "socket");
    pack("two.tar.gz", options, &again); /* the same tree, the same bytes */
    assert_string_equal(again.digest, result.digest);
    assert_int_equal(strlen(result.digest), 64);
    pack_result_done(&result);
    pack_result_done(&again);
    assert_unpacks("one.tar.gz", "back");
    assert_same_tree("back");
    assert_false(scratch_has(scratch_fd, "back/.kernd-put_0123456789abcdefghij"));
    options.gzip = false;
    pack("plain.tar", options, &result);
    pack_result_done(&result);
    assert_unpacks("plain.tar", "plain");
    assert_same_tree("plain");
}

static void by_other_programs(void **state)
{
    static const char *const flags[] = { "-czf", "-cJf", "-cjf", "-cf" };
    struct pack_options options = { .gzip = true, .links = true };
    struct pack_result result;

    (void)state;
    plant_tree();
    pack("ours.tar.gz", options, &result);
    pack_result_done(&result);
    (void)open_directory("gnu");
    run("tar", "-xzpf", "ours.tar.gz", "-C", "gnu", NULL);
    assert_same_tree("gnu");
    run("/usr/bin/python3", "-c",
        "import tarfile; tarfile.open('ours.tar.gz').extractall('python')", NULL);
    assert_same_tree("python");
    assert_int_equal(unlinkat(scratch_fd, "tree/abs", 0), 0);
    assert_int_equal(unlinkat(scratch_fd, "tree/p", 0), 0);
    assert_int_equal(unlinkat(scratch_fd, "tree/s", 0), 0);
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "from-%zu", i);
        run("tar", "--sparse", flags[i], "theirs.tar", "-C", "tree", ".", NULL);
        assert_unpacks("theirs.tar", name);
        assert_same_tree(name);
    }
    run("tar", "--format=gnu", "--sparse", "-czf", "theirs.tar", "-C", "tree", ".", NULL);
    assert_unpacks("theirs.tar", "from-gnu");
    assert_same_tree("from-gnu");
}

static void a_part_and_exceptions(void **state)
{
    static const char *const skip[] = { "d/.deps", NULL };
    struct pack_options options = { .directory = "d", .skip = skip, .gzip = true };
    CLEANUP_FD int tree = open_directory("tree");
    CLEANUP_FD int back = open_directory("back");
    struct pack_result result;

    (void)state;
    scratch_file(tree, "outside", "1");
    scratch_file(tree, "d/.deps/lib", "1");
    scratch_file(tree, "d/e/f", "inside");
    scratch_file(tree, "d/secret", "1");
    assert_int_equal(symlinkat("e", tree, "d/link"), 0);
    assert_int_equal(fchmodat(tree, "d/secret", 0, 0), 0);
    pack("a.tgz", options, &result);
    assert_int_equal(result.entries, 2);
    assert_int_equal(result.left_count, 2);
    assert_string_equal(result.left[0].path, "d/link");
    assert_string_equal(result.left[1].path, "d/secret");
    assert_string_equal(result.left[1].why, "unreadable");
    pack_result_done(&result);
    assert_unpacks("a.tgz", "back");
    assert_string_equal(scratch_text(back, "e/f"), "inside");
    assert_false(scratch_has(back, "link"));
}

static void packing_within_bounds(void **state)
{
    struct pack_options options = { .directory = ".", .max_bytes = 600 };
    CLEANUP_FD int tree = open_directory("tree");
    CLEANUP_FD int out = open_file("a.tar");
    struct pack_result result;
    struct err err = ERR_INIT;
    struct cancel cancel;

    (void)state;
    scratch_file(tree, "a", "1");
    assert_int_equal(pack_write(tree, &options, out, &result, &err), -1);
    assert_int_equal(err.code, ERR_STORE_FULL);
    assert_int_equal(cancel_init(&cancel, NULL), 0);
    cancel_fire(&cancel, CANCEL_REQUESTED);
    options = (struct pack_options){ .directory = ".", .cancel = &cancel };
    assert_int_equal(pack_write(tree, &options, out, &result, &err), -1);
    assert_int_equal(err.code, ERR_CANCELLED);
    cancel_done(&cancel);
}

/* ---- hostile archives, made by hand ---- */

struct member {
    const char *name;
    char type; /* '0' file, '1' hard link, '2' symlink, '3' device, '5' directory, '6' FIFO */
    const char *link;
    const char *data;
    unsigned mode;
};

static void add_member(struct buf *tar, const struct member *member)
{
    char head[512] = "";
    size_t size = member->data != NULL ? strlen(member->data) : 0;
    unsigned sum = 0;

    (void)strncpy(head, member->name, 99);
    (void)snprintf(head + 100, 8, "%07o", (member->mode != 0 ? member->mode : 0644U) & 07777U);
    (void)snprintf(head + 108, 8, "%07o", 0U);
    (void)snprintf(head + 116, 8, "%07o", 0U);
    (void)snprintf(head + 124, 12, "%011o", (unsigned)size & 0777777U);
    (void)snprintf(head + 136, 12, "%011o", 0U);
    memset(head + 148, ' ', 8);
    head[156] = member->type;
    if (member->link != NULL) {
        (void)strncpy(head + 157, member->link, 99);
    }
    memcpy(head + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof(head); i++) {
        sum += (unsigned char)head[i];
    }
    (void)snprintf(head + 148, 8, "%06o", sum & 0777777U);
    assert_int_equal(buf_append(tar, head, sizeof(head)), 0);
    if (size > 0) {
        char padding[512] = "";

        assert_int_equal(buf_append(tar, member->data, size), 0);
        assert_int_equal(buf_append(tar, padding, (512 - size % 512) % 512), 0);
    }
}

static void end_tar(struct buf *tar)
{
    char zeros[1024] = "";

    assert_int_equal(buf_append(tar, zeros, sizeof(zeros)), 0);
}

static void write_archive(const char *name, const struct buf *tar)
{
    CLEANUP_FD int fd = open_file(name);

    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(fd_write_full(fd, tar->data, tar->size), 0);
}

/* Is the archive of these members refused with this rule, and is nothing outside? */
static void assert_refused(const struct member *members, size_t count, const char *rule)
{
    struct buf tar = BUF_INIT(1 << 20);
    struct err err = ERR_INIT;

    for (size_t i = 0; i < count; i++) {
        add_member(&tar, &members[i]);
    }
    end_tar(&tar);
    write_archive("hostile.tar", &tar);
    buf_done(&tar);
    if (unpack("hostile.tar", "victim", &err) == 0) {
        fail_msg("not refused: %s", rule);
    }
    assert_int_equal(err.code, ERR_BAD_ARCHIVE);
    if (strstr(err.msg, rule) == NULL) {
        fail_msg("refused by \"%s\", not by \"%s\"", err.msg, rule);
    }
    run("rm", "-rf", "victim", NULL);
    assert_false(scratch_has(scratch_fd, "x"));
    assert_false(scratch_has(scratch_fd, "outside/x"));
}

#define REFUSED(rule, ...)                                                   \
    do {                                                                     \
        const struct member members[] = { __VA_ARGS__ };                     \
        assert_refused(members, sizeof(members) / sizeof(members[0]), rule); \
    } while (0)

static void hostile_members(void **state)
{
    (void)state;
    (void)open_directory("outside");
    REFUSED("absolute", { .name = "/x", .type = '0' });
    REFUSED("absolute", { .name = "/workspace/x", .type = '0' });
    REFUSED("'..'", { .name = "../x", .type = '0' });
    REFUSED("'..'", { .name = "a/../../x", .type = '0' });
    REFUSED("'..'", { .name = "..", .type = '5' });
    REFUSED("workspace itself", { .name = ".", .type = '0' });
    REFUSED("link out", { .name = "l", .type = '2', .link = "/etc" });
    REFUSED("link out", { .name = "l", .type = '2', .link = "../outside" });
    REFUSED("link out", { .name = "d/l", .type = '2', .link = "../../outside" });
    REFUSED("link out", { .name = "l", .type = '2', .link = "" });
    REFUSED("below a symbolic link", { .name = "d", .type = '5', .mode = 0755 },
            { .name = "l", .type = '2', .link = "d" }, { .name = "l/x", .type = '0' });
    REFUSED("taken", { .name = "l", .type = '2', .link = "d" }, { .name = "l", .type = '0' });
    REFUSED("taken", { .name = "l", .type = '2', .link = "d" }, { .name = "l", .type = '5' });
    REFUSED("taken", { .name = "x", .type = '0' }, { .name = "./x", .type = '0' });
    REFUSED("taken", { .name = "x", .type = '0' }, { .name = "x", .type = '5' });
    REFUSED("taken", { .name = "d", .type = '5', .mode = 0755 }, { .name = "d", .type = '0' });
    REFUSED("not a directory", { .name = "x", .type = '0' }, { .name = "x/y", .type = '0' });
    REFUSED("hard link out", { .name = "h", .type = '1', .link = "../outside" });
    REFUSED("hard link out", { .name = "h", .type = '1', .link = "/etc/passwd" });
    REFUSED("no earlier file", { .name = "h", .type = '1', .link = "later" },
            { .name = "later", .type = '0' });
    REFUSED("no earlier file", { .name = "l", .type = '2', .link = "x" },
            { .name = "h", .type = '1', .link = "l" });
    REFUSED("directory with data", { .name = "d", .type = '5', .mode = 0755, .data = "data" });
    REFUSED("neither", { .name = "p", .type = '6' });
    REFUSED("neither", { .name = "c", .type = '3' });
    REFUSED("neither", { .name = "b", .type = '4' });
    REFUSED("setuid", { .name = "s", .type = '0', .mode = 04755 });
    REFUSED("setuid", { .name = "s", .type = '0', .mode = 02755 });
}

static void harmless_oddities(void **state)
{
    static const struct member members[] = {
        { .name = "./", .type = '5', .mode = 0700 },
        { .name = "file", .type = '0', .data = "text" },
        { .name = "made/up/parents/x", .type = '0', .data = "1" },
        { .name = "made", .type = '5', .mode = 02555 },
        { .name = "made/", .type = '5', .mode = 0555 },
        { .name = "hard", .type = '1', .link = "./file" },
        { .name = "made/soft", .type = '2', .link = "../file" },
        { .name = "no\\../odd", .type = '0', .data = "" },
    };
    struct buf tar = BUF_INIT(1 << 20);
    CLEANUP_FD int back = open_directory("back");

    (void)state;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        add_member(&tar, &members[i]);
    }
    end_tar(&tar);
    write_archive("odd.tar", &tar);
    buf_done(&tar);
    assert_unpacks("odd.tar", "back");
    assert_string_equal(scratch_text(back, "hard"), "text");
    assert_string_equal(scratch_text(back, "made/soft"), "text");
    assert_int_equal(mode_of(back, "made"), 0555);
}

/* Sizes that a reader might guess at; also where the header stands across two blocks of it. */
static void sizes_that_are_no_numbers(void **state)
{
    static const struct {
        const char *size; /* the field of 12 bytes */
        bool good;
    } cases[] = {
        { "00000000002", true },  { "          2 ", true },  { "2", true },
        { "00000000002 ", true }, { "00000000002x", false }, { "2x", false },
        { "0x2", false },         { "xxxxxxxxxxx", false },  { "2 2", false },
        { "00000000008", false }, { "-2", false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int before = 0; before < 2; before++) {
            struct buf tar = BUF_INIT(1 << 20);
            CLEANUP_FREE char *filler = calloc(1, 65536);
            unsigned sum = 0;
            char *head;
            struct err err = ERR_INIT;
            bool good;

            assert_non_null(filler);
            memset(filler, 'x', 65535 - 1024 - 512);
            if (before > 0) {
                add_member(&tar, &(struct member){ .name = "before", .type = '0', .data = filler });
            }
            add_member(&tar, &(struct member){ .name = "odd", .type = '0', .data = "ab" });
            head = tar.data + tar.size - 1024;
            memset(head + 124, 0, 12);
            memcpy(head + 124, cases[i].size, strlen(cases[i].size));
            memset(head + 148, ' ', 8);
            for (size_t at = 0; at < 512; at++) {
                sum += (unsigned char)head[at];
            }
            (void)snprintf(head + 148, 8, "%06o", sum & 0777777U);
            end_tar(&tar);
            write_archive("size.tar", &tar);
            buf_done(&tar);
            good = unpack("size.tar", "victim", &err) == 0;
            if (good != cases[i].good) {
                fail_msg("%s: %s", cases[i].size, good ? "taken" : err.msg);
            }
            run("rm", "-r", "victim", NULL);
        }
    }
}

static void assert_damaged(const char *archive)
{
    struct err err = ERR_INIT;

    assert_int_equal(unpack(archive, "victim", &err), -1);
    assert_int_equal(err.code, ERR_BAD_ARCHIVE);
    run("rm", "-rf", "victim", NULL);
}

static void damage(void **state)
{
    static const struct member member = { .name = "x", .type = '0', .data = "some text" };
    struct pack_options options = { .gzip = true };
    struct pack_result result;
    struct buf tar = BUF_INIT(1 << 20);
    CLEANUP_FREE char *bytes = NULL;
    CLEANUP_FD int tree = open_directory("tree");
    char path[100];
    size_t size;

    (void)state;
    add_member(&tar, &member);
    tar.data[148]++; /* the header's checksum */
    end_tar(&tar);
    write_archive("a.tar", &tar);
    assert_damaged("a.tar");
    buf_reset(&tar);
    add_member(&tar, &member);
    add_member(&tar, &member);
    tar.data[1024 + 500]++; /* somewhere in the second header */
    end_tar(&tar);
    write_archive("a.tar", &tar);
    assert_damaged("a.tar");
    buf_reset(&tar);
    add_member(&tar, &member);
    end_tar(&tar);
    assert_int_equal(buf_append_text(&tar, "more"), 0);
    write_archive("a.tar", &tar);
    assert_damaged("a.tar");
    buf_reset(&tar);
    add_member(&tar, &member);
    tar.size = 600; /* in the middle of the data */
    write_archive("a.tar", &tar);
    assert_damaged("a.tar");
    tar.size = 0;
    write_archive("a.tar", &tar);
    assert_damaged("a.tar");
    buf_done(&tar);

    scratch_file(tree, "x", "some text that is compressed");
    pack("a.tgz", options, &result);
    pack_result_done(&result);
    (void)snprintf(path, sizeof(path), "%s/a.tgz", scratch_path);
    bytes = fd_read_file(path, 1 << 20, &size);
    for (size_t cut = 1; cut < size; cut += 7) {
        assert_int_equal(truncate(path, (off_t)(size - cut)), 0);
        assert_damaged("a.tgz");
    }
    for (size_t at = 10; at < size; at++) { /* behind gzip's own header */
        bytes[at] = (char)(bytes[at] ^ 0x20);
        assert_int_equal(fd_write_file(path, bytes, size, 0600), 0);
        bytes[at] = (char)(bytes[at] ^ 0x20);
        /* Some bits mean nothing (the padding of the last deflate block). */
        if (unpack("a.tgz", "victim", NULL) == 0) {
            CLEANUP_FD int victim = open_directory("victim");

            assert_string_equal(scratch_text(victim, "x"), "some text that is compressed");
        }
        run("rm", "-rf", "victim", NULL);
    }
    assert_int_equal(fd_write_file(path, bytes, size, 0600), 0);
    assert_unpacks("a.tgz", "fine");
    run("sh", "-pc",
        "cat a.tgz a.tgz > two.tgz; gzip <a.tgz >twice.tgz; (cat a.tgz; echo x) >x.tgz", NULL);
    assert_damaged("two.tgz");
    assert_damaged("twice.tgz");
    assert_damaged("x.tgz");
}

static void bombs(void **state)
{
    static const struct unpack_limits small = { .max_bytes = 100,
                                                .max_entries = 3,
                                                .max_depth = 2 };
    static const struct {
        const char *make;
        const char *rule;
    } cases[] = {
        { "head -c 200 /dev/urandom >t/a; tar -cf a.tar -C t a", "larger" },
        { "touch t/a; tar -b 2000 -czf a.tar -C t a", "more bytes" }, /* zeros behind the end */
        { "touch t/a t/b t/c t/d; tar -cf a.tar -C t a b c d", "more members" },
        { "mkdir -p t/a/b/c; tar -cf a.tar -C t a", "levels" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char command[200];
        struct err err = ERR_INIT;
        struct unpack_result result;

        (void)snprintf(command, sizeof(command), "rm -rf t v; mkdir t v; %s", cases[i].make);
        run("sh", "-pc", command, NULL);
        {
            CLEANUP_FD int directory = open_directory("v");
            CLEANUP_FD int in = open_file("a.tar");

            assert_int_equal(unpack_into(directory, in, &small, &result, &err), -1);
        }
        assert_int_equal(err.code, ERR_BAD_ARCHIVE);
        assert_non_null(strstr(err.msg, cases[i].rule));
    }
}

/* A gigabyte of zeros in a kilobyte: stopped by what is allowed, not by what it says it is. */
static void a_compressed_bomb(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    run("sh", "-pc",
        "mkdir t; truncate -s 20M t/a; tar --format=ustar -cf - -C t a | gzip >bomb.tgz", NULL);
    assert_int_equal(unpack("bomb.tgz", "victim", &err), -1);
    assert_int_equal(err.code, ERR_BAD_ARCHIVE);
}

/* ---- given up ---- */

static void assert_given_up(const char *archive, const char *into, struct cancel *cancel)
{
    struct unpack_limits given = { .max_bytes = 1 << 30, .max_entries = 1000 };
    CLEANUP_FD int directory = open_directory(into);
    CLEANUP_FD int in = open_file(archive);
    struct unpack_result result;
    struct err err = ERR_INIT;

    given.cancel = cancel;
    assert_int_equal(unpack_into(directory, in, &given, &result, &err), -1);
    assert_int_equal(err.code, ERR_CANCELLED);
}

static void given_up_before_it_began(void **state)
{
    struct cancel cancel;

    (void)state;
    run("sh", "-pc",
        "mkdir t; touch t/a t/b; head -c 300000 /dev/urandom >t/c; tar -cf ab.tar -C t a b; "
        "tar -czf ab.tgz -C t a b; tar -cf c.tar -C t c",
        NULL);
    assert_int_equal(cancel_init(&cancel, NULL), 0);
    cancel_fire(&cancel, CANCEL_CLIENT_GONE);
    assert_given_up("ab.tar", "v", &cancel);
    assert_given_up("ab.tgz", "v", &cancel);
    assert_given_up("c.tar", "v", &cancel);
    cancel_done(&cancel);
}

/* An archive of which the rest comes when the token has been fired. */
struct late {
    struct cancel cancel;
    const char *first;
    size_t size;
    int to;
};

static void *write_late(void *context)
{
    static const char zeros[1 << 17];
    struct late *late = context;

    (void)fd_write_full(late->to, late->first, late->size);
    cancel_fire(&late->cancel, CANCEL_CLIENT_GONE);
    (void)fd_write_full(late->to, zeros, sizeof(zeros)); /* EPIPE: nobody reads on */
    fd_clear(&late->to);
    return NULL;
}

static void assert_given_up_behind(const char *first, size_t size)
{
    struct unpack_limits given = { .max_bytes = 1 << 30, .max_entries = 1000 };
    struct late late = { .first = first, .size = size };
    CLEANUP_FD int directory = open_directory("v");
    CLEANUP_FD int from = -1;
    struct unpack_result result;
    struct err err = ERR_INIT;
    pthread_t thread;

    assert_int_equal(cancel_init(&late.cancel, NULL), 0);
    assert_int_equal(fd_pipe(&from, &late.to), 0);
    given.cancel = &late.cancel;
    assert_int_equal(pthread_create(&thread, NULL, write_late, &late), 0);
    assert_int_equal(unpack_into(directory, from, &given, &result, &err), -1);
    assert_int_equal(err.code, ERR_CANCELLED);
    fd_clear(&from);
    assert_int_equal(pthread_join(thread, NULL), 0);
    cancel_done(&late.cancel);
}

/* Between members without data, and among the zeros that may stand behind the end. */
static void given_up_on_the_way(void **state)
{
    CLEANUP_BUF struct buf tar = BUF_INIT(1 << 20);

    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 200; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "f%d", i);
        add_member(&tar, &(struct member){ .name = name, .type = '0' });
    }
    assert_given_up_behind(tar.data, tar.size);
    run("rm", "-r", "v", NULL);
    end_tar(&tar);
    assert_given_up_behind(tar.data, tar.size);
}

static void links(void **state)
{
    (void)state;
    assert_true(link_stays_inside("l", "x"));
    assert_true(link_stays_inside("l", "./x/../y"));
    assert_true(link_stays_inside("d/l", "../x"));
    assert_true(link_stays_inside("d/l", "..//x/"));
    assert_true(link_stays_inside("d/e/l", "../.."));
    assert_false(link_stays_inside("l", ".."));
    assert_false(link_stays_inside("d/l", "../../x"));
    assert_false(link_stays_inside("d/l", "x/../../../d/x"));
    assert_false(link_stays_inside("l", "/x"));
    assert_false(link_stays_inside("l", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(there_and_back, scratch_fresh),
        cmocka_unit_test_setup(by_other_programs, scratch_fresh),
        cmocka_unit_test_setup(a_part_and_exceptions, scratch_fresh),
        cmocka_unit_test_setup(packing_within_bounds, scratch_fresh),
        cmocka_unit_test_setup(hostile_members, scratch_fresh),
        cmocka_unit_test_setup(harmless_oddities, scratch_fresh),
        cmocka_unit_test_setup(sizes_that_are_no_numbers, scratch_fresh),
        cmocka_unit_test_setup(damage, scratch_fresh),
        cmocka_unit_test_setup(bombs, scratch_fresh),
        cmocka_unit_test_setup(a_compressed_bomb, scratch_fresh),
        cmocka_unit_test_setup(given_up_before_it_began, scratch_fresh),
        cmocka_unit_test_setup(given_up_on_the_way, scratch_fresh),
        cmocka_unit_test(links),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
