/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope: sees to it, at start, that the daemon runs in a cgroup of its own, below which it can make
 * one for each box. Best effort: where it can't be had, limits are kept by other means and every
 * answer says so.
 */
#ifndef KERND_SERVER_SCOPE_H
#define KERND_SERVER_SCOPE_H

#include "server/privilege.h"

/*
 * As root: makes a child of the cgroup it is in, where that is a container's own or was delegated
 * to it, gives it to the account and enters it; to be called before root is given away. As anybody
 * else: asks the user's systemd for a scope with Delegate=yes (org.freedesktop.systemd1(5)), unless
 * the cgroup is the daemon's own already. Waits two seconds at most.
 */
void scope_enter(const struct privilege_account *account);

#endif
