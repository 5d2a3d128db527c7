/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choice: which engine a box is made by, and what only an engine with images can do. A plain owned
 * value; zeroed it is the server's own choice.
 */
#ifndef KERND_SANDBOX_CHOICE_H
#define KERND_SANDBOX_CHOICE_H

#include <stdbool.h>

#include "lib/base/strv.h"

struct box_extras;

struct choice {
    char *engine; /* NULL: the server's */
    char *image;  /* NULL: the server's */
    char *security_profile;
    char *apparmor;
    struct strv profiles;
    struct strv egress; /* domains; empty: as network says */
    struct strv cap_drop;
    bool some_caps; /* only those of cap_drop are dropped; else all are */
};

void choice_done(struct choice *choice);

/* to is overwritten, not freed. */
void choice_copy(struct choice *to, const struct choice *from);

bool choice_equal(const struct choice *a, const struct choice *b);

/* What box.h wants of it; it borrows from choice. */
void choice_extras(const struct choice *choice, struct box_extras *ret_extras);

#endif
