/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executions: looking up, listing and ending executions by id, live ones and past ones. Any thread
 * but the event one. One that the actor may not see is not there.
 */
#ifndef KERND_SANDBOX_EXECUTIONS_H
#define KERND_SANDBOX_EXECUTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/sandbox/execution.h"
#include "lib/sandbox/session.h"

struct sandbox;

/* An execution as it is told; owned, executions_view_done frees. */
struct execution_view {
    char id[SESSION_ID_SIZE];
    char session_id[SESSION_ID_SIZE]; /* "": none */
    char kernel_id[SESSION_ID_SIZE];  /* "": none */
    char kind[16];
    enum execution_state state;
    long queue_position; /* executions before it; -1: not queued */
    int64_t created_ms;
    int64_t started_ms;  /* 0: not yet, or never */
    int64_t finished_ms; /* 0: not yet */
    uint64_t code_size;
    char code_sha256[65]; /* "": no code */
    bool has_exit_code;
    int exit_code;
    char fault[24];       /* "": none */
    char fingerprint[65]; /* of the request, "": none */
    struct buf document;  /* the JSON of a done one; empty: not done, not asked for, or expired */
};
void executions_view_done(struct execution_view *view);

/* 0, or -1 EXECUTION_NOT_FOUND. document: also read the document of a done one. */
int executions_get(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                   bool document, struct execution_view *ret_view, struct err *err);

/* Is there such an execution, and may the actor see it? 0, or -1 EXECUTION_NOT_FOUND. */
int executions_check(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                     struct err *err);

struct executions_filter {
    size_t limit;           /* 1-1000 */
    const char *cursor;     /* NULL: from the start */
    const char *session_id; /* NULL: any */
    bool by_state;
    enum execution_state state;
};

struct executions_page {
    struct execution_view *items; /* without documents */
    size_t count;
    char *next_cursor; /* NULL at the end */
};
void executions_page_done(struct executions_page *page);

/* Newest first. -1 BAD_CURSOR. */
int executions_list(struct sandbox *sandbox, const struct session_actor *actor,
                    const struct executions_filter *filter, struct executions_page *ret_page,
                    struct err *err);

/* A reference to one that is queued or running, NULL with EXECUTION_NOT_FOUND or EXECUTION_DONE. */
struct execution *executions_find_live(struct sandbox *sandbox, const struct session_actor *actor,
                                       const char *id, struct err *err);

/* Ends it. 0 also when it is done; -1 EXECUTION_NOT_FOUND. */
int executions_cancel(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                      struct err *err);

#endif
