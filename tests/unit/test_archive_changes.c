/* SPDX-License-Identifier: Apache-2.0 */
/* What is packed while somebody changes it, and what no archive can hold: what is made unpacks. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/work/pack.h"
#include "lib/work/remove.h"
#include "lib/work/unpack.h"
#include "tests/unit/scratch.h"

#define VICTIM "victim"
#define VICTIM_BYTES ((size_t)1 << 20) /* some pieces of what is read at once */

/*
 * What happens, once, when all names of a directory have been read, and when a file has been read
 * in part: in place of the C library's getdents64(3) and pread(2).
 */
static void (*behind_names)(void);
static void (*within_file)(void);
static bool told_twice; /* the names are read a second time, as if all had been made anew */
static int tree = -1;

static void once(void (**change)(void))
{
    void (*now)(void) = *change;

    *change = NULL;
    if (now != NULL) {
        now();
    }
}

ssize_t getdents64(int fd, void *buffer, size_t size)
{
    ssize_t got = syscall(SYS_getdents64, fd, buffer, size);

    if (got == 0) {
        once(&behind_names);
    }
    if (got == 0 && told_twice) {
        told_twice = false;
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        got = syscall(SYS_getdents64, fd, buffer, size);
    }
    return got;
}

ssize_t pread(int fd, void *data, size_t size, off_t at)
{
    if (at > 0) {
        once(&within_file);
    }
    return syscall(SYS_pread64, fd, data, size, at);
}

/* ---- the changes ---- */

static void write_at(const char *text, off_t at)
{
    CLEANUP_FD int fd = openat(tree, VICTIM, O_WRONLY | O_CLOEXEC);

    assert_int_equal(pwrite(fd, text, strlen(text), at), (ssize_t)strlen(text));
}

static void grow(void)
{
    write_at("more", (off_t)VICTIM_BYTES);
}

static void overwrite(void)
{
    write_at("other", 500000);
}

static void shrink(void)
{
    CLEANUP_FD int fd = openat(tree, VICTIM, O_WRONLY | O_CLOEXEC);

    assert_int_equal(ftruncate(fd, 10), 0);
}

static void vanish(void)
{
    assert_int_equal(unlinkat(tree, VICTIM, 0), 0);
}

static void become_another_file(void)
{
    scratch_file(tree, "new", "new");
    assert_int_equal(renameat(tree, "new", tree, VICTIM), 0);
}

static void become_a_link(void)
{
    vanish();
    assert_int_equal(symlinkat("/etc/passwd", tree, VICTIM), 0);
}

static void become_a_directory(void)
{
    vanish();
    scratch_file(tree, VICTIM "/in", "in");
}

static void become_a_fifo(void)
{
    vanish();
    assert_int_equal(mkfifoat(tree, VICTIM, 0600), 0);
}

static void become_a_socket(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    CLEANUP_FD int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    vanish();
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/tree/" VICTIM, scratch_path);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
}

static void directory_becomes_a_file(void)
{
    assert_int_equal(unlinkat(tree, "empty", AT_REMOVEDIR), 0);
    scratch_file(tree, "empty", "a file");
}

static void directory_vanishes(void)
{
    assert_int_equal(unlinkat(tree, "empty", AT_REMOVEDIR), 0);
}

static void link_becomes_a_file(void)
{
    assert_int_equal(unlinkat(tree, "link", 0), 0);
    scratch_file(tree, "link", "a file");
}

static void link_vanishes(void)
{
    assert_int_equal(unlinkat(tree, "link", 0), 0);
}

/* ---- what is packed, and what comes of it ---- */

/* Long ago, so that a change is seen however coarse the clock of the file system is. */
static void make_tree(void)
{
    static const struct timespec times[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
    CLEANUP_FREE char *text = alloc_zero(1, VICTIM_BYTES + 1);

    fd_clear(&tree);
    assert_int_equal(mkdirat(scratch_fd, "tree", 0700), 0);
    tree = openat(scratch_fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    memset(text, 'v', VICTIM_BYTES);
    scratch_file(tree, "a", "first");
    scratch_file(tree, "zz", "last");
    scratch_file(tree, VICTIM, text);
    assert_int_equal(mkdirat(tree, "empty", 0700), 0);
    assert_int_equal(symlinkat("a", tree, "link"), 0);
    assert_int_equal(utimensat(tree, VICTIM, times, 0), 0);
}

static int pack(struct pack_options options, struct pack_result *ret_result, struct err *err)
{
    CLEANUP_FD int out = openat(scratch_fd, "x.tgz", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    options.directory = ".";
    options.gzip = options.links = true;
    return pack_write(tree, &options, out, ret_result, err);
}

/* What was packed, unpacked: to be closed. */
static int unpack(const struct pack_result *packed)
{
    static const struct unpack_limits limits = { .max_bytes = 1 << 26,
                                                 .max_entries = UNPACK_ENTRIES_MAX };
    CLEANUP_FD int in = openat(scratch_fd, "x.tgz", O_RDONLY | O_CLOEXEC);
    struct unpack_result result;
    struct err err = ERR_INIT;
    int back;

    assert_int_equal(mkdirat(scratch_fd, "back", 0700), 0);
    back = openat(scratch_fd, "back", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (unpack_into(back, in, &limits, &result, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    assert_int_equal(result.entries, packed->entries);
    return back;
}

static void remove_trees(void)
{
    struct remove_left left;

    (void)remove_tree(scratch_fd, "back", NULL, &left);
    (void)remove_tree(scratch_fd, "tree", NULL, &left);
}

/* Told as the only thing that is left out, or (why: NULL) nothing is. */
static void assert_left(const struct pack_result *packed, const char *path, const char *why)
{
    assert_int_equal(packed->left_count, why != NULL ? 1 : 0);
    if (why != NULL) {
        assert_string_equal(packed->left[0].path, path);
        assert_string_equal(packed->left[0].why, why);
    }
}

static void changed_behind_the_list(void **state)
{
    static const struct {
        void (*change)(void);
        const char *path;
        const char *why;
        bool there;
    } cases[] = {
        { vanish, VICTIM, NULL, false },
        { become_a_link, VICTIM, "changed", false },
        { become_a_directory, VICTIM, "changed", false },
        { become_a_fifo, VICTIM, "changed", false },
        { become_a_socket, VICTIM, "changed", false },
        { become_another_file, VICTIM, NULL, true },
        { grow, VICTIM, NULL, true },
        { directory_vanishes, "empty", NULL, false },
        { directory_becomes_a_file, "empty", "changed", false },
        { link_vanishes, "link", NULL, false },
        { link_becomes_a_file, "link", "changed", false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pack_result packed;

        make_tree();
        behind_names = cases[i].change;
        assert_int_equal(pack((struct pack_options){ 0 }, &packed, NULL), 0);
        assert_null(behind_names);
        {
            CLEANUP_FD int back = unpack(&packed);

            assert_left(&packed, cases[i].path, cases[i].why);
            assert_string_equal(scratch_text(back, "a"), "first");
            assert_string_equal(scratch_text(back, "zz"), "last");
            assert_int_equal(scratch_has(back, cases[i].path), cases[i].there);
        }
        pack_result_done(&packed);
        remove_trees();
    }
}

/* Its size is the one it had; of the bytes, those that were read, and zeros for what was cut. */
static void changed_while_it_is_read(void **state)
{
    static const struct {
        void (*change)(void);
        bool told;
        char last; /* byte */
    } cases[] = {
        { grow, true, 'v' },
        { overwrite, true, 'v' },
        { shrink, true, '\0' },
        { vanish, false, 'v' },
        { become_another_file, false, 'v' },
        { become_a_link, false, 'v' },
        { become_a_directory, false, 'v' },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pack_result packed;
        struct stat status;
        char bytes[2] = "";

        make_tree();
        within_file = cases[i].change;
        assert_int_equal(pack((struct pack_options){ 0 }, &packed, NULL), 0);
        assert_null(within_file);
        {
            CLEANUP_FD int back = unpack(&packed);
            CLEANUP_FD int victim = openat(back, VICTIM, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

            assert_left(&packed, VICTIM, cases[i].told ? "changed" : NULL);
            assert_string_equal(scratch_text(back, "a"), "first");
            assert_string_equal(scratch_text(back, "zz"), "last");
            assert_int_equal(fstat(victim, &status), 0);
            assert_int_equal(status.st_size, VICTIM_BYTES);
            assert_int_equal(syscall(SYS_pread64, victim, bytes, 1, 0), 1);
            assert_int_equal(syscall(SYS_pread64, victim, bytes + 1, 1, VICTIM_BYTES - 1), 1);
            assert_int_equal(bytes[0], 'v');
            assert_int_equal(bytes[1], cases[i].last);
        }
        pack_result_done(&packed);
        remove_trees();
    }
}

/* A member may be there once only. */
static void names_that_come_twice(void **state)
{
    struct pack_result packed;

    (void)state;
    make_tree();
    told_twice = true;
    assert_int_equal(pack((struct pack_options){ 0 }, &packed, NULL), 0);
    assert_false(told_twice);
    assert_int_equal(packed.entries, 5);
    {
        CLEANUP_FD int back = unpack(&packed);

        assert_string_equal(scratch_text(back, "a"), "first");
    }
    pack_result_done(&packed);
}

/* ---- what can't be unpacked is not packed ---- */

/* Directories of this name, one in the other, and a file in the last. */
static void make_deep(const char *name, unsigned levels)
{
    CLEANUP_FD int at = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (unsigned i = 0; i < levels; i++) {
        int next;

        assert_int_equal(mkdirat(at, name, 0700), 0);
        next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        fd_close(at);
        at = next;
    }
    scratch_file(at, "file", "deep");
}

static void too_many_levels(void **state)
{
    struct pack_result packed;

    (void)state;
    make_tree();
    make_deep("d", UNPACK_DEPTH_MAX + 3);
    assert_int_equal(pack((struct pack_options){ 0 }, &packed, NULL), 0);
    assert_int_equal(packed.left_count, 1);
    assert_int_equal(strlen(packed.left[0].path), 2 * UNPACK_DEPTH_MAX + 1);
    assert_string_equal(packed.left[0].why, "deep");
    assert_int_equal(packed.entries, 5 + UNPACK_DEPTH_MAX);
    fd_close(unpack(&packed));
    pack_result_done(&packed);
}

/* Nobody can name what is 4,096 bytes away, but it must not be missing without a word. */
static void names_that_are_too_long(void **state)
{
    struct pack_result packed;
    char name[251];

    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    make_tree();
    make_deep(name, 18);
    assert_int_equal(pack((struct pack_options){ 0 }, &packed, NULL), 0);
    assert_left(&packed, ".", "unlisted");
    assert_int_equal(packed.entries, 5 + 16);
    fd_close(unpack(&packed));
    pack_result_done(&packed);
}

static void too_many_entries(void **state)
{
    struct pack_result packed;
    struct err err = ERR_INIT;

    (void)state;
    make_tree();
    assert_int_equal(pack((struct pack_options){ .max_entries = 5 }, &packed, NULL), 0);
    pack_result_done(&packed);
    assert_int_equal(pack((struct pack_options){ .max_entries = 4 }, &packed, &err), -1);
    assert_int_equal(err.code, ERR_STORE_FULL);
    assert_non_null(strstr(err.msg, "more than 4 "));
}

static int end(void **state)
{
    fd_clear(&tree);
    return scratch_end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(changed_behind_the_list, scratch_fresh),
        cmocka_unit_test_setup(changed_while_it_is_read, scratch_fresh),
        cmocka_unit_test_setup(names_that_come_twice, scratch_fresh),
        cmocka_unit_test_setup(too_many_levels, scratch_fresh),
        cmocka_unit_test_setup(names_that_are_too_long, scratch_fresh),
        cmocka_unit_test_setup(too_many_entries, scratch_fresh),
    };

    return cmocka_run_group_tests(tests, scratch_begin, end);
}
