/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: open, inherit and close listening sockets.
 * Owns: their descriptors and the paths of Unix sockets.
 * Threads: main.
 * May include: places.h, lib/base.
 */
#include "server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "server/places.h"

#define BACKLOG 511
#define DEFAULT_PORT "127.0.0.1:5376" /* 5-3-7-6 spells KERN on a telephone */
#define FIRST_INHERITED 3             /* SD_LISTEN_FDS_START of sd_listen_fds(3) */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

static int system_error(const char *text, struct err *err)
{
    int error = errno;

    (void)err_set(err, ERR_IO, error, "cannot listen on %.120s: %s", text, err_errno_text(error));
    return err_remedy(err, error == EADDRINUSE ? "stop the other server, or choose another "
                                                 "address with --listen (port 0: any free one)"
                                               : "choose another address with --listen");
}

/* What clients call the socket, from the socket itself. */
static void name_socket(struct listen_socket *socket)
{
    union address address = { .any = { .sa_family = AF_UNSPEC } };
    socklen_t size = sizeof(address);
    char text[INET6_ADDRSTRLEN] = "";

    (void)getsockname(socket->fd, &address.any, &size);
    socket->tcp = address.any.sa_family != AF_UNIX;
    if (address.any.sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &address.v4.sin_addr, text, sizeof(text));
        (void)snprintf(socket->name, sizeof(socket->name), "http://%s:%u", text,
                       ntohs(address.v4.sin_port));
    } else if (address.any.sa_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &address.v6.sin6_addr, text, sizeof(text));
        (void)snprintf(socket->name, sizeof(socket->name), "http://[%s]:%u", text,
                       ntohs(address.v6.sin6_port));
    } else {
        (void)snprintf(socket->name, sizeof(socket->name), "%.*s",
                       (int)sizeof(address.local.sun_path), address.local.sun_path);
    }
}

static void add(struct listen_set *set, int fd, bool unlinks)
{
    struct listen_socket *socket = &set->sockets[set->count++];

    *socket = (struct listen_socket){ .fd = fd, .unlinks = unlinks };
    name_socket(socket);
}

/* ---- inherited ---- */

unsigned listen_inherited_count(void)
{
    const char *pid_text = places_environment("LISTEN_PID");
    const char *count_text = places_environment("LISTEN_FDS");
    uint64_t pid = 0;
    uint64_t count = 0;

    if (pid_text == NULL || count_text == NULL || text_parse_u64(pid_text, &pid) < 0 ||
        text_parse_u64(count_text, &count) < 0 || pid != (uint64_t)getpid() || count > LISTEN_MAX) {
        return 0;
    }
    return (unsigned)count;
}

static int check_inherited(int fd, struct err *err)
{
    int listening = 0;
    int type = 0;
    socklen_t size = sizeof(int);

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) < 0 || listening == 0 ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_STREAM) {
        return err_set(err, ERR_BAD_VALUE, 0, "inherited descriptor %d is no listening socket", fd);
    }
    if (fd_set_nonblocking(fd, true) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        return err_set(err, ERR_IO, errno, "inherited descriptor %d: %s", fd,
                       err_errno_text(errno));
    }
    return 0;
}

int listen_inherit(struct listen_set *set, struct err *err)
{
    unsigned count = listen_inherited_count();

    places_forget("LISTEN_PID");
    places_forget("LISTEN_FDS");
    places_forget("LISTEN_FDNAMES");
    for (unsigned i = 0; i < count; i++) {
        int fd = FIRST_INHERITED + (int)i;

        if (check_inherited(fd, err) < 0) {
            return -1;
        }
        add(set, fd, false);
    }
    return 0;
}

/* ---- Unix ---- */

/* 0 when the path is free now: nothing there, or a socket that nobody listens on any more. */
static int clear_path(const union address *address, const char *text, struct err *err)
{
    const char *path = address->local.sun_path;
    struct stat status;
    CLEANUP_FD int probe = -1;

    if (lstat(path, &status) < 0) {
        return errno == ENOENT ? 0 : system_error(text, err);
    }
    if (!S_ISSOCK(status.st_mode)) {
        errno = EEXIST;
        return system_error(text, err);
    }
    probe = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe < 0) {
        return system_error(text, err);
    }
    if (connect(probe, &address->any, sizeof(address->local)) == 0 || errno != ECONNREFUSED) {
        errno = EADDRINUSE;
        return system_error(text, err);
    }
    return unlink(path) == 0 ? 0 : system_error(text, err);
}

static int parse_unix(const char *path, union address *ret_address, struct err *err)
{
    size_t length = strlen(path);

    if (path[0] != '/' || length >= sizeof(ret_address->local.sun_path)) {
        return err_set(err, ERR_BAD_VALUE, 0,
                       "a Unix socket needs an absolute path of at most %zu bytes",
                       sizeof(ret_address->local.sun_path) - 1);
    }
    *ret_address = (union address){ .local = { .sun_family = AF_UNIX } };
    memcpy(ret_address->local.sun_path, path, length + 1);
    return 0;
}

/* ---- TCP ---- */

static int parse_address(const char *host, uint16_t port, union address *ret_address)
{
    size_t length = strlen(host);
    char inner[INET6_ADDRSTRLEN] = "";

    *ret_address = (union address){ .v4 = { .sin_family = AF_INET, .sin_port = htons(port) } };
    if (inet_pton(AF_INET, text_equal(host, "localhost") ? "127.0.0.1" : host,
                  &ret_address->v4.sin_addr) == 1) {
        return 0;
    }
    if (host[0] != '[' || host[length - 1] != ']' || length - 2 >= sizeof(inner)) {
        return -1;
    }
    memcpy(inner, host + 1, length - 2);
    *ret_address = (union address){ .v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) } };
    return inet_pton(AF_INET6, inner, &ret_address->v6.sin6_addr) == 1 ? 0 : -1;
}

static int parse_tcp(const char *text, union address *ret_address, struct err *err)
{
    const char *colon = strrchr(text, ':');
    char host[INET6_ADDRSTRLEN + 2] = "";
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    uint64_t port = 0;

    if (length > 0 && length < sizeof(host)) {
        memcpy(host, text, length);
    }
    if (host[0] == '\0' || text_parse_u64(colon + 1, &port) < 0 || port > UINT16_MAX ||
        parse_address(host, (uint16_t)port, ret_address) < 0) {
        (void)err_set(err, ERR_BAD_VALUE, 0, "%.60s is no address to listen on", text);
        return err_remedy(err, "use 127.0.0.1:PORT, [::1]:PORT or unix:PATH");
    }
    return 0;
}

/* ---- both ---- */

static socklen_t address_size(const union address *address)
{
    switch (address->any.sa_family) {
    case AF_INET:
        return sizeof(address->v4);
    case AF_INET6:
        return sizeof(address->v6);
    default:
        return sizeof(address->local);
    }
}

/* A Unix socket has its mode from the umask at bind (unix(7)); a chmod afterwards leaves a gap. */
static int bind_privately(int fd, const union address *address)
{
    mode_t before = umask(0177);
    int result = bind(fd, &address->any, address_size(address));

    (void)umask(before);
    return result;
}

static int open_socket(const union address *address, const char *text, struct err *err)
{
    const int on = 1;
    CLEANUP_FD int fd =
        socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return system_error(text, err);
    }
    /* A restarted daemon binds although connections of the last one are in TIME_WAIT (tcp(7)). */
    if (address->any.sa_family != AF_UNIX) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    }
    if (address->any.sa_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    }
    if (bind_privately(fd, address) < 0 || listen(fd, BACKLOG) < 0) {
        return system_error(text, err);
    }
    return CLEANUP_TAKE_FD(fd);
}

int listen_open(struct listen_set *set, const char *text, struct err *err)
{
    bool is_unix = text_starts_with(text, "unix:");
    union address address = { .any = { .sa_family = AF_UNSPEC } };
    int fd;

    if (set->count == LISTEN_MAX) {
        return err_set(err, ERR_BAD_VALUE, 0, "more than %d sockets to listen on", LISTEN_MAX);
    }
    if (is_unix) {
        if (parse_unix(text + strlen("unix:"), &address, err) < 0 ||
            clear_path(&address, text, err) < 0) {
            return -1;
        }
    } else if (parse_tcp(text, &address, err) < 0) {
        return -1;
    }
    fd = open_socket(&address, text, err);
    if (fd < 0) {
        return -1;
    }
    add(set, fd, is_unix);
    return 0;
}

static bool has_unix_socket(const struct listen_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (!set->sockets[i].tcp) {
            return true;
        }
    }
    return false;
}

int listen_open_all(struct listen_set *set, const struct strv *addresses, const char *runtime_dir,
                    bool for_client, struct err *err)
{
    CLEANUP_FREE char *own = alloc_printf("unix:%s/kernd.sock", runtime_dir);
    bool is_default;

    if (listen_inherit(set, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < addresses->count; i++) {
        if (listen_open(set, addresses->items[i], err) < 0) {
            return -1;
        }
    }
    is_default = set->count == 0;
    if ((is_default || (for_client && !has_unix_socket(set))) && listen_open(set, own, err) < 0) {
        return -1;
    }
    return is_default ? listen_open(set, DEFAULT_PORT, err) : 0;
}

/*
 * shutdown(2) with SHUT_RD makes connect(2) of a Unix socket fail with ECONNREFUSED at once, while
 * accept(2) still gives what was queued (unix_stream_connect and unix_accept of Linux): there is no
 * moment at which a client is let in and then dropped. A TCP socket would drop its queue.
 */
void listen_shut(struct listen_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->sockets[i].unlinks) {
            (void)shutdown(set->sockets[i].fd, SHUT_RD);
            set->sockets[i].shut = true;
        }
    }
}

static int reopen(struct listen_socket *socket, struct err *err)
{
    union address address = { .any = { .sa_family = AF_UNSPEC } };
    int fd = -1;

    if (parse_unix(socket->name, &address, err) == 0) {
        (void)unlink(socket->name);
        fd = open_socket(&address, socket->name, err);
    }
    if (fd < 0) {
        return -1;
    }
    fd_close(socket->fd);
    socket->fd = fd;
    socket->shut = false;
    return 0;
}

int listen_reopen(struct listen_set *set, struct err *err)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->sockets[i].shut && reopen(&set->sockets[i], err) < 0) {
            return -1;
        }
    }
    return 0;
}

bool listen_is_local(const struct listen_socket *socket)
{
    return !socket->tcp || text_starts_with(socket->name, "http://127.") ||
           text_starts_with(socket->name, "http://[::1]:");
}

void listen_close(struct listen_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->sockets[i].unlinks) {
            (void)unlink(set->sockets[i].name);
        }
        fd_clear(&set->sockets[i].fd);
    }
    set->count = 0;
}
