/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memfiles: memory that processes hold through open memory files (memfd_create(2)), mapped or not.
 */
#ifndef KERND_BOX_MEMFILES_H
#define KERND_BOX_MEMFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/box/proctree.h"

#define MEMFILES_KNOWN_MAX 256

/* The result of a scan. */
struct memfiles {
    uint64_t device; /* of memory files (memfiles_device) */
    uint64_t bytes;
    size_t looks;                       /* descriptors looked at */
    uint64_t known[MEMFILES_KNOWN_MAX]; /* inodes of the files counted */
    size_t known_count;
};

/* Device number of the kernel's internal mount for shared memory; 0 unknown. */
uint64_t memfiles_device(void);

/*
 * Sums up the memory files that any of the processes has open, each file once. Looks at some
 * thousand descriptors at most, beginning with process number `first` of the tree: a caller that
 * changes it each time sees all in the end.
 */
void memfiles_scan(struct memfiles *files, const struct proctree *tree, size_t first);

/* Was the file with this inode counted? */
bool memfiles_has(const struct memfiles *files, uint64_t inode);

#endif
