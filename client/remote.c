/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: find the server, connect, send requests.
 * Owns: the token's memory.
 * Threads: main.
 * May include: client, server/connect.h, server/places.h, lib/base.
 */
#include "client/remote.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/progress.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "server/places.h"

#define TOKEN_FILE_MAX 4096
#define HEAD_MAX ((size_t)64 << 10)
#define PIECE ((size_t)128 << 10)
#define DEFAULT_PORT "5376"

/* ---- where ---- */

static int read_token(struct remote *remote, const char *path, struct err *err)
{
    if (path == NULL) {
        (void)err_set(err, ERR_BAD_VALUE, 0, "a server on TCP wants its token");
        return err_remedy(err, "name its file with --token-file or KERND_TOKEN_FILE");
    }
    remote->token = fd_read_file(path, TOKEN_FILE_MAX, NULL);
    if (remote->token == NULL) {
        (void)err_set(err, ERR_IO, errno, "the token file %.150s: %s", path, err_errno_text(errno));
        return err_remedy(err, "kernd serve tells its token file when it starts");
    }
    remote->token[strcspn(remote->token, "\r\n")] = '\0';
    return 0;
}

/* "http://HOST[:PORT][/]", the host perhaps in brackets. */
static int read_url(struct remote *remote, const char *url, struct err *err)
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
    remote->host = alloc_copy(host, length);
    remote->port = host[length] == ':'
                       ? alloc_copy(host + length + 1, strcspn(host + length + 1, "/"))
                       : alloc_text(DEFAULT_PORT);
    return 0;
}

int remote_open(const struct flags *options, struct remote *ret_remote, struct err *err)
{
    const char *url = flags_value(options, "url");
    const char *socket = flags_value(options, "socket");
    const char *token = flags_value(options, "token-file");

    *ret_remote = (struct remote){ .host = NULL };
    if (url == NULL && socket == NULL) {
        url = places_environment("KERND_URL");
        socket = places_environment("KERND_SOCKET");
    }
    if (url != NULL) {
        token = token == NULL ? places_environment("KERND_TOKEN_FILE") : token;
        return read_url(ret_remote, url, err) < 0 ? -1 : read_token(ret_remote, token, err);
    }
    if (socket != NULL) {
        connect_at(&ret_remote->way, socket);
        return 0;
    }
    return connect_find(&ret_remote->way, 0, NULL, err);
}

void remote_close(struct remote *remote)
{
    connect_done(&remote->way);
    free(remote->host);
    free(remote->port);
    if (remote->token != NULL) {
        explicit_bzero(remote->token, strlen(remote->token));
    }
    free(remote->token);
    *remote = (struct remote){ .host = NULL };
}

/* ---- connecting ---- */

static int dial_tcp(const struct remote *remote, struct err *err)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC };
    const size_t length = strlen(remote->host);
    const bool brackets = remote->host[0] == '[' && length > 2;
    CLEANUP_FREE char *name =
        brackets ? alloc_copy(remote->host + 1, length - 2) : alloc_text(remote->host);
    struct addrinfo *found = NULL;
    int failed = 0;
    int fd = -1;

    if (getaddrinfo(name, remote->port, &hints, &found) != 0) {
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
    (void)err_set(err, ERR_IO, failed, "no connection to %.100s:%.10s: %s", remote->host,
                  remote->port, err_errno_text(failed));
    return err_remedy(err, "start a server there: kernd serve --listen %.100s:%.10s", remote->host,
                      remote->port);
}

int remote_dial(const struct remote *remote, struct err *err)
{
    return remote->host == NULL ? connect_open(&remote->way, err) : dial_tcp(remote, err);
}

/* ---- sending ---- */

/* False: the other side takes no more, or err is set. */
static bool send_all(int fd, const char *data, size_t size, struct err *err)
{
    while (size > 0) {
        const ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0) {
            if (errno != EPIPE && errno != ECONNRESET) {
                (void)err_set(err, ERR_IO, errno, "sending to the server: %s",
                              err_errno_text(errno));
            }
            return false;
        }
        data += sent;
        size -= (size_t)sent;
    }
    return true;
}

static int send_file(int fd, const struct remote_request *request, struct err *err)
{
    CLEANUP_FREE char *piece = alloc_zero(1, PIECE);
    struct progress progress;
    uint64_t left = request->size;

    progress_begin(&progress, request->progress, request->size);
    while (left > 0) {
        const ssize_t got = read(request->file, piece, left < PIECE ? (size_t)left : PIECE);

        if (got <= 0) {
            progress_end(&progress);
            return err_set(err, ERR_IO, got < 0 ? errno : 0, "the file became shorter, or: %s",
                           err_errno_text(errno));
        }
        if (!send_all(fd, piece, (size_t)got, err)) {
            break;
        }
        left -= (uint64_t)got;
        progress_moved(&progress, request->size - left);
    }
    progress_end(&progress);
    return err->code == ERR_NONE ? 0 : -1;
}

int remote_send(const struct remote *remote, int fd, const struct remote_request *request,
                struct err *err)
{
    CLEANUP_BUF struct buf head = BUF_INIT(HEAD_MAX);
    bool fits;

    (void)buf_printf(&head, "%s ", request->method);
    fits = buf_append_text(&head, request->target) == 0;
    (void)buf_printf(&head, " HTTP/1.1\r\nHost: %s%s%s\r\nConnection: close\r\nAccept: %s\r\n",
                     remote->host == NULL ? "localhost" : remote->host,
                     remote->host == NULL ? "" : ":", remote->host == NULL ? "" : remote->port,
                     request->accept == NULL ? "application/json" : request->accept);
    if (remote->token != NULL) {
        (void)buf_printf(&head, "Authorization: Bearer %s\r\n", remote->token);
    }
    if (request->from > 0) {
        (void)buf_printf(&head, "Range: bytes=%llu-\r\n", (unsigned long long)request->from);
    }
    if (request->type != NULL) {
        (void)buf_printf(&head, "Content-Type: %s\r\nContent-Length: %llu\r\n", request->type,
                         (unsigned long long)request->size);
    }
    if (!fits || buf_append_text(&head, "\r\n") < 0) {
        return err_set(err, ERR_URI_TOO_LONG, 0, "the request is too long");
    }
    if (!send_all(fd, head.data, head.size, err)) {
        return err->code == ERR_NONE ? 0 : -1;
    }
    if (request->type == NULL || request->size == 0) {
        return 0;
    }
    if (request->body == NULL) {
        return send_file(fd, request, err);
    }
    (void)send_all(fd, request->body, (size_t)request->size, err);
    return err->code == ERR_NONE ? 0 : -1;
}
