/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits: decimal digits, written from their end.
 * Owns: nothing.
 * Threads: any.
 * May include: libc.
 */
#include "lib/base/digits.h"

#define SIZE 24 /* 20 digits of a 64-bit number, a sign or a point */

/* Writes the digits that end before `end`, at least so many. Where they begin. */
static char *write_back(char *end, uint64_t value, unsigned at_least)
{
    char *at = end;

    do {
        *--at = (char)('0' + (char)(value % 10));
        value /= 10;
    } while (value > 0 || (unsigned)(end - at) < at_least);
    return at;
}

int digits_put(struct buf *out, uint64_t value)
{
    char text[SIZE];
    const char *at = write_back(text + SIZE, value, 1);

    return buf_append(out, at, (size_t)(text + SIZE - at));
}

int digits_put_signed(struct buf *out, int64_t value)
{
    char text[SIZE];
    char *at = write_back(text + SIZE, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 1);

    if (value < 0) {
        *--at = '-';
    }
    return buf_append(out, at, (size_t)(text + SIZE - at));
}

int digits_put_thousandths(struct buf *out, uint64_t thousandths, bool trimmed)
{
    uint64_t fraction = thousandths % 1000;
    unsigned places = 3;
    char text[SIZE];
    char *at = text + SIZE;

    while (trimmed && places > 0 && fraction % 10 == 0) {
        fraction /= 10;
        places--;
    }
    if (places > 0) {
        at = write_back(at, fraction, places);
        *--at = '.';
    }
    at = write_back(at, thousandths / 1000, 1);
    return buf_append(out, at, (size_t)(text + SIZE - at));
}
