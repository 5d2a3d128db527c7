/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strv: an owned, NULL-terminated vector of strings (an argv, an environment). Not thread-safe.
 */
#ifndef KERND_BASE_STRV_H
#define KERND_BASE_STRV_H

#include <stdbool.h>
#include <stddef.h>

struct strv {
    char **items; /* NULL, or count strings and a NULL */
    size_t count;
    size_t capacity;
};

#define CLEANUP_STRV __attribute__((cleanup(strv_done)))

/* Frees all strings; the vector is empty and usable. */
void strv_done(struct strv *strv);

/* Appends a copy. */
void strv_add(struct strv *strv, const char *text);

/* Appends copies up to and including the last argument before NULL. */
void strv_add_all(struct strv *strv, ...) __attribute__((sentinel));

/* Appends a printf-style text. */
void strv_addf(struct strv *strv, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Copies a vector. */
void strv_copy(struct strv *to, const struct strv *from);

/* The same strings in the same order? */
bool strv_equal(const struct strv *a, const struct strv *b);

/* items for exec: never NULL, an empty vector gives a pointer to a NULL. */
char *const *strv_argv(const struct strv *strv);

#endif
