/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: connect to a Unix socket, or to a host and a port.
 * Owns: nothing.
 * Threads: one.
 * May include: lib/base.
 */
#include "server/dial.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"

#define DEFAULT_PORT "5376"

int dial_read_url(const char *url, char **ret_host, char **ret_port, struct err *err)
{
    static const char scheme[] = "http://";
    const char *host = url + sizeof(scheme) - 1;
    const char *end;
    size_t length;

    if (!text_starts_with(url, scheme) || host[0] == '\0') {
        (void)err_set(err, ERR_BAD_VALUE, 0, "%.100s is no URL of a server", url);
        return err_remedy(err, "write http://HOST:PORT, as kernd serve prints it");
    }
    end = host[0] == '[' ? strchr(host, ']') : NULL;
    end = end == NULL ? host : end + 1;
    length = (size_t)(end - host) + strcspn(end, ":/");
    *ret_host = alloc_copy(host, length);
    *ret_port = host[length] == ':' ? alloc_copy(host + length + 1, strcspn(host + length + 1, "/"))
                                    : alloc_text(DEFAULT_PORT);
    return 0;
}

int dial_unix(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int failed;
    int fd;

    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
        return fd;
    }
    failed = errno;
    fd_close(fd);
    errno = failed;
    return -1;
}

int dial_tcp(const char *host, const char *port, struct err *err)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC };
    const size_t length = strlen(host);
    const bool brackets = host[0] == '[' && length > 2;
    CLEANUP_FREE char *name = brackets ? alloc_copy(host + 1, length - 2) : alloc_text(host);
    struct addrinfo *found = NULL;
    int failed = 0;
    int fd = -1;

    if (getaddrinfo(name, port, &hints, &found) != 0) {
        return err_set(err, ERR_IO, 0, "there is no host %.100s", name);
    }
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) < 0) {
            failed = errno;
            fd_clear(&fd);
        }
    }
    freeaddrinfo(found);
    if (fd >= 0) {
        return fd;
    }
    (void)err_set(err, ERR_IO, failed, "no connection to %.100s:%.10s: %s", host, port,
                  err_errno_text(failed));
    return err_remedy(err, "start a server there: kernd serve --listen %.100s:%.10s", host, port);
}
