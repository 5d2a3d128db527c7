/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remedy_kern: why kern could not start a box.
 */
#ifndef KERND_BOX_REMEDY_KERN_H
#define KERND_BOX_REMEDY_KERN_H

#include "lib/box/remedy.h"

/* The line of kern's words that says why, else all of them; the caller frees. Pure. */
char *remedy_kern_reason(const char *words);

/*
 * As remedy_explain, from kern's words. What the caller asked for and kern refuses is
 * IMAGE_NOT_FOUND (no such image on this host) or BAD_VALUE with kern's own sentence. Pure. Returns
 * -1.
 */
int remedy_kern_explain(const char *words, const char *exit_text, const struct remedy_host *host,
                        struct err *err);

#endif
