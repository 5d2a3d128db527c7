/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show: the events of an execution, as a user at a terminal or a pipe wants them: output byte for
 * byte on standard output and error, rich results, and how it ended. For one thread.
 */
#ifndef KERND_CLIENT_SHOW_H
#define KERND_CLIENT_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/ask.h"
#include "client/picture.h"
#include "lib/base/buf.h"

struct show {
    struct ask *ask; /* borrowed */
    struct picture picture;
    bool partial;      /* the stream may end before the execution does */
    bool only[2];      /* leave the other stream out: of stdout, of stderr */
    struct buf lines;  /* came, not a whole line yet */
    uint64_t shown[2]; /* bytes of stdout and stderr */
    bool log_full[2];  /* the events have no more of it, the execution has */
    bool truncated[2]; /* it was above its cap */
    bool interrupted;  /* the user ended it: that needs no telling */
    bool ended;        /* the last event was seen */
    int status;        /* to exit with */
};

void show_begin(struct show *show, struct ask *ask);
void show_done(struct show *show);

/* Takes the next bytes of an event stream (NDJSON). 0, or -1 as functions of ask. */
int show_take(struct show *show, struct buf *bytes);

/*
 * After the end: what the log of events had no room for, from the execution itself; and a word on
 * what was cut. 0 or -1; -1 too if the last event was never seen.
 */
int show_rest(struct show *show, const char *execution);

#endif
