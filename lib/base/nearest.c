/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: compare a word with the words that exist.
 * Owns: nothing.
 * Threads: any.
 * May include: lib/base.
 */
#include "lib/base/nearest.h"

#include <stdint.h>
#include <string.h>

static int folded(int character)
{
    return character == '-' ? '_' : character;
}

static size_t least(size_t a, size_t b, size_t c)
{
    const size_t smaller = a < b ? a : b;

    return smaller < c ? smaller : c;
}

size_t nearest_distance(const char *a, const char *b)
{
    const size_t a_length = strlen(a);
    const size_t b_length = strlen(b);
    size_t row[NEAREST_WORD_MAX + 1]; /* distances of a's beginning to each beginning of b */

    if (a_length > NEAREST_WORD_MAX || b_length > NEAREST_WORD_MAX) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= b_length; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const size_t replaced = diagonal + (folded(a[i - 1]) == folded(b[j - 1]) ? 0 : 1);

            diagonal = row[j];
            row[j] = least(row[j] + 1, row[j - 1] + 1, replaced);
        }
    }
    return row[b_length];
}

int nearest_is_close(const char *word, size_t distance)
{
    const size_t third = strlen(word) / 3;

    return distance <= (third > 1 ? third : 1);
}
