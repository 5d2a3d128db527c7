/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: tell whether a connection comes from a box.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/box/peer.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* "pid:[4026532345]", or false. */
static bool pid_namespace(pid_t pid, char *text, size_t size)
{
    char path[64];
    ssize_t got = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
    got = readlink(path, text, size - 1);
    if (got <= 0) {
        return false;
    }
    text[got] = '\0';
    return true;
}

bool peer_in_box(int connection, pid_t init)
{
    struct ucred peer = { 0 };
    socklen_t size = sizeof(peer);
    char theirs[64];
    char the_box[64];

    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0 &&
           pid_namespace(peer.pid, theirs, sizeof(theirs)) &&
           pid_namespace(init, the_box, sizeof(the_box)) && strcmp(theirs, the_box) == 0;
}
