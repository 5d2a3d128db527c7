/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial: blocking connections to a server, by the path of its Unix socket or by host and port. For
 * one thread.
 */
#ifndef KERND_SERVER_DIAL_H
#define KERND_SERVER_DIAL_H

#include "lib/base/err.h"

/*
 * The parts of "http://HOST[:PORT][/]", both fresh; an IPv6 address keeps its brackets, the port
 * that is left out is kernd's own. 0, or -1 with err: BAD_VALUE with a remedy.
 */
int dial_read_url(const char *url, char **ret_host, char **ret_port, struct err *err);

/* The descriptor, or -1 with errno; ENAMETOOLONG for a path that no address holds (unix(7)). */
int dial_unix(const char *path);

/* The descriptor, or -1 with err and a remedy. All addresses of the host are tried. */
int dial_tcp(const char *host, const char *port, struct err *err);

#endif
