/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privilege: from root to an unprivileged account, for good.
 */
#ifndef KERND_SERVER_PRIVILEGE_H
#define KERND_SERVER_PRIVILEGE_H

#include <sys/types.h>

#include "lib/base/err.h"

struct privilege_account {
    char name[64];
    char home[256];
    uid_t uid;
    gid_t gid;
};

/* Looks an account up. 0, or -1: unknown, or root in disguise (uid 0). */
int privilege_lookup(const char *name, struct privilege_account *ret_account, struct err *err);

/* The account the process runs as; "" and "/" where the system knows no name or home. */
void privilege_current(struct privilege_account *ret_account);

/*
 * Becomes the account: no supplementary groups, real, effective and saved ids, no capability, and
 * checks that there is no way back. The process must be single-threaded and root. 0, or -1 with
 * err; after -1 it must not go on.
 */
int privilege_drop(const struct privilege_account *account, struct err *err);

#endif
