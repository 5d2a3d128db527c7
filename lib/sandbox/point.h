/* SPDX-License-Identifier: Apache-2.0 */
/*
 * point: JSON pointers for errors that the library finds in a request. For lib/sandbox.
 */
#ifndef KERND_SANDBOX_POINT_H
#define KERND_SANDBOX_POINT_H

#include "lib/base/err.h"

/*
 * Sets the pointer to prefix ("/files/") and name, in which "~" and "/" are escaped (RFC 6901), cut
 * to fit. err may be NULL.
 */
void point_at(struct err *err, const char *prefix, const char *name);

#endif
