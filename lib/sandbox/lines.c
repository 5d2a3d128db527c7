/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines: texts of any bytes in lines.
 * Owns: nothing.
 * Threads: any.
 * May include: lib/base.
 */
#include "lib/sandbox/lines.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/buf.h"

char *lines_join(const struct strv *texts)
{
    struct buf out = BUF_INIT(SIZE_MAX / 2);

    for (size_t i = 0; i < texts->count; i++) {
        for (const char *at = texts->items[i]; *at != '\0'; at++) {
            if (*at == '\n' || *at == '\\') {
                (void)buf_append_text(&out, *at == '\n' ? "\\n" : "\\\\");
            } else {
                (void)buf_append(&out, at, 1);
            }
        }
        (void)buf_append_text(&out, "\n");
    }
    return texts->count == 0 ? NULL : buf_take(&out, NULL);
}

void lines_split(const char *joined, struct strv *texts)
{
    CLEANUP_BUF struct buf text = BUF_INIT(SIZE_MAX / 2);

    for (const char *at = joined == NULL ? "" : joined; *at != '\0'; at++) {
        if (*at == '\n') {
            strv_add(texts, text.size == 0 ? "" : text.data);
            buf_reset(&text);
        } else if (*at == '\\' && at[1] != '\0') {
            at++;
            (void)buf_append(&text, *at == 'n' ? "\n" : at, 1);
        } else {
            (void)buf_append(&text, at, 1);
        }
    }
}
