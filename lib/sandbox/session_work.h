/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_work: long work on the files of a held session (packing, unpacking, copying), which ends
 * early when the session is deleted. For lib/sandbox alone; any thread but the event one.
 */
#ifndef KERND_SANDBOX_SESSION_WORK_H
#define KERND_SANDBOX_SESSION_WORK_H

#include "lib/base/cancel.h"
#include "lib/base/err.h"

struct session_entry;

/* On the stack of who works. */
struct session_work {
    struct session_entry *entry; /* held by the caller until the end */
    struct cancel *cancel;       /* borrowed: fired with SESSION_GONE when the door closes */
    struct session_work *next;
};

/* cancel: the token that the work asks; fired at once if the session is being deleted already. */
void session_work_begin(struct session_work *work, struct session_entry *entry,
                        struct cancel *cancel);

/*
 * result: of the work, 0 or -1 and its error; the same is returned. What failed because the session
 * went becomes SESSION_NOT_FOUND.
 */
int session_work_end(struct session_work *work, int result, struct err *err);

/* Fires the tokens of all work on the session. With the table's lock held. */
void session_work_stop(struct session_entry *entry);

#endif
