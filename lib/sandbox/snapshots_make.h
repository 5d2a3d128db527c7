/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshots_make: how snapshots come to be. Any thread but the event one; takes as long as the disk
 * does.
 */
#ifndef KERND_SANDBOX_SNAPSHOTS_MAKE_H
#define KERND_SANDBOX_SNAPSHOTS_MAKE_H

#include <stdbool.h>

#include "lib/base/cancel.h"
#include "lib/base/err.h"
#include "lib/sandbox/snapshots.h"

struct snapshots_make_wanted {
    const char *session_id;
    const char *name;          /* NULL: none */
    const struct strv *labels; /* "key=value"; NULL: none */
    struct cancel *cancel;     /* may be NULL */
};

/*
 * Of a session, also while something runs in it: then each file is there as it was when it was
 * read. 0, or -1 SESSION_NOT_FOUND ..., CONFLICT (the name is taken), BAD_VALUE (the name looks
 * like an id), STORE_FULL, CANCELLED, IO.
 */
int snapshots_make(struct sandbox *sandbox, const struct session_actor *actor,
                   const struct snapshots_make_wanted *wanted, struct snapshots_view *ret_view,
                   struct err *err);

struct snapshots_make_source {
    const char *name;
    int file; /* the archive, at its start; borrowed */
    struct cancel *cancel;
};

/*
 * An archive from elsewhere, looked at as hostile, in place of what had the name. 0 and whether the
 * name is new, or -1 BAD_ARCHIVE, BAD_VALUE, CONFLICT (the name is another caller's), STORE_FULL,
 * CANCELLED, IO.
 */
int snapshots_make_import(struct sandbox *sandbox, const struct session_actor *actor,
                          const struct snapshots_make_source *source, bool *ret_created,
                          struct snapshots_view *ret_view, struct err *err);

#endif
