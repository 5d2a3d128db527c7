/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: pack and unpack directories.
 * Owns: a directory beside the one that is unpacked to, meanwhile.
 * Threads: main.
 * May include: client, lib/work, lib/base.
 */
#include "client/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/work/merge.h"
#include "lib/work/pack.h"
#include "lib/work/path.h"
#include "lib/work/remove.h"
#include "lib/work/unpack.h"

#define ENTRIES_MAX UINT64_C(100000000)

static int failed(struct ask *ask, const char *path)
{
    return ask_fail(ask, "", "%.250s: %s", path, err_errno_text(errno));
}

static void tell_left(const struct pack_result *result)
{
    for (size_t i = 0; i < result->left_count; i++) {
        (void)fprintf(stderr, "kernd: left out: %s (%s)\n", result->left[i].path,
                      result->left[i].why);
    }
    if (result->left_truncated) {
        (void)fputs("kernd: more was left out\n", stderr);
    }
}

int folder_pack(struct ask *ask, const char *directory, int file)
{
    const struct pack_options options = { .directory = PATH_ROOT, .links = true };
    struct pack_result result = { .left = NULL };
    CLEANUP_FD int root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (root < 0) {
        return failed(ask, directory);
    }
    if (pack_write(root, &options, file, &result, &ask->err) < 0) {
        return -1;
    }
    tell_left(&result);
    pack_result_done(&result);
    return lseek(file, 0, SEEK_SET) < 0 ? failed(ask, directory) : 0;
}

/* A directory of ours is closed; a new one of the user's is as mkdir(2) makes it. */
static int open_up(int directory)
{
    const mode_t mask = umask(0);

    (void)umask(mask);
    return fchmod(directory, 0777 & ~mask);
}

/* The archive lies in `beside`. */
static int put_in_place(struct ask *ask, int unpacked, const char *beside, const char *directory)
{
    CLEANUP_FD int there = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (there >= 0) {
        return merge_tree(unpacked, there, &ask->err);
    }
    if (errno != ENOENT || open_up(unpacked) < 0 || rename(beside, directory) < 0) {
        return failed(ask, directory);
    }
    return 0;
}

int folder_unpack(struct ask *ask, int file, const char *directory)
{
    const struct unpack_limits limits = { .max_bytes = UINT64_MAX, .max_entries = ENTRIES_MAX };
    size_t length = strlen(directory);
    CLEANUP_FREE char *plain = NULL;
    CLEANUP_FREE char *beside = NULL;
    CLEANUP_FD int unpacked = -1;
    struct unpack_result result;
    struct remove_left left;
    struct stat there;
    int status;

    while (length > 1 && directory[length - 1] == '/') {
        length--;
    }
    plain = alloc_copy(directory, length);
    beside = stat(plain, &there) == 0 ? alloc_printf("%s/.kernd-XXXXXX", plain)
                                      : alloc_printf("%s.kernd-XXXXXX", plain);
    if (mkdtemp(beside) == NULL) {
        return failed(ask, directory);
    }
    unpacked = open(beside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    status = unpacked < 0 ? failed(ask, beside)
                          : unpack_into(unpacked, file, &limits, &result, &ask->err);
    if (status == 0) {
        status = put_in_place(ask, unpacked, beside, plain);
    }
    if (access(beside, F_OK) == 0) {
        const char *slash = strrchr(beside, '/');
        CLEANUP_FREE char *parent =
            slash == NULL ? alloc_text(".") : alloc_copy(beside, (size_t)(slash - beside) + 1);
        CLEANUP_FD int above = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        (void)remove_tree(above, slash == NULL ? beside : slash + 1, NULL, &left);
    }
    return status;
}
