/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect: the way to the user's own server: where it listens, and a server where there is none
 * yet. For one thread.
 */
#ifndef KERND_SERVER_CONNECT_H
#define KERND_SERVER_CONNECT_H

#include <stdbool.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/strv.h"

struct connect {
    char *socket;
    char *url;         /* of a server that listens on TCP alone, once it was reached there */
    char *token;       /* the file of its token; NULL: not known */
    char *state_dir;   /* NULL: not known */
    char *runtime_dir; /* the same */
    char *log;         /* of a server that is started; NULL: none is */
    struct strv serve; /* its arguments; it ends when it is idle (idle.h) */
    bool idle_exit_given;
};

/*
 * Where a server with these options of `kernd serve` listens, and how it is started. Makes its
 * state directory, for the log. 0, or -1 with err: BAD_VALUE with a remedy for options that it
 * would refuse. connect_done in any case.
 */
int connect_find(struct connect *way, int count, char *const *options, struct err *err);

/* At this socket, and nowhere else: no server is started. */
void connect_at(struct connect *way, const char *socket);

void connect_done(struct connect *way);

/*
 * A blocking connection to whoever listens at the socket; where nobody does, to the server of these
 * directories that says it listens elsewhere: at another socket, or on TCP alone, and then
 * way->url tells where. -1 with errno. Starts nothing.
 */
int connect_try(struct connect *way);

/*
 * A blocking connection, as connect_try. Where nobody listens a server is started, detached, its
 * output in the log, and waited for, at most 20 s. -1 with err and a remedy.
 */
int connect_open(struct connect *way, struct err *err);

/* The token in a file, fresh, to be wiped; NULL with err and a remedy. */
char *connect_read_token(const char *path, struct err *err);

/*
 * The token that a server on TCP wants, fresh, to be wiped; NULL, without err, where the socket
 * tells the server who its peer is. NULL with err where it can't be read.
 */
char *connect_token(const struct connect *way, struct err *err);

/* Appends the header field with that token and its line break, or nothing. 0, or -1 with err. */
int connect_authorize(const struct connect *way, struct buf *headers, struct err *err);

#endif
