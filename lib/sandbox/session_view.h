/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_view: how the view of a session is filled. For lib/sandbox; any thread but the event one.
 */
#ifndef KERND_SANDBOX_SESSION_VIEW_H
#define KERND_SANDBOX_SESSION_VIEW_H

#include "lib/base/err.h"
#include "lib/sandbox/session.h"

struct rows_session;

/* What is told of a row, with what the table knows. The caller calls session_view_done. */
int session_view_from_row(struct sandbox *sandbox, const struct rows_session *row,
                          struct session_view *ret_view, struct err *err);

/* Bytes and files; a workspace that can't be walked now is not measured. */
void session_view_measure(struct sandbox *sandbox, const struct session_actor *actor,
                          struct session_view *view);

#endif
