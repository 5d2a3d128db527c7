/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environments: what sessions and calls start from, paid for once (environments_make.h builds
 * them).
 *
 * An environment is a directory that its setup filled, shown read-only in each box that uses it,
 * and a list of modules that interpreters which are booted ahead import. It has an id, made of all
 * that its content depends on, and may have a name. All callers have the same ones. Any thread but
 * the event one. Lock order: the making of sessions, then environments, then the store.
 */
#ifndef KERND_SANDBOX_ENVIRONMENTS_H
#define KERND_SANDBOX_ENVIRONMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/sandbox/environment_spec.h"

struct environments;
struct sandbox;

/* Sweeps what a killed server left: builds become failed ones. NULL with err. */
struct environments *environments_open(struct sandbox *sandbox, const char *state_dir,
                                       struct err *err);
void environments_close(struct environments *environments); /* NULL is fine */

/*
 * A build whose setup succeeded ends with exit code 1 and a last line with this behind the name of
 * the module that could not be imported.
 */
#define ENVIRONMENTS_NOT_PRELOADED " can not be preloaded: "

enum environments_state { ENVIRONMENTS_BUILDING, ENVIRONMENTS_READY, ENVIRONMENTS_FAILED };
const char *environments_state_text(enum environments_state state);

/* Owned; environments_view_done frees. */
struct environments_view {
    char id[ENVIRONMENT_SPEC_ID_SIZE];
    char name[ENVIRONMENT_SPEC_ID_SIZE]; /* "": none */
    enum environments_state state;
    struct environment_spec spec;
    char execution_id[ENVIRONMENT_SPEC_ID_SIZE]; /* that built it, or does; "": none */
    uint64_t bytes;                              /* of its files */
    int64_t created_ms;
};
void environments_view_done(struct environments_view *view);

/* By id or name. 0, or -1 ENVIRONMENT_NOT_FOUND. */
int environments_get(struct sandbox *sandbox, const char *id, struct environments_view *ret_view,
                     struct err *err);

struct environments_page {
    struct environments_view *items;
    size_t count;
    char *next_cursor; /* NULL at the end */
};
void environments_page_done(struct environments_page *page);

/* Newest first; limit 1-1000, cursor NULL: from the start. -1 BAD_CURSOR. */
int environments_list(struct sandbox *sandbox, size_t limit, const char *cursor,
                      struct environments_page *ret_page, struct err *err);

/*
 * What its build wrote, open for reading, for the caller to close. 0, or -1 ENVIRONMENT_NOT_FOUND,
 * CONFLICT while it is built, FILE_NOT_FOUND when the server was ended during the build.
 */
int environments_log(struct sandbox *sandbox, const char *id, int *ret_file, uint64_t *ret_size,
                     struct err *err);

/* 0 also when it is not there. -1 CONFLICT while it is built, or a session or call uses it. */
int environments_delete(struct sandbox *sandbox, const char *id, struct err *err);

/* Is it there? 0, or -1 ENVIRONMENT_NOT_FOUND. With sessions.making held it stays there. */
int environments_check(struct sandbox *sandbox, const char *id, struct err *err);

/* Host path below which they all lie; borrowed. */
const char *environments_parent(const struct environments *environments);

/* Host path of its directory, a fresh string. */
char *environments_path(const struct environments *environments, const char *id);

/* Open directory below which they lie and are thrown away (lib/work/workspace.h). */
int environments_directory(const struct environments *environments);

#endif
