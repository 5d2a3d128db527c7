/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link: lexical judgement of symbolic links.
 * Owns: nothing.
 * Threads: any; pure.
 * May include: base.
 */
#include "lib/work/link.h"

#include <string.h>

bool link_stays_inside(const char *path, const char *target)
{
    long depth = 0; /* directories between the root and where we are */

    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        depth++;
    }
    if (target[0] == '/' || target[0] == '\0') {
        return false;
    }
    while (*target != '\0') {
        const char *end = strchrnul(target, '/');
        size_t length = (size_t)(end - target);

        if (length == 2 && target[0] == '.' && target[1] == '.') {
            depth--;
        } else if (length > 0 && !(length == 1 && target[0] == '.')) {
            depth++;
        }
        if (depth < 0) {
            return false;
        }
        target = *end == '/' ? end + 1 : end;
    }
    return true;
}
