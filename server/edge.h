/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edge: what all connections and exchanges of the server share. A plain struct; http.c fills it.
 *
 * Lock order: the loop's, under which libmicrohttpd and so all its callbacks run, edge.lock, then
 * an exchange's lock, then the hang-up table's. None but the loop's is held across a call into api,
 * except that hold of the hang-up table takes a reference (no lock).
 */
#ifndef KERND_SERVER_EDGE_H
#define KERND_SERVER_EDGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/strv.h"

struct alarm;
struct api;
struct connection;
struct hangup;
struct loop;
struct pool;
struct token;

struct edge {
    /* Set before the event thread starts, then constant. */
    struct api *api;
    struct pool *lane; /* the quick lane */
    const struct token *token;
    const struct strv *hosts;
    struct hangup *hangup;
    struct alarm *alarm;
    struct loop *loop; /* before the first connection */
    const char *spool_dir;
    uint64_t upload_max; /* bytes of one uploaded file */
    size_t connections_max;
    double request_timeout_s;
    /* The list, and the `exchange` of every connection in it. */
    pthread_mutex_t lock;
    struct connection *connections;
    atomic_size_t connection_count; /* from the accept until libmicrohttpd has closed it */
    atomic_size_t exchanges;        /* begun and not completed */
    atomic_size_t suspended;        /* connections that libmicrohttpd must not be stopped with */
    atomic_size_t buffered;         /* bytes of request bodies in memory */
    atomic_bool draining;           /* new requests are refused */
    atomic_bool stopping;           /* whoever begins to wait is cancelled at once; streams end */
};

#endif
