/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: random identifiers and secrets.
 * Owns: nothing.
 * Threads: any.
 * May include: libc.
 */
#include "lib/base/id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define RANDOM_CHARACTERS 20
#define LONGEST_PREFIX 10
#define LONGEST_CLIENT_ID 64

_Static_assert(LONGEST_PREFIX + 1 + RANDOM_CHARACTERS + 1 <= ID_SIZE, "an identifier must fit");

void id_random(void *data, size_t size)
{
    unsigned char *at = data;

    while (size > 0) {
        ssize_t got = getrandom(at, size, 0);

        if (got < 0 && errno != EINTR) {
            abort();
        }
        if (got > 0) {
            at += got;
            size -= (size_t)got;
        }
    }
}

/*
 * Each character equally likely: a byte from 252 = 7 * 36 on, where the last whole turn ends, is
 * not used. Bytes come 32 at a time, since each getrandom is a system call.
 */
char *id_make(const char *prefix, char out[static ID_SIZE])
{
    static const char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    unsigned char bytes[32];
    size_t next = sizeof(bytes);
    int used = snprintf(out, ID_SIZE, "%.*s_", LONGEST_PREFIX, prefix);
    int end = used + RANDOM_CHARACTERS;

    while (used < end) {
        if (next == sizeof(bytes)) {
            id_random(bytes, sizeof(bytes));
            next = 0;
        }
        if (bytes[next] < 252) {
            out[used++] = alphabet[bytes[next] % 36];
        }
        next++;
    }
    out[used] = '\0';
    return out;
}

/* Not isalnum: its answer depends on the locale. */
static bool is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool id_valid(const char *text)
{
    size_t length = text == NULL ? 0 : strnlen(text, LONGEST_CLIENT_ID + 1);

    if (length == 0 || length > LONGEST_CLIENT_ID || !is_alphanumeric(text[0])) {
        return false;
    }
    for (size_t i = 1; i < length; i++) {
        if (!is_alphanumeric(text[i]) && text[i] != '.' && text[i] != '_' && text[i] != '-') {
            return false;
        }
    }
    return true;
}

void id_hex(const void *data, size_t size, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * size] = '\0';
}
