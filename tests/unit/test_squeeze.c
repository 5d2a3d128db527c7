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
#include "lib/work/squeeze.h"
#include "tests/unit/scratch.h"

#define MUCH ((size_t)3 << 20) /* more than all pieces together */

static struct squeeze *open_squeeze(int out, bool gzip, uint64_t max_bytes)
{
    struct squeeze_options options = { .out = out, .gzip = gzip, .max_bytes = max_bytes };
    struct squeeze *squeeze = NULL;

    assert_int_equal(squeeze_open(&options, &squeeze, NULL), 0);
    return squeeze;
}

static int open_file(const char *name)
{
    int fd = openat(scratch_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    return fd;
}

/* Text that shrinks, the same each time. */
static char *make_text(void)
{
    char *text = alloc_zero(1, MUCH);

    for (size_t i = 0; i < MUCH; i++) {
        text[i] = (char)('a' + (i * i / 7) % 13);
    }
    return text;
}

/* What is in the file, whose size is known by now. */
static char *content(int fd, size_t size)
{
    char *data = alloc_zero(1, size + 1);

    assert_int_equal(pread(fd, data, size + 1, 0), (ssize_t)size);
    return data;
}

static void fill(struct squeeze *squeeze, const char *text, size_t step)
{
    for (size_t at = 0; at < MUCH; at += step) {
        squeeze_add(squeeze, text + at, step < MUCH - at ? step : MUCH - at);
    }
}

static void bytes_arrive_in_order(void **state)
{
    static const size_t steps[] = { 7777, 262144, MUCH };
    CLEANUP_FREE char *text = make_text();
    char digest[HASH_HEX_SIZE];

    (void)state;
    hash_sha256_hex(text, MUCH, digest);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        CLEANUP_FD int out = open_file("plain");
        struct squeeze *squeeze = open_squeeze(out, false, 0);
        CLEANUP_FREE char *found = NULL;
        struct squeeze_result result;

        fill(squeeze, text, steps[i]);
        assert_int_equal(squeeze_check(squeeze, NULL), 0);
        assert_int_equal(squeeze_close(squeeze, &result, NULL), 0);
        assert_int_equal(result.bytes, MUCH);
        assert_string_equal(result.digest, digest);
        found = content(out, MUCH);
        assert_memory_equal(found, text, MUCH);
    }
}

/* The digest is that of the file, and does not depend on how the bytes came. */
static void compressed_the_same_each_time(void **state)
{
    CLEANUP_FREE char *text = make_text();
    struct squeeze_result results[2];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        CLEANUP_FD int out = open_file("x.gz");
        struct squeeze *squeeze = open_squeeze(out, true, 0);
        CLEANUP_FREE char *found = NULL;
        char digest[HASH_HEX_SIZE];

        fill(squeeze, text, i == 0 ? 1000 : 500000);
        assert_int_equal(squeeze_close(squeeze, &results[i], NULL), 0);
        assert_true(results[i].bytes < MUCH / 2);
        found = content(out, results[i].bytes);
        assert_memory_equal(found, "\x1f\x8b", 2);
        hash_sha256_hex(found, results[i].bytes, digest);
        assert_string_equal(results[i].digest, digest);
    }
    assert_string_equal(results[0].digest, results[1].digest);
}

static void nothing_at_all(void **state)
{
    CLEANUP_FD int out = open_file("empty");
    struct squeeze_result result;

    (void)state;
    assert_int_equal(squeeze_close(open_squeeze(out, false, 0), &result, NULL), 0);
    assert_int_equal(result.bytes, 0);
    assert_int_equal(squeeze_close(open_squeeze(out, true, 0), &result, NULL), 0);
    assert_true(result.bytes > 0); /* gzip's head and tail */
}

/* Much more is added after the failure: nobody waits for room that never comes. */
static void assert_fails(int out, bool gzip, uint64_t max_bytes, enum err_code code)
{
    CLEANUP_FREE char *text = make_text();
    struct squeeze *squeeze = open_squeeze(out, gzip, max_bytes);
    struct squeeze_result result;
    struct err err = ERR_INIT;

    fill(squeeze, text, 100000);
    assert_int_equal(squeeze_close(squeeze, &result, &err), -1);
    assert_int_equal(err.code, code);
}

static void failures(void **state)
{
    CLEANUP_FD int out = open_file("out");
    CLEANUP_FD int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    CLEANUP_FD int read_only = openat(scratch_fd, "out", O_RDONLY | O_CLOEXEC);
    struct stat status;

    (void)state;
    for (int gzip = 0; gzip < 2; gzip++) {
        assert_fails(full, gzip == 1, 0, ERR_STORE_FULL);
        assert_fails(read_only, gzip == 1, 0, ERR_IO);
        assert_fails(out, gzip == 1, 1000, ERR_STORE_FULL);
        assert_int_equal(fstat(out, &status), 0);
        assert_true(status.st_size <= 1000);
    }
}

static void given_up(void **state)
{
    CLEANUP_FREE char *text = make_text();
    CLEANUP_FD int out = open_file("out");
    struct squeeze *squeeze = open_squeeze(out, true, 0);
    struct squeeze_result result;
    struct err err = ERR_INIT;
    struct stat status;

    (void)state;
    squeeze_add(squeeze, text, 1000);
    squeeze_abort(squeeze);
    fill(squeeze, text, 1000);
    assert_int_equal(squeeze_check(squeeze, &err), -1);
    assert_int_equal(err.code, ERR_IO);
    assert_int_equal(squeeze_close(squeeze, &result, NULL), -1);
    assert_int_equal(fstat(out, &status), 0);
    assert_int_equal(status.st_size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(bytes_arrive_in_order, scratch_fresh),
        cmocka_unit_test_setup(compressed_the_same_each_time, scratch_fresh),
        cmocka_unit_test_setup(nothing_at_all, scratch_fresh),
        cmocka_unit_test_setup(failures, scratch_fresh),
        cmocka_unit_test_setup(given_up, scratch_fresh),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
