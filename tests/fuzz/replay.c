/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: run one fuzz target over stored inputs, as an ordinary test.
 * Owns: main of the fuzz programs outside the fuzz variant.
 * Threads: one.
 * May include: anything.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"

#define LARGEST_INPUT ((size_t)16 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(const char *path)
{
    size_t size = 0;
    CLEANUP_FREE char *input = fd_read_file(path, LARGEST_INPUT, &size);
    CLEANUP_FREE uint8_t *exact = NULL;

    if (input == NULL) {
        (void)fprintf(stderr, "%s: %s\n", path, err_errno_text(errno));
        exit(2);
    }
    /* Without the NUL that follows, so that a sanitizer sees a read past the end. */
    exact = alloc_zero(size, 1);
    memcpy(exact, input, size);
    (void)LLVMFuzzerTestOneInput(exact, size);
}

static unsigned replay_folder(const char *folder)
{
    CLEANUP_DIR DIR *dir = opendir(folder);
    const struct dirent *entry = NULL;
    unsigned count = 0;

    if (dir == NULL) {
        (void)fprintf(stderr, "%s: %s\n", folder, err_errno_text(errno));
        exit(2);
    }
    while ((entry = readdir(dir)) != NULL) {
        CLEANUP_FREE char *path = alloc_printf("%s/%s", folder, entry->d_name);

        if (entry->d_type == DT_REG) {
            replay(path);
            count++;
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    unsigned count = 1;

    (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        count += replay_folder(argv[i]);
    }
    printf("%s: %u inputs replayed\n", argv[0], count);
    return 0;
}
