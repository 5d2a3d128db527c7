/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place: the workspace a call runs over: what is put in before, what is told and fetched after.
 */
#ifndef KERND_SANDBOX_PLACE_H
#define KERND_SANDBOX_PLACE_H

#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/sandbox/run.h"
#include "lib/work/blanks.h"

struct sandbox;

/* At most this much comes back by fetchFiles, each and in all. */
#define PLACE_FETCH_MAX ((size_t)64 << 20)

/* A result names at most this many changed files. */
#define PLACE_CHANGES_MAX ((size_t)10000)

/* Names of the workspaces of calls that have none of their own. */
#define PLACE_FRESH_PREFIX "call-"

struct place {
    struct sandbox *sandbox;
    struct blank blank; /* an owned directory, if it has a name */
    char *path;         /* host path */
    int root;           /* the same, open */
    bool borrowed;      /* path and root are a session's */
    bool unsure;        /* a box over it ended, and perhaps not wholly */
    struct scan *before;
};

/*
 * Normalises the paths of `files` and `fetchFiles` of a request. 0, or -1 BAD_PATH with a pointer.
 * Pure; done before anything is queued.
 */
int place_check(struct run_request *request, struct err *err);

/* An empty directory for one call. 0 or -1 STORE_FULL, IO. place_close in any case. */
int place_open_fresh(struct sandbox *sandbox, struct place *ret_place, struct err *err);

/* The workspace of the session that is held; it stays the session's. */
void place_open_session(struct sandbox *sandbox, const struct session_hold *hold,
                        struct place *ret_place);

/* A caller's host directory, resolved. 0, or -1 CONFLICT when it is not there any more. */
int place_open_host(struct sandbox *sandbox, const char *path, struct place *ret_place,
                    struct err *err);

/*
 * Has nobody written to it before the program? False when it is not known, as of a place that is
 * not the call's alone. A box that was started ahead has run no code of a caller, but what an
 * environment installed.
 */
bool place_is_empty(const struct place *place, const struct run_request *request);

/*
 * Writes the request's files and, if wanted, takes the census to compare with. 0, or -1:
 * WORKSPACE_FULL if it is above its diskMb, or as put.h and scan.h say.
 */
int place_prepare(struct place *place, const struct run_request *request, struct err *err);

/*
 * To be called when the box is up, before what runs in it gets anything of the call: what is
 * written from here on is seen (blanks.h).
 */
void place_begin(struct place *place, const struct run_request *request);

/* After the box is gone: changed files and fetched files into the result. Never fails. */
void place_collect(struct place *place, const struct run_request *request,
                   struct run_result *result);

/*
 * Removes a fresh directory (what can't be removed waits in the trash), or keeps it for another
 * call if it is untouched and `unreachable`: every process of the boxes over it is gone. Frees.
 */
void place_close(struct place *place, bool unreachable);

#endif
