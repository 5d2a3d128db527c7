/* SPDX-License-Identifier: Apache-2.0 */
/*
 * percent: names of any bytes in forms that URLs and headers take. Pure; any thread.
 */
#ifndef KERND_API_PERCENT_H
#define KERND_API_PERCENT_H

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Appends every byte that is not unreserved (RFC 3986, section 2.3) as an escape; slashes stay. */
int percent_path(struct buf *out, const char *path);

/*
 * Appends the value of a Content-Disposition header for a file of this name (RFC 6266):
 * filename="..." in ASCII for old clients, filename*=UTF-8''... (RFC 8187) for all others.
 */
int percent_attachment(struct buf *out, const char *name);

/* A path as an opaque cursor (base64url, RFC 4648 section 5), to be freed; and back: BAD_CURSOR. */
char *percent_cursor(const char *path);
int percent_cursor_parse(const char *cursor, char **ret_path, struct err *err);

#endif
