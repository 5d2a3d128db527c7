/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: speak the datagram protocol of sd_notify(3), which needs no library.
 * Owns: nothing.
 * Threads: main.
 * May include: places.h, lib/base.
 */
#include "server/notify.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "server/places.h"

void notify_send(const char *state)
{
    const char *path = places_environment("NOTIFY_SOCKET");
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t length = path != NULL ? strlen(path) : 0;
    CLEANUP_FD int fd = -1;

    if (length < 2 || length >= sizeof(address.sun_path)) {
        return;
    }
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') { /* the abstract name space (unix(7)) */
        address.sun_path[0] = '\0';
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    }
}
