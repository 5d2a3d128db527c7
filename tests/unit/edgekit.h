/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edgekit: one client connection to the server's own intake, lane, exchange and reply code, with a
 * handler of the test's in place of api's routes.
 */
#ifndef KERND_TESTS_UNIT_EDGEKIT_H
#define KERND_TESTS_UNIT_EDGEKIT_H

#include <stddef.h>

#include "api/route.h"
#include "server/edge.h"

extern struct edge edgekit_edge;

/* Starts it; uploads are spooled to that directory. The client's socket, or -1. */
int edgekit_start(const struct api_route *route, const char *spool_dir);

/* Ends everything and checks that no connection was left suspended, nothing buffered, and no
 * descriptor open. */
void edgekit_stop(void);

/* Sends all of it. 0 or -1. */
int edgekit_send(const void *data, size_t size);

/* Everything until this text has come or the connection ends; the caller frees. */
char *edgekit_receive(const char *end);

#endif
