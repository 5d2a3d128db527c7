/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picture: an image of a result: in the terminal where that can show one, else in a file whose path
 * is told on standard error. For one thread.
 */
#ifndef KERND_CLIENT_PICTURE_H
#define KERND_CLIENT_PICTURE_H

#include "lib/base/err.h"

struct picture {
    const char *directory; /* where to save them all; borrowed. NULL: show them where possible */
    char *made;            /* a directory of our own, once there was need for one */
    unsigned count;
};

void picture_done(struct picture *picture);

/* type: "image/png"; text: base64, or the text of an SVG. 0, or -1 with err. */
int picture_show(struct picture *picture, const char *type, const char *text, struct err *err);

#endif
