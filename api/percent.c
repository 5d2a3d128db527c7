/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write names for URLs and headers.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base.
 */
#include "api/percent.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"

#define UNRESERVED "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
#define CURSOR_MAX 6000

static int escape(struct buf *out, const char *text, size_t size, const char *plain)
{
    for (size_t i = 0; i < size; i++) {
        int failed = text[i] != '\0' && strchr(plain, text[i]) != NULL
                         ? buf_append(out, text + i, 1)
                         : buf_printf(out, "%%%02X", (unsigned)(unsigned char)text[i]);

        if (failed < 0) {
            return -1;
        }
    }
    return 0;
}

int percent_path(struct buf *out, const char *path)
{
    return escape(out, path, strlen(path), UNRESERVED "/");
}

int percent_attachment(struct buf *out, const char *name)
{
    CLEANUP_BUF struct buf repaired = BUF_INIT(SIZE_MAX / 4);

    if (buf_append_text(out, "attachment; filename=\"") < 0) {
        return -1;
    }
    for (const char *at = name; *at != '\0'; at++) {
        /* What a quoted string can't hold, or what clients decode in different ways (RFC 6266). */
        bool odd = *at < 0x20 || *at == 0x7f || strchr("\"\\%", *at) != NULL;

        if (buf_append(out, odd ? "_" : at, 1) < 0) {
            return -1;
        }
    }
    if (buf_append_text(out, "\"; filename*=UTF-8''") < 0 ||
        text_utf8_repair(&repaired, name, strlen(name)) < 0) {
        return -1;
    }
    return escape(out, repaired.data, repaired.size, UNRESERVED);
}

static void swap(char *text, const char *from, const char *to)
{
    for (; *text != '\0'; text++) {
        const char *found = strchr(from, *text);

        if (found != NULL) {
            *text = to[found - from];
        }
    }
}

char *percent_cursor(const char *path)
{
    struct buf text = BUF_INIT(SIZE_MAX / 4);
    char *cursor;

    (void)text_base64_encode(&text, path, strlen(path));
    cursor = buf_take(&text, NULL);
    swap(cursor, "+/", "-_");
    cursor[strcspn(cursor, "=")] = '\0';
    return cursor;
}

int percent_cursor_parse(const char *cursor, char **ret_path, struct err *err)
{
    static const char padding[] = "===";
    CLEANUP_BUF struct buf path = BUF_INIT(CURSOR_MAX);
    CLEANUP_FREE char *text =
        alloc_printf("%s%.*s", cursor, (int)((4 - strlen(cursor) % 4) % 4), padding);

    swap(text, "-_", "+/");
    if (strlen(cursor) == 0 || strpbrk(cursor, "+/=") != NULL ||
        text_base64_decode(&path, text, strlen(text)) < 0 ||
        memchr(path.data, '\0', path.size) != NULL) {
        return err_set(err, ERR_BAD_CURSOR, 0, "the cursor is not one of this server's");
    }
    *ret_path = buf_take(&path, NULL);
    return 0;
}
