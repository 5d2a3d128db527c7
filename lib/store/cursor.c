/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor: "<milliseconds>.<id>" and back.
 * Owns: nothing.
 * Threads: any; pure.
 * May include: base.
 */
#include "lib/store/cursor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/id.h"
#include "lib/base/text.h"

int cursor_parse(const char *text, struct cursor *ret_cursor, struct err *err)
{
    const char *dot = strchr(text, '.');
    CLEANUP_FREE char *number = dot != NULL ? alloc_copy(text, (size_t)(dot - text)) : NULL;
    uint64_t created_ms = 0;

    if (dot == NULL || text_parse_u64(number, &created_ms) < 0 || created_ms > INT64_MAX ||
        !id_valid(dot + 1)) {
        (void)err_set(err, ERR_BAD_CURSOR, 0, "the cursor is not one that this server gave");
        return err_remedy(err, "start again without a cursor");
    }
    ret_cursor->created_ms = (int64_t)created_ms;
    (void)snprintf(ret_cursor->id, sizeof(ret_cursor->id), "%.64s", dot + 1);
    return 0;
}

char *cursor_format(int64_t created_ms, const char *id)
{
    return alloc_printf("%" PRId64 ".%s", created_ms, id);
}
