/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask: one command's talk with the server: questions, answers, and what went wrong. For one thread.
 *
 * Functions return -1 with the failure kept in the ask; ask_end tells it to the user, once.
 */
#ifndef KERND_CLIENT_ASK_H
#define KERND_CLIENT_ASK_H

#include <stdbool.h>
#include <stddef.h>

#include "api/json_view.h"
#include "client/answer.h"
#include "client/flags.h"
#include "client/remote.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

#define ASK_TARGET_MAX ((size_t)32 << 10)
#define ASK_BODY_MAX ((size_t)64 << 20)

struct ask {
    const struct flags *options; /* borrowed */
    bool json;                   /* --json */
    struct remote remote;
    int status; /* of the last answer, 0: there was none */
    struct err err;
    struct buf problem; /* as the server wrote it */
};

/* 0 or -1. ask_end in any case. */
int ask_begin(struct ask *ask, const struct flags *options);

/*
 * Tells a failure: a line on standard error, or with --json a problem on standard output. Returns
 * the exit status: result itself, or COMMAND_FAILED where it is -1.
 */
int ask_end(struct ask *ask, int result);

/*
 * Sends and waits for the head of the answer. A status from 400 on is a failure, whose problem is
 * read. answer_close in any case.
 */
int ask_open(struct ask *ask, const struct remote_request *request, struct answer *answer);

/* Reads the problem of an answer that was opened elsewhere. Returns -1. */
int ask_refused(struct ask *ask, struct answer *answer);

/* The same, and all of the body appended to out (may be NULL). Returns the status. */
int ask_text(struct ask *ask, const struct remote_request *request, struct buf *out);

/* With a JSON body (NULL: none); *ret_tree is the caller's, NULL where the answer has no body. */
int ask_call(struct ask *ask, const char *method, const char *target, const struct buf *body,
             struct json_object **ret_tree);

/* Writes to standard output; a reader that has gone ends the process (SIGPIPE). */
int ask_print(struct ask *ask, const char *text, size_t size);

/*
 * A call whose answer is printed as it is with --json; without, *ret_tree is for the caller to show
 * (NULL with --json).
 */
int ask_show(struct ask *ask, const char *method, const char *target, const struct buf *body,
             struct json_object **ret_tree);

/*
 * An exchange beside the command's own, whose failure is no failure of it: the status of the
 * answer, 0 where there was none.
 */
int ask_aside(const struct ask *ask, const struct remote_request *request);

/* Tells the failure now; for a command that goes on. */
void ask_tell(struct ask *ask);

/* Sets what went wrong. Returns -1. */
int ask_fail(struct ask *ask, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends "/a/b" with each of the names, up to NULL, escaped as one segment of a path (RFC 3986).
 */
void ask_path(struct buf *target, ...) __attribute__((sentinel));

/* Appends "?name=value" or "&name=value", escaped; nothing where value is NULL. */
void ask_query(struct buf *target, const char *name, const char *value);

#endif
