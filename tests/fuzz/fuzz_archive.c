/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever bytes are taken for an archive: refused or unpacked, and nothing gets outside. */
#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/work/remove.h"
#include "lib/work/unpack.h"

#define INSIDE "inside"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char parent_path[] = "/tmp/kernd-fuzz-XXXXXX";
static int parent = -1;

static void forget_parent(void)
{
    (void)rmdir(parent_path);
}

static void open_parent(void)
{
    if (mkdtemp(parent_path) == NULL) {
        abort();
    }
    (void)atexit(forget_parent);
    parent = open(parent_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0) {
        abort();
    }
}

/* Besides "." and "..", the one directory that was unpacked into must be all there is. */
static void check_outside(void)
{
    DIR *dir = opendir(parent_path);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, INSIDE) != 0) {
            abort();
        }
    }
    (void)closedir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct unpack_limits limits = { .max_bytes = 65536, .max_entries = 64, .max_depth = 16 };
    struct unpack_result result;
    struct remove_left left;
    int archive = memfd_create("archive", MFD_CLOEXEC);
    int inside;

    if (parent < 0) {
        open_parent();
    }
    if (archive < 0 || fd_write_full(archive, data, size) < 0 || lseek(archive, 0, SEEK_SET) < 0 ||
        mkdirat(parent, INSIDE, 0700) < 0) {
        abort();
    }
    inside = openat(parent, INSIDE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (unpack_into(inside, archive, &limits, &result, NULL) == 0 &&
        (result.entries > limits.max_entries || result.bytes > limits.max_bytes)) {
        abort();
    }
    fd_close(archive);
    fd_close(inside);
    check_outside();
    if (remove_tree(parent, INSIDE, NULL, &left) < 0) {
        abort();
    }
    return 0;
}
