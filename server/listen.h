/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen: the sockets that clients come to: TCP, Unix, and inherited from a service manager.
 * Main thread.
 */
#ifndef KERND_SERVER_LISTEN_H
#define KERND_SERVER_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "lib/base/err.h"
#include "lib/base/strv.h"

#define LISTEN_MAX 16

struct listen_socket {
    int fd;
    bool tcp;
    char name[160]; /* "http://127.0.0.1:5376", or the path of the Unix socket */
    bool unlinks;   /* we made the path, we remove it */
    bool shut;
};

struct listen_set {
    struct listen_socket sockets[LISTEN_MAX];
    size_t count;
};

/*
 * Adds the sockets of sd_listen_fds(3) (LISTEN_PID, LISTEN_FDS; the variables are taken out of the
 * environment). 0 (also when there are none), or -1 for one that is no listening stream socket.
 */
int listen_inherit(struct listen_set *set, struct err *err);

/* How many descriptors from 3 up were inherited that way; asked before listen_inherit. */
unsigned listen_inherited_count(void);

/*
 * Opens "unix:PATH", "A.B.C.D:PORT", "[V6]:PORT" or "localhost:PORT" and adds it. Port 0: the
 * kernel chooses, name tells. A Unix socket is made 0600; one left behind
 * is replaced only if nobody listens on it. -1 with err: bad text, in use, or the system's word.
 */
int listen_open(struct listen_set *set, const char *text, struct err *err);

/*
 * All of a daemon: those that are inherited and these addresses; when there are none, kernd.sock in
 * its runtime directory and 127.0.0.1:5376. A client that starts a server comes by that socket,
 * whatever else the settings name: for_client opens it beside TCP, too. 0, or -1 with err.
 */
int listen_open_all(struct listen_set *set, const struct strv *addresses, const char *runtime_dir,
                    bool for_client, struct err *err);

/* Is the address one that only this machine reaches? For a warning. */
bool listen_is_local(const struct listen_socket *socket);

/*
 * From now on nobody gets in by the Unix sockets that listen_open made; who is in their queues
 * already can still be accepted. Inherited sockets stay open for the next daemon. listen_reopen
 * makes new ones at the same paths. -1 with err: a path can't be had again.
 */
void listen_shut(struct listen_set *set);
int listen_reopen(struct listen_set *set, struct err *err);

/* Closes all and removes the paths that listen_open made. */
void listen_close(struct listen_set *set);

#endif
