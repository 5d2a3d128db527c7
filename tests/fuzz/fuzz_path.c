/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a client sends as a path: refused, or something that stays below the workspace. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/work/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *path)
{
    size_t length = strlen(path);
    char *again = NULL;

    if (length == 0 || length > PATH_BYTES_MAX || path[0] == '/' || path[length - 1] == '/' ||
        strstr(path, "//") != NULL || strcmp(path, "..") == 0 || strncmp(path, "../", 3) == 0 ||
        strstr(path, "/../") != NULL || (length >= 3 && strcmp(path + length - 3, "/..") == 0)) {
        abort();
    }
    /* What was parsed once means the same when it is parsed again. */
    if (path_parse_directory(path, length, &again, NULL) < 0 || strcmp(path, again) != 0) {
        abort();
    }
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *path = NULL;

    if (path_parse((const char *)data, size, &path, NULL) == 0) {
        check(path);
        free(path);
    }
    path = NULL;
    if (path_parse_directory((const char *)data, size, &path, NULL) == 0) {
        check(path);
        free(path);
    }
    return 0;
}
