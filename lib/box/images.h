/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images: what kern keeps of images, by its own program. Any thread, also confined ones; each call
 * waits for kern.
 */
#ifndef KERND_BOX_IMAGES_H
#define KERND_BOX_IMAGES_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
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

#endif
