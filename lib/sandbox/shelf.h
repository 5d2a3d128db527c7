/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf: spares of one shape. For lib/sandbox/spares.c, under its lock.
 */
#ifndef KERND_SANDBOX_SHELF_H
#define KERND_SANDBOX_SHELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/pool.h"
#include "lib/sandbox/run.h"
#include "lib/sandbox/session.h"

struct boxing;
struct spare;
struct spares;

struct shelf {
    struct spares *spares;
    size_t references;                /* the list's and that of each boot under way */
    char session_id[SESSION_ID_SIZE]; /* "": calls without a session */
    char *workspace;                  /* of the session: host path */
    bool driver;                      /* its spares have a python driver up */
    bool deps;                        /* packages of the session were there to be found */
    struct run_request *like;         /* the shape */
    struct spare *first;
    size_t count;
    size_t booting;
    size_t target;
    size_t target_least; /* what the target falls back to */
    size_t target_most;  /* up to which it grows */
    bool filled;         /* a spare stood here before */
    size_t failures;     /* boots in a row that failed */
    int64_t used_ns;
    bool closed; /* what boots now is not wanted any more */
    struct shelf *next;
};

/* Can calls like this one have spares at all? Pure. */
bool shelf_fits_any(const struct boxing *boxing);

/* Is this the shelf of this call? Looks at the session's directory. */
bool shelf_fits(const struct shelf *shelf, const struct boxing *boxing);

/* A shelf for calls like this one, with one reference. */
struct shelf *shelf_new(struct spares *spares, const struct boxing *boxing);

/* A call found nothing: more are kept, if that is for want of them. */
void shelf_missed(struct shelf *shelf);

/* Nobody came for a while: back to the first target. The surplus, in one chain, is the caller's. */
struct spare *shelf_shrink(struct shelf *shelf);

/* Gives one reference back, under the lock of the spares. */
void shelf_release(struct shelf *shelf);

#endif
