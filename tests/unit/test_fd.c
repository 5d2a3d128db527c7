/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/fd.h"

/* A folder of its own for each test: top/ with inside/, inside/file, secret; the root is inside/.
 */
struct place {
    char top[64];
    int root;
};

static void make_file(int dir, const char *name, const char *content)
{
    CLEANUP_FD int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, content, strlen(content)), 0);
}

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    CLEANUP_FD int top = -1;

    assert_non_null(place);
    (void)snprintf(place->top, sizeof(place->top), "/tmp/kernd-test-fd-XXXXXX");
    assert_non_null(mkdtemp(place->top));
    top = open(place->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(top >= 0);
    assert_int_equal(mkdirat(top, "inside", 0755), 0);
    assert_int_equal(mkdirat(top, "inside/sub", 0755), 0);
    make_file(top, "secret", "secret");
    make_file(top, "inside/sub/file", "content");
    place->root = openat(top, "inside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(place->root >= 0);
    *state = place;
    return 0;
}

static void remove_folder(int parent, const char *name)
{
    CLEANUP_DIR DIR *dir =
        fd_take_dir(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const struct dirent *entry = NULL;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (unlinkat(dirfd(dir), entry->d_name, 0) < 0) {
            remove_folder(dirfd(dir), entry->d_name);
        }
    }
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

static int tear_down(void **state)
{
    struct place *place = *state;

    fd_close(place->root);
    remove_folder(AT_FDCWD, place->top);
    free(place);
    return 0;
}

static void assert_refused(int root, const char *path, int expected)
{
    int fd = fd_open_beneath(root, path, O_RDONLY, 0);
    int saved = errno;

    fd_close(fd);
    assert_int_equal(fd, -1);
    assert_int_equal(saved, expected);
}

static void a_plain_path_opens(void **state)
{
    const struct place *place = *state;
    CLEANUP_FD int fd = fd_open_beneath(place->root, "sub/file", O_RDONLY, 0);
    CLEANUP_FD int self = fd_open_beneath(place->root, ".", O_RDONLY | O_DIRECTORY, 0);
    CLEANUP_FD int dotted = fd_open_beneath(place->root, "./sub//./file", O_RDONLY, 0);

    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_true(self >= 0);
    assert_true(dotted >= 0);
}

static void no_path_leads_outside(void **state)
{
    const struct place *place = *state;

    assert_refused(place->root, "..", EXDEV);
    assert_refused(place->root, "../secret", EXDEV);
    assert_refused(place->root, "sub/../../secret", EXDEV);
    assert_refused(place->root, "sub/../sub/file", EXDEV);
    assert_refused(place->root, "sub/..", EXDEV);
    assert_refused(place->root, "/etc/passwd", EXDEV);
    assert_refused(place->root, "//etc/passwd", EXDEV);
    assert_refused(place->root, "", ENOENT);
    assert_refused(place->root, "absent", ENOENT);
    assert_refused(place->root, "sub/file/x", ENOTDIR);
}

static void names_that_begin_with_dots_are_plain(void **state)
{
    const struct place *place = *state;
    CLEANUP_FD int fd = fd_open_beneath(place->root, "sub/..file", O_WRONLY | O_CREAT, 0600);
    CLEANUP_FD int dots = fd_open_beneath(place->root, "...", O_WRONLY | O_CREAT, 0600);

    assert_true(fd >= 0);
    assert_true(dots >= 0);
}

static void no_symlink_is_followed(void **state)
{
    const struct place *place = *state;

    assert_int_equal(symlinkat("sub/file", place->root, "good-link"), 0);
    assert_int_equal(symlinkat("sub", place->root, "dir-link"), 0);
    assert_int_equal(symlinkat("../secret", place->root, "up-link"), 0);
    assert_int_equal(symlinkat("/etc/passwd", place->root, "abs-link"), 0);
    assert_int_equal(symlinkat("loop", place->root, "loop"), 0);
    assert_refused(place->root, "good-link", ELOOP);
    assert_refused(place->root, "dir-link/file", ELOOP);
    assert_refused(place->root, "up-link", ELOOP);
    assert_refused(place->root, "abs-link", ELOOP);
    assert_refused(place->root, "loop", ELOOP);
}

static void magic_links_are_refused(void **state)
{
    CLEANUP_FD int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_true(proc >= 0);
    assert_refused(proc, "root/etc/passwd", ELOOP);
    assert_refused(proc, "cwd", ELOOP);
    assert_refused(proc, "exe", ELOOP);
}

static void a_created_file_has_its_mode(void **state)
{
    const struct place *place = *state;
    CLEANUP_FD int fd = fd_open_beneath(place->root, "sub/new", O_WRONLY | O_CREAT | O_EXCL, 0600);
    struct stat about = { 0 };

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    assert_int_equal(fd_open_beneath(place->root, "sub/new", O_WRONLY | O_CREAT | O_EXCL, 0600),
                     -1);
    assert_int_equal(errno, EEXIST);
}

/* While another thread swaps a folder with a symlink that leads out, nothing outside ever opens. */
struct swapper {
    int root;
    atomic_bool stop;
};

static void *swap(void *argument)
{
    struct swapper *swapper = argument;

    while (!atomic_load(&swapper->stop)) {
        (void)renameat2(swapper->root, "sub", swapper->root, "link", RENAME_EXCHANGE);
    }
    return NULL;
}

static void a_race_does_not_lead_outside(void **state)
{
    const struct place *place = *state;
    struct swapper swapper = { .root = place->root };
    pthread_t thread;
    CLEANUP_FD int top = open(place->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(mkdirat(top, "outside", 0755), 0);
    make_file(top, "outside/file", "stolen!");
    assert_int_equal(symlinkat("../outside", place->root, "link"), 0);
    assert_int_equal(pthread_create(&thread, NULL, swap, &swapper), 0);
    for (int i = 0; i < 5000; i++) {
        CLEANUP_FD int fd = fd_open_beneath(place->root, "sub/file", O_RDONLY, 0);
        char content[7] = { 0 };

        if (fd >= 0) {
            assert_int_equal(fd_read_full(fd, content, sizeof(content)), 0);
            assert_memory_equal(content, "content", sizeof(content));
        }
    }
    atomic_store(&swapper.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void closing_keeps_errno(void **state)
{
    int fd = dup(STDOUT_FILENO);

    (void)state;
    errno = ENOSPC;
    fd_close(-1);
    fd_close(987654);
    assert_int_equal(errno, ENOSPC);
    fd_clear(&fd);
    assert_int_equal(fd, -1);
    assert_int_equal(errno, ENOSPC);
}

static void pipes(void **state)
{
    int reader = -1;
    int writer = -1;
    char text[5] = { 0 };

    (void)state;
    assert_int_equal(fd_pipe(&reader, &writer), 0);
    assert_int_equal(fcntl(reader, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(writer, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(reader, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fd_set_nonblocking(reader, true), 0);
    assert_int_equal(fd_read_full(reader, text, 1), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(fd_set_nonblocking(reader, false), 0);
    assert_int_equal(fd_write_full(writer, "abcd", 4), 0);
    assert_int_equal(fd_read_full(reader, text, 4), 0);
    assert_string_equal(text, "abcd");
    assert_int_equal(fd_write_full(writer, "x", 1), 0);
    fd_clear(&writer);
    assert_int_equal(fd_read_full(reader, text, 2), -1);
    assert_int_equal(errno, EPIPE);
    assert_int_equal(fd_set_nonblocking(-1, true), -1);
    fd_clear(&reader);
}

static void *write_much(void *argument)
{
    static const char piece[1000];

    for (int i = 0; i < 1000; i++) {
        assert_int_equal(fd_write_full(*(int *)argument, piece, sizeof(piece)), 0);
    }
    return NULL;
}

static void more_than_a_pipe_holds_arrives_whole(void **state)
{
    static char much[1000 * 1000];
    int reader = -1;
    int writer = -1;
    pthread_t thread;

    (void)state;
    assert_int_equal(fd_pipe(&reader, &writer), 0);
    assert_int_equal(pthread_create(&thread, NULL, write_much, &writer), 0);
    assert_int_equal(fd_read_full(reader, much, sizeof(much)), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    fd_clear(&reader);
    fd_clear(&writer);
}

static void reading_to_the_end(void **state)
{
    const struct place *place = *state;
    CLEANUP_FD int fd = fd_open_beneath(place->root, "sub/file", O_RDONLY, 0);
    CLEANUP_BUF struct buf exact = BUF_INIT(7);
    CLEANUP_BUF struct buf small = BUF_INIT(6);
    struct err err = ERR_INIT;

    assert_int_equal(fd_read_to_end(fd, &exact, &err), 0);
    assert_string_equal(exact.data, "content");
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(fd_read_to_end(fd, &small, &err), -1);
    assert_int_equal(err.code, ERR_BODY_TOO_LARGE);
    assert_int_equal(fd_read_to_end(place->root, &small, &err), -1);
    assert_int_equal(err.code, ERR_IO);
    assert_int_equal(err.sys, EISDIR);
}

static void a_directory_takes_its_descriptor(void **state)
{
    const struct place *place = *state;
    CLEANUP_DIR DIR *dir =
        fd_take_dir(openat(place->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const struct dirent *entry;
    bool seen = false;
    int fd;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        seen |= strcmp(entry->d_name, "sub") == 0;
    }
    assert_true(seen);
    fd = openat(place->root, "sub/file", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_null(fd_take_dir(fd));
    assert_int_equal(errno, ENOTDIR);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    errno = ELOOP;
    assert_null(fd_take_dir(-1));
    assert_int_equal(errno, ELOOP);
}

static void whole_files(void **state)
{
    CLEANUP_FREE char *content = NULL;
    CLEANUP_FREE char *version = fd_read_file("/proc/version", 4096, NULL);
    size_t size = 9;

    (void)state;
    assert_non_null(version);
    assert_null(fd_read_file("/nonexistent", 10, &size));
    assert_int_equal(errno, ENOENT);
    assert_null(fd_read_file("/proc/version", 3, &size));
    assert_int_equal(errno, EFBIG);
    assert_null(fd_read_file("/proc", 10, &size));
    assert_int_equal(errno, EISDIR);
    assert_int_equal(size, 9);
    content = fd_read_file("/dev/null", 0, &size);
    assert_string_equal(content, "");
    assert_int_equal(size, 0);
}

static size_t count_entries(int folder)
{
    CLEANUP_DIR DIR *dir = fdopendir(dup(folder));
    size_t count = 0;

    assert_non_null(dir);
    rewinddir(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    return count;
}

static void written_files_replace_old_ones(void **state)
{
    const struct place *place = *state;
    CLEANUP_FREE char *path = NULL;
    CLEANUP_FREE char *content = NULL;
    struct stat about = { 0 };
    size_t entries = count_entries(place->root);
    size_t size = 0;
    mode_t mask = umask(077);

    assert_true(asprintf(&path, "%s/inside/written", place->top) > 0);
    assert_int_equal(fd_write_file(path, "old", 3, 0600), 0);
    assert_int_equal(fd_write_file(path, "n\0w", 3, 0644), 0);
    (void)umask(mask);
    content = fd_read_file(path, 100, &size);
    assert_int_equal(size, 3);
    assert_memory_equal(content, "n\0w", 3);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0644);
    assert_int_equal(count_entries(place->root), entries + 1);
}

static void a_failed_write_leaves_nothing(void **state)
{
    const struct place *place = *state;
    CLEANUP_FREE char *folder = NULL;
    size_t entries = count_entries(place->root);

    assert_true(asprintf(&folder, "%s/inside/sub", place->top) > 0);
    assert_int_equal(fd_write_file(folder, "x", 1, 0600), -1);
    assert_int_equal(errno, EISDIR);
    assert_int_equal(count_entries(place->root), entries);
    assert_int_equal(fd_write_file("/nonexistent/file", "x", 1, 0600), -1);
    assert_int_equal(errno, ENOENT);
}

#define WITH_PLACE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PLACE(a_plain_path_opens),
        WITH_PLACE(no_path_leads_outside),
        WITH_PLACE(names_that_begin_with_dots_are_plain),
        WITH_PLACE(no_symlink_is_followed),
        cmocka_unit_test(magic_links_are_refused),
        WITH_PLACE(a_created_file_has_its_mode),
        WITH_PLACE(a_race_does_not_lead_outside),
        cmocka_unit_test(closing_keeps_errno),
        cmocka_unit_test(pipes),
        cmocka_unit_test(more_than_a_pipe_holds_arrives_whole),
        WITH_PLACE(reading_to_the_end),
        WITH_PLACE(a_directory_takes_its_descriptor),
        cmocka_unit_test(whole_files),
        WITH_PLACE(written_files_replace_old_ones),
        WITH_PLACE(a_failed_write_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
