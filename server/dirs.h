/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dirs: private directories, and the lock that makes one daemon the owner of a state directory.
 */
#ifndef KERND_SERVER_DIRS_H
#define KERND_SERVER_DIRS_H

#include <sys/types.h>

#include "lib/base/err.h"

/*
 * Makes an absolute path a directory of mode 0700 owned by uid and gid, with missing parents (0700
 * for the same owner). An existing directory must belong to uid and be closed to others: its mode
 * is not changed behind its owner's back. No symlink is followed in the last component. 0, or -1
 * with err.
 */
int dirs_make_private(const char *path, uid_t uid, gid_t gid, struct err *err);

/*
 * Locks a state directory (flock(2) on its file `lock`, which holds the owner's pid). The
 * descriptor is the lock: it ends with the process. -1 with err CONFLICT naming the pid that has
 * it, after waiting so long for its end (milliseconds, 0: not at all) or until SIGTERM or SIGINT is
 * pending.
 */
int dirs_lock(const char *state_dir, int wait_ms, struct err *err);

/*
 * The process that holds the lock, 0: none. Another may hold it a moment later.
 */
pid_t dirs_lock_owner(const char *state_dir);

#endif
