/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: small allocations that never return NULL.
 * Owns: nothing; the memory is the caller's.
 * Threads: any.
 * May include: libc.
 */
#include "lib/base/alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No formatting here: stdio may want memory too. */
static _Noreturn void exhausted(void)
{
    static const char text[] = "kernd: out of memory\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);

    (void)ignored;
    abort();
}

void *alloc_zero(size_t count, size_t size)
{
    /* calloc(0) may give NULL; callers may rely on a pointer. */
    void *memory = calloc(count == 0 ? 1 : count, size == 0 ? 1 : size);

    if (memory == NULL) {
        exhausted();
    }
    return memory;
}

void *alloc_resize(void *old, size_t count, size_t size)
{
    size_t bytes = 0;
    void *memory = NULL;

    if (__builtin_mul_overflow(count, size, &bytes)) {
        exhausted();
    }
    memory = realloc(old, bytes == 0 ? 1 : bytes);
    if (memory == NULL) {
        exhausted();
    }
    return memory;
}

char *alloc_text(const char *text)
{
    return text == NULL ? NULL : alloc_copy(text, strlen(text));
}

char *alloc_copy(const void *data, size_t size)
{
    char *copy = NULL;

    if (size == SIZE_MAX) {
        exhausted();
    }
    copy = alloc_resize(NULL, size + 1, 1);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    copy[size] = '\0';
    return copy;
}

char *alloc_vprintf(const char *format, va_list arguments)
{
    char *text = NULL;

    if (vasprintf(&text, format, arguments) < 0) {
        exhausted();
    }
    return text;
}

char *alloc_printf(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    text = alloc_vprintf(format, arguments);
    va_end(arguments);
    return text;
}
