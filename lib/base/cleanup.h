/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cleanup: scope-bound ownership (gcc/clang cleanup attribute) and explicit transfer.
 *
 *     CLEANUP_FREE char *text = alloc_text("x");
 *     CLEANUP_FD int fd = open(...);
 *     return CLEANUP_TAKE_FD(fd);        // the caller owns it now
 */
#ifndef KERND_BASE_CLEANUP_H
#define KERND_BASE_CLEANUP_H

#include <dirent.h>
#include <stdlib.h>

#include "lib/base/fd.h"

static inline void cleanup_free_ptr(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}

static inline void cleanup_fd_ptr(int *fd)
{
    fd_close(*fd);
}

static inline void cleanup_dir_ptr(DIR **dir)
{
    if (*dir != NULL) {
        (void)closedir(*dir);
    }
}

#define CLEANUP_FREE __attribute__((cleanup(cleanup_free_ptr)))
#define CLEANUP_FD __attribute__((cleanup(cleanup_fd_ptr)))
#define CLEANUP_DIR __attribute__((cleanup(cleanup_dir_ptr)))

/* Hands the value over and leaves an empty one behind, so that the cleanup does nothing. */
#define CLEANUP_TAKE(pointer)                         \
    __extension__({                                   \
        __typeof__(pointer) cleanup_taken_ = pointer; \
        (pointer) = NULL;                             \
        cleanup_taken_;                               \
    })
#define CLEANUP_TAKE_FD(fd)      \
    __extension__({              \
        int cleanup_taken_ = fd; \
        (fd) = -1;               \
        cleanup_taken_;          \
    })

#endif
