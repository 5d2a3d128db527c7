/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
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

#include "lib/base/cleanup.h"
#include "lib/work/files.h"
#include "lib/work/put.h"
#include "tests/unit/scratch.h"

/* A whole text under options; NULL takes the short way. */
static int put_text(const char *path, const char *text, const struct put_options *options,
                    struct err *err)
{
    struct put *put = NULL;
    int result;

    if (options == NULL) {
        return put_whole(scratch_fd, path, text, strlen(text), err);
    }
    result = put_begin(scratch_fd, path, options, &put, err);
    if (result == 0) {
        result = put_write(put, text, strlen(text), err);
    }
    if (result == 0) {
        result = put_commit(put, NULL, NULL, err);
    }
    put_free(put);
    return result;
}

/* Everything that is not a regular file, and the ways to and through it. */
static void plant_traps(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    CLEANUP_FD int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", scratch_path);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(mkfifoat(scratch_fd, "p", 0600), 0);
    assert_int_equal(mkdirat(scratch_fd, "d.txt", 0700), 0);
    assert_int_equal(symlinkat("/etc/passwd", scratch_fd, "link"), 0);
    assert_int_equal(symlinkat("real", scratch_fd, "inside"), 0);
    assert_int_equal(symlinkat("/etc", scratch_fd, "out"), 0);
    assert_int_equal(symlinkat("nowhere", scratch_fd, "dangling"), 0);
    scratch_file(scratch_fd, "real/x", "1");
}

static const char *const traps[] = { "p",        "s",        "d.txt",     "link",
                                     "inside",   "out",      "dangling",  "out/passwd",
                                     "inside/x", "real/x/y", "dangling/x" };

static void read_regular_files_only(void **state)
{
    struct buf out = BUF_INIT(100);
    struct err err = ERR_INIT;
    struct entry entry;

    (void)state;
    plant_traps();
    for (size_t i = 0; i < sizeof(traps) / sizeof(traps[0]); i++) {
        err = ERR_INIT;
        assert_int_equal(files_read(scratch_fd, traps[i], &out, NULL, &err), -1);
        assert_true(err.code == ERR_BAD_PATH || err.code == ERR_FILE_NOT_FOUND);
        assert_int_equal(out.size, 0);
    }
    assert_int_equal(files_read(scratch_fd, "none", &out, NULL, &err), -1);
    assert_int_equal(err.code, ERR_FILE_NOT_FOUND);
    assert_int_equal(files_read(scratch_fd, "real/x", &out, &entry, NULL), 0);
    assert_string_equal(out.data, "1");
    assert_int_equal(entry.size, 1);
    buf_done(&out);
}

static void read_with_a_maximum(void **state)
{
    struct buf out = BUF_INIT(4);
    struct err err = ERR_INIT;

    (void)state;
    scratch_file(scratch_fd, "four", "1234");
    scratch_file(scratch_fd, "five", "12345");
    scratch_file(scratch_fd, "empty", "");
    assert_int_equal(files_read(scratch_fd, "empty", &out, NULL, NULL), 0);
    assert_int_equal(files_read(scratch_fd, "five", &out, NULL, &err), -1);
    assert_int_equal(err.code, ERR_BODY_TOO_LARGE);
    assert_int_equal(files_read(scratch_fd, "four", &out, NULL, NULL), 0);
    assert_int_equal(out.size, 4);
    buf_done(&out);
}

static void read_without_rights(void **state)
{
    struct err err = ERR_INIT;
    int fd = -1;

    (void)state;
    scratch_file(scratch_fd, "d/e/f", "x");
    assert_int_equal(fchmodat(scratch_fd, "d/e/f", 0, 0), 0);
    assert_int_equal(files_open(scratch_fd, "d/e/f", &fd, NULL, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    assert_int_equal(fchmodat(scratch_fd, "d/e", 0, 0), 0);
    assert_int_equal(files_open(scratch_fd, "d/e/f", &fd, NULL, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    assert_int_equal(fd, -1);
}

static void stat_tells_the_thing_itself(void **state)
{
    static const struct {
        const char *path;
        enum entry_type type;
    } expected[] = { { "p", ENTRY_FIFO },          { "s", ENTRY_SOCKET },
                     { "d.txt", ENTRY_DIRECTORY }, { "link", ENTRY_SYMLINK },
                     { "real/x", ENTRY_FILE },     { ".", ENTRY_DIRECTORY } };
    struct entry entry;
    struct err err = ERR_INIT;

    (void)state;
    plant_traps();
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_int_equal(files_stat(scratch_fd, expected[i].path, &entry, NULL), 0);
        assert_int_equal(entry.type, expected[i].type);
        assert_int_equal(strlen(entry.etag), 16);
        assert_non_null(entry_type_text(entry.type));
    }
    assert_int_equal(files_stat(scratch_fd, "out/passwd", &entry, &err), -1);
    assert_int_equal(err.code, ERR_BAD_PATH);
    assert_int_equal(files_stat(scratch_fd, "real/x/y", &entry, &err), -1);
    assert_int_equal(err.code, ERR_FILE_NOT_FOUND);
}

static void put_makes_parents_and_replaces(void **state)
{
    struct stat status;

    (void)state;
    assert_int_equal(put_text("a/b/c.txt", "long text", NULL, NULL), 0);
    assert_string_equal(scratch_text(scratch_fd, "a/b/c.txt"), "long text");
    assert_int_equal(put_text("a/b/c.txt", "abc", NULL, NULL), 0);
    assert_string_equal(scratch_text(scratch_fd, "a/b/c.txt"), "abc");
    assert_int_equal(fstatat(scratch_fd, "a/b/c.txt", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0644);
    assert_int_equal(status.st_nlink, 1);
    assert_int_equal(fstatat(scratch_fd, "a/b", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
    assert_int_equal(put_text("e", "", NULL, NULL), 0);
    assert_true(scratch_has(scratch_fd, "e"));
    assert_int_equal(put_text("\xc3\n\"%2e.txt", "raw", NULL, NULL), 0);
    assert_string_equal(scratch_text(scratch_fd, "\xc3\n\"%2e.txt"), "raw");
}

static void put_into_traps_is_refused(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    plant_traps();
    for (size_t i = 0; i < sizeof(traps) / sizeof(traps[0]); i++) {
        err = ERR_INIT;
        assert_int_equal(put_text(traps[i], "x", NULL, &err), -1);
        assert_int_equal(err.code, ERR_BAD_PATH);
    }
    assert_string_equal(scratch_text(scratch_fd, "real/x"), "1");
    assert_false(scratch_has(scratch_fd, "nowhere"));
}

static void put_keeps_modes(void **state)
{
    struct put_options executable = { .set_mode = true, .mode = 04755 };
    struct stat status;

    (void)state;
    assert_int_equal(put_text("run.sh", "1", &executable, NULL), 0);
    assert_int_equal(put_text("run.sh", "2", NULL, NULL), 0);
    assert_int_equal(fstatat(scratch_fd, "run.sh", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
}

static void put_can_be_given_up(void **state)
{
    struct put *put = NULL;

    (void)state;
    scratch_file(scratch_fd, "a", "old");
    assert_int_equal(put_begin(scratch_fd, "a", NULL, &put, NULL), 0);
    assert_int_equal(put_write(put, "new", 3, NULL), 0);
    assert_string_equal(scratch_text(scratch_fd, "a"), "old");
    put_free(put);
    assert_int_equal(put_begin(scratch_fd, "new/b", NULL, &put, NULL), 0);
    put_free(put);
    put_free(NULL);
    assert_string_equal(scratch_text(scratch_fd, "a"), "old");
    assert_false(scratch_has(scratch_fd, "new"));
}

static void put_under_conditions(void **state)
{
    struct put_options create = { .create_only = true };
    struct put_options match = { .durable = true };
    struct put *put = NULL;
    struct entry before;
    struct entry after;
    struct err err = ERR_INIT;
    bool created = false;

    (void)state;
    assert_int_equal(put_text("a", "1", &create, NULL), 0);
    assert_int_equal(put_text("a", "2", &create, &err), -1);
    assert_int_equal(err.code, ERR_ETAG_MISMATCH);
    assert_int_equal(files_stat(scratch_fd, "a", &before, NULL), 0);
    match.if_match = before.etag;
    assert_int_equal(put_begin(scratch_fd, "a", &match, &put, NULL), 0);
    assert_int_equal(put_write(put, "2", 1, NULL), 0);
    assert_int_equal(put_commit(put, &created, &after, NULL), 0);
    put_free(put);
    assert_false(created);
    assert_string_not_equal(before.etag, after.etag);
    assert_int_equal(put_text("a", "3", &match, &err), -1);
    assert_int_equal(err.code, ERR_ETAG_MISMATCH);
    assert_int_equal(put_text("none", "3", &match, &err), -1);
    assert_int_equal(put_text("no/ne", "3", &match, &err), -1);
    assert_int_equal(err.code, ERR_ETAG_MISMATCH);
    assert_string_equal(scratch_text(scratch_fd, "a"), "2");
    assert_int_equal(files_stat(scratch_fd, "a", &before, NULL), 0);
    assert_string_equal(before.etag, after.etag);
}

/* Somebody makes the file between the check and the end of the upload. */
static void put_that_lost_a_race(void **state)
{
    struct put_options create = { .create_only = true };
    struct put *put = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(put_begin(scratch_fd, "a", &create, &put, NULL), 0);
    scratch_file(scratch_fd, "a", "theirs");
    assert_int_equal(put_commit(put, NULL, NULL, &err), -1);
    assert_int_equal(err.code, ERR_ETAG_MISMATCH);
    put_free(put);
    assert_string_equal(scratch_text(scratch_fd, "a"), "theirs");
}

static void put_within_bounds(void **state)
{
    struct put_options bound = { .max_bytes = 4 };
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(put_text("a", "1234", &bound, NULL), 0);
    assert_int_equal(put_text("a", "12345", &bound, &err), -1);
    assert_int_equal(err.code, ERR_WORKSPACE_FULL);
    assert_string_equal(scratch_text(scratch_fd, "a"), "1234");
    assert_int_equal(fchmod(scratch_fd, 0555), 0);
    assert_int_equal(put_text("b", "1", NULL, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    assert_int_equal(fchmod(scratch_fd, 0700), 0);
}

static int nameless(const char *directory, const char *text)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

/* A body that was spooled beforehand, on the same file system and on another one. */
static void put_of_a_spooled_file(void **state)
{
    const char *const places[] = { scratch_path, "/dev/shm" };
    struct put_options bound = { .max_bytes = 4 };
    struct put *put = NULL;
    struct err err = ERR_INIT;
    struct stat status;
    bool created = false;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (int again = 0; again < 2; again++) {
            const char *name = i == 0 ? "d/near" : "d/far";
            CLEANUP_FD int fd = nameless(places[i], again == 0 ? "first" : "second");

            assert_int_equal(put_begin(scratch_fd, name, NULL, &put, NULL), 0);
            assert_int_equal(put_adopt(put, fd, again == 0 ? 5 : 6, NULL), 0);
            assert_int_equal(put_commit(put, &created, NULL, NULL), 0);
            put_free(put);
            assert_int_equal(created, again == 0);
            assert_string_equal(scratch_text(scratch_fd, name), again == 0 ? "first" : "second");
            assert_int_equal(fstatat(scratch_fd, name, &status, 0), 0);
            assert_int_equal(status.st_mode & 07777, 0644);
            assert_int_equal(status.st_nlink, 1);
        }
    }
    assert_int_equal(put_begin(scratch_fd, "x", &bound, &put, NULL), 0);
    assert_int_equal(put_adopt(put, 0, 5, &err), -1);
    assert_int_equal(err.code, ERR_WORKSPACE_FULL);
    put_free(put);
    assert_false(scratch_has(scratch_fd, "x"));
}

static void deletion(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    plant_traps();
    scratch_file(scratch_fd, "tree/a/b", "1");
    assert_int_equal(files_delete(scratch_fd, "tree", false, &err), -1);
    assert_int_equal(err.code, ERR_FILE_EXISTS);
    assert_int_equal(files_delete(scratch_fd, "tree", true, NULL), 0);
    assert_int_equal(files_delete(scratch_fd, "tree", true, &err), -1);
    assert_int_equal(err.code, ERR_FILE_NOT_FOUND);
    assert_int_equal(files_delete(scratch_fd, "out/passwd", false, &err), -1);
    assert_int_equal(err.code, ERR_BAD_PATH);
    assert_int_equal(files_delete(scratch_fd, "inside/x", true, &err), -1);
    assert_int_equal(err.code, ERR_BAD_PATH);
    assert_int_equal(files_delete(scratch_fd, "inside", true, NULL), 0);
    assert_int_equal(files_delete(scratch_fd, "p", false, NULL), 0);
    assert_int_equal(files_delete(scratch_fd, "s", false, NULL), 0);
    assert_int_equal(files_delete(scratch_fd, "d.txt", false, NULL), 0);
    assert_int_equal(files_delete(scratch_fd, "p", false, &err), -1);
    assert_int_equal(err.code, ERR_FILE_NOT_FOUND);
    assert_string_equal(scratch_text(scratch_fd, "real/x"), "1");
}

static void moving(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    plant_traps();
    scratch_file(scratch_fd, "a", "1");
    scratch_file(scratch_fd, "b", "2");
    assert_int_equal(files_move(scratch_fd, "a", "b", false, &err), -1);
    assert_int_equal(err.code, ERR_FILE_EXISTS);
    assert_int_equal(files_move(scratch_fd, "a", "b", true, NULL), 0);
    assert_string_equal(scratch_text(scratch_fd, "b"), "1");
    assert_int_equal(files_move(scratch_fd, "b", "new/sub/c", false, NULL), 0);
    assert_string_equal(scratch_text(scratch_fd, "new/sub/c"), "1");
    assert_int_equal(files_move(scratch_fd, "b", "other/x", false, &err), -1);
    assert_int_equal(err.code, ERR_FILE_NOT_FOUND);
    assert_false(scratch_has(scratch_fd, "other"));
    assert_int_equal(files_move(scratch_fd, "new", "new/sub/in", false, &err), -1);
    assert_int_equal(err.code, ERR_BAD_PATH);
    assert_int_equal(files_move(scratch_fd, "new/sub/c", "out/c", true, &err), -1);
    assert_int_equal(err.code, ERR_BAD_PATH);
    assert_int_equal(files_move(scratch_fd, "new", "real", true, &err), -1);
    assert_int_equal(err.code, ERR_FILE_EXISTS);
    assert_int_equal(files_move(scratch_fd, "new", "moved", false, NULL), 0);
    assert_string_equal(scratch_text(scratch_fd, "moved/sub/c"), "1");
}

static void making_directories(void **state)
{
    struct err err = ERR_INIT;
    bool created = false;

    (void)state;
    plant_traps();
    assert_int_equal(files_make_directory(scratch_fd, "x/y/z", &created, NULL), 0);
    assert_true(created);
    assert_int_equal(files_make_directory(scratch_fd, "x/y", &created, NULL), 0);
    assert_false(created);
    assert_int_equal(files_make_directory(scratch_fd, "out/y", &created, &err), -1);
    assert_int_equal(err.code, ERR_BAD_PATH);
    assert_int_equal(files_make_directory(scratch_fd, "real/x", &created, &err), -1);
    assert_int_equal(err.code, ERR_BAD_PATH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(read_regular_files_only, scratch_fresh),
        cmocka_unit_test_setup(read_with_a_maximum, scratch_fresh),
        cmocka_unit_test_setup(read_without_rights, scratch_fresh),
        cmocka_unit_test_setup(stat_tells_the_thing_itself, scratch_fresh),
        cmocka_unit_test_setup(put_makes_parents_and_replaces, scratch_fresh),
        cmocka_unit_test_setup(put_into_traps_is_refused, scratch_fresh),
        cmocka_unit_test_setup(put_keeps_modes, scratch_fresh),
        cmocka_unit_test_setup(put_can_be_given_up, scratch_fresh),
        cmocka_unit_test_setup(put_under_conditions, scratch_fresh),
        cmocka_unit_test_setup(put_that_lost_a_race, scratch_fresh),
        cmocka_unit_test_setup(put_within_bounds, scratch_fresh),
        cmocka_unit_test_setup(put_of_a_spooled_file, scratch_fresh),
        cmocka_unit_test_setup(deletion, scratch_fresh),
        cmocka_unit_test_setup(moving, scratch_fresh),
        cmocka_unit_test_setup(making_directories, scratch_fresh),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
