/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id: random identifiers and secrets from getrandom(2). Any thread.
 */
#ifndef KERND_BASE_ID_H
#define KERND_BASE_ID_H

#include <stdbool.h>
#include <stddef.h>

#define ID_SIZE 32 /* enough for prefix, 20 characters and a NUL */

/* "<prefix>_" and 20 characters of [0-9a-z] (103 bits), e.g. "exe_...". Returns out. */
char *id_make(const char *prefix, char out[static ID_SIZE]);

/* Fills with random bytes; aborts the process if the kernel can't (it always can after boot). */
void id_random(void *data, size_t size);

/* Is it a well-formed identifier of a client: 1-64 of [A-Za-z0-9._-], first one alphanumeric? */
bool id_valid(const char *text);

/* Lower-case hex of size bytes into out (2 * size + 1). */
void id_hex(const void *data, size_t size, char *out);

#endif
