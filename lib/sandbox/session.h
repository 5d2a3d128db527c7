/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session: files that persist between calls, and the options those calls inherit.
 *
 * The row in the store is the session; memory holds only what is in use. Any thread but the event
 * one: calls here read and write the store. A caller that may not see a session is told it is not
 * there.
 */
#ifndef KERND_SANDBOX_SESSION_H
#define KERND_SANDBOX_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/sandbox/options.h"

struct execution;
struct session_entry;
struct sandbox;

/* Paths of a workspace that listings and censuses leave out: where setup installs packages. */
#define SESSION_DEPS ".deps"
extern const char *const session_hidden[2];

#define SESSION_ID_SIZE 65

enum session_state {
    SESSION_CREATING, /* its setup runs */
    SESSION_READY,
    SESSION_DELETING,
    SESSION_EXPIRED, /* its idle timeout or lifetime ran out; the files are gone */
};

const char *session_state_text(enum session_state state);
int session_state_parse(const char *text, enum session_state *ret_state);

/* Who asks: the fairness key, and whether it may see sessions of others. */
struct session_actor {
    uint64_t caller;
    bool all;
};

/* An execution of a session that has not ended. */
struct session_execution {
    char id[SESSION_ID_SIZE];
    const char *kind; /* as run_kind_text has it; not owned */
    bool queued;
    int64_t started_ms; /* wall clock, when its program began; 0: not yet */
};

/* A session as it is told; owned, session_view_done frees. */
struct session_view {
    char id[SESSION_ID_SIZE];
    enum session_state state;
    struct options options;
    bool owned; /* the workspace is kernd's own and goes with the session */
    int64_t created_ms;
    int64_t updated_ms;                   /* options, labels */
    int64_t used_ms;                      /* end of the last call, or a keepalive */
    int64_t expires_ms;                   /* 0: never */
    struct session_execution *executions; /* queued or running now, oldest first */
    size_t execution_count;
    size_t kernels;
    bool measured; /* the two below are known */
    uint64_t bytes;
    uint64_t files;
};
void session_view_done(struct session_view *view);

struct session_wanted {
    const char *id;          /* NULL: one is made */
    struct options *options; /* taken over */
    struct cancel *cancel;   /* of the unpacking of a snapshot; may be NULL */
};

struct session_created {
    struct session_view view;
    bool is_new;             /* false: the same id with the same options was there */
    struct execution *setup; /* NULL, or the running setup: one reference */
};

/*
 * Makes a session. With a setup command the session is CREATING until it ran. With a snapshot its
 * files are unpacked first, which takes as long as the disk does. -1: SESSION_EXISTS (same id,
 * other options), MOUNT_REFUSED, BAD_VALUE, NOT_SUPPORTED_HERE, LIMIT_EXCEEDS_MAXIMUM, STORE_FULL,
 * SNAPSHOT_NOT_FOUND, WORKSPACE_FULL, CANCELLED.
 */
int session_create(struct sandbox *sandbox, const struct session_actor *actor,
                   const struct session_wanted *wanted, struct session_created *ret,
                   struct err *err);

/*
 * measure: also count the workspace's bytes and files (a walk). Never renews the idle timer. -1
 * SESSION_NOT_FOUND, SESSION_EXPIRED.
 */
int session_get(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                bool measure, struct session_view *ret_view, struct err *err);

struct session_filter {
    size_t limit;       /* 1-1000 */
    const char *cursor; /* NULL: from the start; else what a page before gave */
    bool by_state;
    enum session_state state;
    const char *label; /* "key=value" or NULL */
};

struct session_page {
    struct session_view *items;
    size_t count;
    char *next_cursor; /* NULL at the end */
};
void session_page_done(struct session_page *page);

/* Newest first; expired ones only if asked for by state. -1 BAD_CURSOR. */
int session_list(struct sandbox *sandbox, const struct session_actor *actor,
                 const struct session_filter *filter, struct session_page *ret_page,
                 struct err *err);

/*
 * Replaces limits, env, labels, timers ... by the given options (made from session_get's and a
 * patch). options are taken over; engine, workspace, setup and mounts must be unchanged
 * (BAD_VALUE).
 */
int session_patch(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                  struct options *options, struct session_view *ret_view, struct err *err);

int session_keepalive(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                      struct session_view *ret_view, struct err *err);

/*
 * Cancels what runs, waits for it within the stop ladder, removes an owned workspace and the row.
 * 0 also when it is not there. -1 SESSION_BUSY when something would not end.
 */
int session_delete(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                   struct err *err);

struct session_fork_wanted {
    const char *from;
    const char *to;        /* NULL: an id is made */
    struct cancel *cancel; /* may be NULL */
};

/*
 * A new session with a copy of the files (reflinks where the file system has them). When it is
 * given up there is no new session: CANCELLED.
 */
int session_fork(struct sandbox *sandbox, const struct session_actor *actor,
                 const struct session_fork_wanted *wanted, struct session_view *ret_view,
                 struct err *err);

/*
 * Runs a setup command over the session: the one step with the network on, deadline at least 120 s.
 * The execution with one reference, or NULL.
 */
struct execution *session_setup(struct sandbox *sandbox, const struct session_actor *actor,
                                const char *id, const char *command, struct err *err);

/*
 * A hold keeps the session's workspace from being deleted while files are read or written.
 * root is open on the workspace. session_release in any case; `use` moves the idle timer (a write
 * is use, reading never is).
 */
struct session_hold;
int session_hold(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                 struct session_hold **ret_hold, struct err *err);
/* As session_hold, also while the session's setup still runs. */
int session_hold_creating(struct sandbox *sandbox, const struct session_actor *actor,
                          const char *id, struct session_hold **ret_hold, struct err *err);
bool session_hold_is_creating(const struct session_hold *hold);
const char *session_hold_id(const struct session_hold *hold);
const char *session_hold_path(const struct session_hold *hold); /* host path of the workspace */
struct session_entry *session_hold_entry(const struct session_hold *hold);
int session_hold_root(const struct session_hold *hold);
const struct options *session_hold_options(const struct session_hold *hold);
void session_release(struct session_hold *hold, bool use);

#endif
