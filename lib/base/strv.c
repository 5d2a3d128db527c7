/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: build argument and environment vectors.
 * Owns: the strings in each vector.
 * Threads: any, one at a time for one vector.
 * May include: libc.
 */
#include "lib/base/strv.h"

#include <stdarg.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"

void strv_done(struct strv *strv)
{
    for (size_t i = 0; i < strv->count; i++) {
        free(strv->items[i]);
    }
    free(strv->items);
    *strv = (struct strv){ 0 };
}

/* Takes text over. */
static void push(struct strv *strv, char *text)
{
    if (strv->count + 1 >= strv->capacity) {
        strv->capacity = strv->capacity == 0 ? 8 : strv->capacity * 2;
        strv->items = alloc_resize(strv->items, strv->capacity, sizeof(*strv->items));
    }
    strv->items[strv->count++] = text;
    strv->items[strv->count] = NULL;
}

void strv_add(struct strv *strv, const char *text)
{
    push(strv, alloc_text(text));
}

void strv_add_all(struct strv *strv, ...)
{
    va_list arguments;
    const char *text = NULL;

    va_start(arguments, strv);
    while ((text = va_arg(arguments, const char *)) != NULL) {
        strv_add(strv, text);
    }
    va_end(arguments);
}

void strv_addf(struct strv *strv, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    push(strv, alloc_vprintf(format, arguments));
    va_end(arguments);
}

void strv_copy(struct strv *to, const struct strv *from)
{
    for (size_t i = 0; i < from->count; i++) {
        strv_add(to, from->items[i]);
    }
}

bool strv_equal(const struct strv *a, const struct strv *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (!text_equal(a->items[i], b->items[i])) {
            return false;
        }
    }
    return true;
}

char *const *strv_argv(const struct strv *strv)
{
    static char *const empty[] = { NULL };

    return strv->items == NULL ? empty : strv->items;
}
