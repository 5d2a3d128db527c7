/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer: who is at the other end of a Unix connection.
 */
#ifndef KERND_BOX_PEER_H
#define KERND_BOX_PEER_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Was the connection made by a process in the same pid namespace as `init` (a host pid)? By
 * SO_PEERCRED and /proc/PID/ns/pid, which the creator of a user namespace may read
 * (user_namespaces(7)). False when the peer is gone.
 */
bool peer_in_box(int connection, pid_t init);

#endif
