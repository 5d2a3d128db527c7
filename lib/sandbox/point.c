/* SPDX-License-Identifier: Apache-2.0 */
/*
 * point: names in JSON pointers.
 * Owns: nothing.
 * Threads: any, pure.
 * May include: lib/base.
 */
#include "lib/sandbox/point.h"

#include <stdio.h>

void point_at(struct err *err, const char *prefix, const char *name)
{
    size_t used;

    if (err == NULL) {
        return;
    }
    used = (size_t)snprintf(err->pointer, sizeof(err->pointer), "%s", prefix);
    for (; *name != '\0' && used + 2 < sizeof(err->pointer); name++) {
        if (*name == '~' || *name == '/') {
            err->pointer[used++] = '~';
            err->pointer[used++] = *name == '~' ? '0' : '1';
        } else {
            err->pointer[used++] = *name;
        }
    }
    err->pointer[used] = '\0';
}
