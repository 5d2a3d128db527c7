/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/fd.h"
#include "lib/work/files.h"
#include "lib/work/put.h"
#include "tests/unit/scratch.h"

/* A nameless file as the server spools one; -1 where that file system has none. */
static int spool(const char *directory, const char *text)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0) {
        assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    }
    return fd;
}

static int adopt(int fd, uint64_t size, const struct put_options *options, bool *ret_created,
                 struct err *err)
{
    struct put *put = NULL;
    int result = put_begin(scratch_fd, "d/f", options, &put, err);

    if (result == 0) {
        result = put_adopt(put, fd, size, err);
    }
    if (result == 0) {
        result = put_commit(put, ret_created, NULL, err);
    }
    put_free(put);
    return result;
}

static void assert_content(const char *wanted)
{
    CLEANUP_BUF struct buf content = BUF_INIT(100);
    struct entry entry;

    assert_int_equal(files_read(scratch_fd, "d/f", &content, &entry, NULL), 0);
    assert_int_equal(content.size, strlen(wanted));
    assert_memory_equal(content.data == NULL ? "" : content.data, wanted, content.size);
    assert_int_equal(entry.mode, 0644);
}

static void a_spooled_file_becomes_the_file(void **state)
{
    static const struct put_options durable = { .durable = true };
    bool created = false;
    int fd = spool(scratch_path, "first");

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(adopt(fd, 5, &durable, &created, NULL), 0);
    assert_true(created);
    assert_content("first");
    fd_close(fd);
    fd = spool(scratch_path, "2nd");
    assert_int_equal(adopt(fd, 3, NULL, &created, NULL), 0);
    assert_false(created);
    assert_content("2nd");
    fd_close(fd);
    fd = spool(scratch_path, "");
    assert_int_equal(adopt(fd, 0, NULL, &created, NULL), 0);
    assert_content("");
    fd_close(fd);
}

static void one_of_another_file_system_is_copied(void **state)
{
    static const struct put_options durable = { .durable = true };
    bool created = false;
    int fd = spool("/dev/shm", "from memory");

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(adopt(fd, 11, &durable, &created, NULL), 0);
    assert_true(created);
    assert_content("from memory");
    fd_close(fd);
    fd = spool("/dev/shm", "again");
    assert_int_equal(adopt(fd, 5, NULL, &created, NULL), 0);
    assert_false(created);
    assert_content("again");
    fd_close(fd);
}

static void bounds_and_conditions_hold(void **state)
{
    const struct put_options small = { .max_bytes = 4 };
    const struct put_options only_new = { .create_only = true };
    struct err err = ERR_INIT;
    int fd = spool(scratch_path, "first");

    (void)state;
    assert_int_equal(adopt(fd, 5, &small, NULL, &err), -1);
    assert_int_equal(err.code, ERR_WORKSPACE_FULL);
    assert_false(scratch_has(scratch_fd, "d/f"));
    assert_int_equal(adopt(fd, 5, &only_new, NULL, &err), 0);
    fd_close(fd);
    fd = spool(scratch_path, "more!");
    assert_int_equal(adopt(fd, 5, &only_new, NULL, &err), -1);
    assert_int_equal(err.code, ERR_ETAG_MISMATCH);
    assert_content("first");
    fd_close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_spooled_file_becomes_the_file, scratch_fresh),
        cmocka_unit_test_setup(one_of_another_file_system_is_copied, scratch_fresh),
        cmocka_unit_test_setup(bounds_and_conditions_hold, scratch_fresh),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
