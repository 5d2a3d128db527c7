/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote: the server that the commands talk to. For one thread.
 */
#ifndef KERND_CLIENT_REMOTE_H
#define KERND_CLIENT_REMOTE_H

#include <stdint.h>

#include "client/flags.h"
#include "lib/base/err.h"
#include "server/connect.h"

struct remote {
    struct connect way; /* without a host */
    char *host;         /* of --url; NULL: a Unix socket */
    char *port;
    char *token; /* NULL: none is wanted */
};

/*
 * From --url, --socket, KERND_URL, KERND_SOCKET, in this order; else the user's own server, which
 * is started when it is needed. Connects to nothing yet. 0, or -1 with err. remote_close in any
 * case.
 */
int remote_open(const struct flags *options, struct remote *ret_remote, struct err *err);
void remote_close(struct remote *remote);

/* A blocking connection, -1 with err. */
int remote_dial(struct remote *remote, struct err *err);

/* As much as there is of a request (HTTP/1.1, RFC 9112). */
struct remote_request {
    const char *method;
    const char *target; /* path and query, encoded */
    const char *accept; /* NULL: application/json */
    uint64_t from;      /* only the bytes of the answer from here on (Range) */
    const char *type;   /* of the body, NULL: there is none */
    const void *body;
    uint64_t size;        /* of body or file */
    int file;             /* the body, from its present offset, where body is NULL */
    const char *progress; /* tell the user of a long upload under this name; NULL: don't */
};

/*
 * Sends a whole request over a connection, which the server closes behind its answer. 0, also when
 * the server closes early (its answer tells why), or -1 with err.
 */
int remote_send(const struct remote *remote, int fd, const struct remote_request *request,
                struct err *err);

#endif
