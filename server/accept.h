/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accept: admission of clients, before a byte of theirs is read.
 */
#ifndef KERND_SERVER_ACCEPT_H
#define KERND_SERVER_ACCEPT_H

#include "server/edge.h"

/* As http_accept (http.h). */
int accept_clients(struct edge *edge, int listener);

#endif
