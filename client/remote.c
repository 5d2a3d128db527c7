/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: find the server, connect, send requests.
 * Owns: the token's memory.
 * Threads: main.
 * May include: client, server/{connect,dial,places}.h, lib/base.
 */
#include "client/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/progress.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "server/dial.h"
#include "server/places.h"

#define HEAD_MAX ((size_t)64 << 10)
#define PIECE ((size_t)128 << 10)

/* ---- where ---- */

static int read_token(struct remote *remote, const char *path, struct err *err)
{
    if (path == NULL) {
        (void)err_set(err, ERR_BAD_VALUE, 0, "a server on TCP wants its token");
        return err_remedy(err, "name its file with --token-file or KERND_TOKEN_FILE");
    }
    remote->token = connect_read_token(path, err);
    return remote->token != NULL ? 0 : -1;
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
        return dial_read_url(url, &ret_remote->host, &ret_remote->port, err) < 0
                   ? -1
                   : read_token(ret_remote, token, err);
    }
    if (socket != NULL) {
        connect_at(&ret_remote->way, socket);
        return 0;
    }
    return connect_find(&ret_remote->way, 0, NULL, err);
}

static void forget_token(struct remote *remote)
{
    if (remote->token != NULL) {
        explicit_bzero(remote->token, strlen(remote->token));
    }
    free(remote->token);
    remote->token = NULL;
}

void remote_close(struct remote *remote)
{
    connect_done(&remote->way);
    free(remote->host);
    free(remote->port);
    forget_token(remote);
    *remote = (struct remote){ .host = NULL };
}

/* ---- connecting ---- */

/* The user's own server may listen on TCP alone, and wants its token then. */
static int dial_own(struct remote *remote, struct err *err)
{
    CLEANUP_FD int fd = connect_open(&remote->way, err);

    forget_token(remote);
    remote->token = fd >= 0 ? connect_token(&remote->way, err) : NULL;
    return err->code == ERR_NONE ? CLEANUP_TAKE_FD(fd) : -1;
}

int remote_dial(struct remote *remote, struct err *err)
{
    return remote->host == NULL ? dial_own(remote, err) : dial_tcp(remote->host, remote->port, err);
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
