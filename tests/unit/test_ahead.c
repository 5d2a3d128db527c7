/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/work/ahead.h"
#include "lib/work/squeeze.h"
#include "tests/unit/scratch.h"

#define PIECE ((size_t)256 << 10)
#define MUCH ((size_t)3 << 20) /* more than all pieces together */

static int open_file(const char *name)
{
    int fd = openat(scratch_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    return fd;
}

static char *make_text(size_t size)
{
    char *text = alloc_zero(1, size);

    for (size_t i = 0; i < size; i++) {
        text[i] = (char)('a' + (i * i / 7) % 13);
    }
    return text;
}

/* The text in a file, at its start: to be closed. */
static int stored(const char *text, size_t size, bool gzip)
{
    int fd = open_file("stored");
    struct squeeze_options options = { .out = fd, .gzip = gzip };
    struct squeeze_result result;
    struct squeeze *squeeze;

    assert_int_equal(squeeze_open(&options, &squeeze, NULL), 0);
    squeeze_add(squeeze, text, size);
    assert_int_equal(squeeze_close(squeeze, &result, NULL), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static struct ahead *open_ahead(int in, uint64_t max_bytes, const struct cancel *cancel)
{
    struct ahead *ahead = NULL;

    assert_int_equal(ahead_open(in, max_bytes, cancel, &ahead, NULL), 0);
    return ahead;
}

/* Takes all there is, which begins as the text does; how many bytes before what ended it. */
static size_t take(struct ahead *ahead, const char *text, ssize_t *ret_last, struct err *err)
{
    const void *data;
    size_t taken = 0;

    while ((*ret_last = ahead_next(ahead, &data, err)) > 0) {
        assert_memory_equal(data, text + taken, (size_t)*ret_last);
        taken += (size_t)*ret_last;
    }
    return taken;
}

static void bytes_arrive_in_order(void **state)
{
    static const size_t sizes[] = { 1, 1000, PIECE - 1, PIECE, PIECE + 1, 4 * PIECE, MUCH };
    CLEANUP_FREE char *text = make_text(MUCH);

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size = sizes[i / 2];
        CLEANUP_FD int in = stored(text, size, i % 2 == 1);
        struct ahead *ahead = open_ahead(in, MUCH, NULL);
        const void *data;
        ssize_t last;

        assert_int_equal(take(ahead, text, &last, NULL), size);
        assert_int_equal(last, 0);
        assert_int_equal(ahead_next(ahead, &data, NULL), 0);
        ahead_close(ahead);
    }
}

/* Whatever is good is taken first, the rest is told each time. */
static void assert_fails_behind(int in, uint64_t max_bytes, const char *text, size_t size)
{
    struct ahead *ahead = open_ahead(in, max_bytes, NULL);
    struct err err = ERR_INIT;
    const void *data;
    ssize_t last;

    assert_int_equal(take(ahead, text, &last, &err), size);
    assert_int_equal(last, -1);
    assert_int_equal(err.code, ERR_BAD_ARCHIVE);
    err = (struct err)ERR_INIT;
    assert_int_equal(ahead_next(ahead, &data, &err), -1);
    assert_int_equal(err.code, ERR_BAD_ARCHIVE);
    ahead_close(ahead);
}

static void damage_is_told(void **state)
{
    static const size_t sizes[] = { 1000, MUCH };
    CLEANUP_FREE char *text = make_text(MUCH);

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        CLEANUP_FD int in = stored(text, sizes[i], true);
        struct stat status;

        assert_int_equal(fstat(in, &status), 0);
        assert_int_equal(pwrite(in, "x", 1, status.st_size), 1); /* something behind the end */
        assert_fails_behind(in, MUCH, text, sizes[i]);
        assert_int_equal(lseek(in, 0, SEEK_SET), 0);
        assert_int_equal(pwrite(in, "xxxx", 4, status.st_size - 8), 4); /* the checksum */
        assert_int_equal(ftruncate(in, status.st_size), 0);
        assert_fails_behind(in, MUCH, text, sizes[i]);
    }
}

static void no_more_than_is_allowed(void **state)
{
    CLEANUP_FREE char *text = make_text(MUCH);
    CLEANUP_FD int in = stored(text, MUCH, true);
    struct ahead *ahead = open_ahead(in, MUCH - 1, NULL);
    struct err err = ERR_INIT;
    ssize_t last;

    (void)state;
    assert_true(take(ahead, text, &last, &err) < MUCH);
    assert_int_equal(last, -1);
    assert_int_equal(err.code, ERR_BAD_ARCHIVE);
    ahead_close(ahead);
}

/* Also while the other thread waits for a piece to be taken. */
static void given_up(void **state)
{
    CLEANUP_FREE char *text = make_text(MUCH);
    struct err err = ERR_INIT;
    struct cancel cancel;

    (void)state;
    for (size_t taken = 0; taken < MUCH; taken += PIECE) {
        CLEANUP_FD int in = stored(text, MUCH, taken / PIECE % 2 == 0);
        struct ahead *ahead;
        const void *data;

        assert_int_equal(cancel_init(&cancel, NULL), 0);
        ahead = open_ahead(in, MUCH, &cancel);
        for (size_t at = 0; at < taken; at += PIECE) {
            assert_int_equal(ahead_next(ahead, &data, NULL), PIECE);
        }
        cancel_fire(&cancel, CANCEL_CLIENT_GONE);
        assert_int_equal(ahead_next(ahead, &data, &err), -1);
        assert_int_equal(err.code, ERR_CANCELLED);
        ahead_close(ahead);
        cancel_done(&cancel);
    }
}

static void closed_early(void **state)
{
    CLEANUP_FREE char *text = make_text(MUCH);

    (void)state;
    for (size_t taken = 0; taken < 8 * PIECE; taken += PIECE) {
        CLEANUP_FD int in = stored(text, MUCH, false);
        struct ahead *ahead = open_ahead(in, MUCH, NULL);
        const void *data;

        for (size_t at = 0; at < taken; at += PIECE) {
            assert_int_equal(ahead_next(ahead, &data, NULL), PIECE);
        }
        ahead_close(ahead);
    }
    ahead_close(NULL);
}

static void nothing_to_read(void **state)
{
    CLEANUP_FD int write_only = openat(scratch_fd, "out", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct ahead *ahead = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(ahead_open(write_only, MUCH, NULL, &ahead, &err), -1);
    assert_int_equal(err.code, ERR_IO);
    assert_null(ahead);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(bytes_arrive_in_order, scratch_fresh),
        cmocka_unit_test_setup(damage_is_told, scratch_fresh),
        cmocka_unit_test_setup(no_more_than_is_allowed, scratch_fresh),
        cmocka_unit_test_setup(given_up, scratch_fresh),
        cmocka_unit_test_setup(closed_early, scratch_fresh),
        cmocka_unit_test_setup(nothing_to_read, scratch_fresh),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
