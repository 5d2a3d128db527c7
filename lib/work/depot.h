/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depot: files named by what is in them, each once: the bytes of snapshots. Any thread.
 *
 *     depot_begin   a nameless file to write to, in the depot's directory
 *     depot_keep    under its digest; or just close it, and it is gone
 */
#ifndef KERND_WORK_DEPOT_H
#define KERND_WORK_DEPOT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

/* An absolute path; made with mode 0700 if missing. 0 and a descriptor for the caller to close. */
int depot_open(const char *path, int *ret_depot, struct err *err);

/* 0 and a descriptor, readable and writable, for the caller to close; -1 STORE_FULL, IO. */
int depot_begin(int depot, int *ret_fd, struct err *err);

/*
 * On disk (fsync) under this digest (64 hex digits of what was written). 0 also when such a file
 * was there already; -1 STORE_FULL, IO.
 */
int depot_keep(int depot, int fd, const char *digest, struct err *err);

/* For reading. 0, a descriptor for the caller to close and its size; -1 SNAPSHOT_NOT_FOUND, IO. */
int depot_get(int depot, const char *digest, int *ret_fd, uint64_t *ret_size, struct err *err);

/* Whoever reads it may go on. */
void depot_remove(int depot, const char *digest);

/* Calls visit for each digest, in no order; it may remove it. For the sweep at start. 0 or -1 IO.
 */
int depot_each(int depot, void (*visit)(void *context, const char *digest), void *context,
               struct err *err);

#endif
