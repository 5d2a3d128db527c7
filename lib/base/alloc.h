/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc: small allocations that abort on exhaustion (Linux practically never reports it), so that
 * callers have no untested path. Anything whose size a client chooses is capped before it gets
 * here.
 */
#ifndef KERND_BASE_ALLOC_H
#define KERND_BASE_ALLOC_H

#include <stdarg.h>
#include <stddef.h>

/* Zeroed memory of count * size bytes, overflow-checked; never NULL. The caller frees it. */
void *alloc_zero(size_t count, size_t size) __attribute__((malloc, returns_nonnull));

/* realloc of an array to count * size bytes, overflow-checked; never NULL. */
void *alloc_resize(void *old, size_t count, size_t size) __attribute__((returns_nonnull));

/* Copies; never NULL; the caller frees. alloc_text(NULL) is NULL. alloc_copy adds a NUL byte. */
char *alloc_text(const char *text);
char *alloc_copy(const void *data, size_t size) __attribute__((returns_nonnull));

/* printf into fresh memory; never NULL; the caller frees. */
char *alloc_printf(const char *format, ...)
    __attribute__((format(printf, 1, 2), malloc, returns_nonnull));
char *alloc_vprintf(const char *format, va_list arguments)
    __attribute__((format(printf, 1, 0), malloc, returns_nonnull));

#endif
