/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer: who is at the other end of a Unix connection.
 */
#ifndef KERND_BOX_PEER_H
#define KERND_BOX_PEER_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Was the connection made by a process in the same pid namespace as `init`, the first one there (a
 * host pid)? By the parent of who connected, where the kernel tells it of a pidfd (linux 6.13) and
 * it is `init`; else by SO_PEERCRED and /proc/PID/ns/pid, which the creator of a user namespace may
 * read (user_namespaces(7)). False when the peer is gone.
 */
bool peer_in_box(int connection, pid_t init);

#endif
