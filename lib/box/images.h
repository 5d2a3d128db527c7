/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images: what kern keeps of images, by its own program. Any thread, also confined ones, but for
 * images_pull; each call waits for kern.
 */
#ifndef KERND_BOX_IMAGES_H
#define KERND_BOX_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/cancel.h"
#include "lib/base/err.h"
#include "lib/base/sink.h"
#include "lib/base/strv.h"
#include "lib/box/boxes.h"

/* Appends kern's own list (`kern images --json`). 0, or -1 NOT_SUPPORTED_HERE (no kern), IO. */
int images_list(struct boxes *boxes, struct buf *out, struct err *err);

/*
 * Has kern take in an archive as `docker save` writes it, and appends the names of its images.
 * file: readable, a regular file of this user. 0, or -1 NOT_SUPPORTED_HERE, BAD_ARCHIVE with kern's
 * words, IO.
 */
int images_load(struct boxes *boxes, int file, struct strv *ret_names, struct err *err);

/* Are there images at all? 0, or -1 NOT_SUPPORTED_HERE. Blocks for nothing. */
int images_check(struct boxes *boxes, struct err *err);

/* Where the words of a pull go, and what ends it early. Borrowed. */
struct images_watch {
    struct sink *sink;           /* SINK_STARTED, then what kern says as SINK_STDERR */
    struct buf *words;           /* the same, up to its max */
    const struct cancel *cancel; /* ends it */
    int64_t deadline;
    bool truncated; /* for the caller to read: kern said more than words may hold */
};

enum images_stop { IMAGES_PULLED, IMAGES_CANCELLED, IMAGES_TIMED_OUT };

/*
 * Has kern fetch an image from its registry. The one call here that runs kern on the caller's own
 * thread: that may start processes, and lives as long as kernd. 0 and how it ended, or -1
 * NOT_SUPPORTED_HERE (no kern), IMAGE_PULL_FAILED with kern's words, IO.
 */
int images_pull(struct boxes *boxes, const char *name, struct images_watch *watch,
                enum images_stop *ret_stop, struct err *err);

#endif
