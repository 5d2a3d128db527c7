/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: find the known name that is closest to a misspelt one.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: libc.
 */
#include "lib/base/nearest.h"

#include <stdint.h>
#include <string.h>

/* memory_mb, MemoryMB and memoryMb are the same here. Too long a name becomes "". */
static void fold(char out[static NEAREST_NAME_MAX + 1], const char *name)
{
    size_t used = 0;

    for (; *name != '\0'; name++) {
        char c = *name;

        if (c >= 'A' && c <= 'Z') {
            c = (char)(c | 0x20); /* ASCII: the lower case letter */
        }
        if ((c < 'a' || c > 'z') && (c < '0' || c > '9')) {
            continue;
        }
        if (used == NEAREST_NAME_MAX) {
            used = 0;
            break;
        }
        out[used++] = c;
    }
    out[used] = '\0';
}

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;

    return least < c ? least : c;
}

/* Levenshtein: insertions, deletions and substitutions of one character. */
static size_t edits(const char *a, const char *b)
{
    size_t row[NEAREST_NAME_MAX + 1];
    size_t length = strlen(b);

    for (size_t j = 0; j <= length; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t above = row[j];

            row[j] = smallest(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1));
            diagonal = above;
        }
    }
    return row[length];
}

void nearest_init(struct nearest *nearest, const char *wanted)
{
    fold(nearest->wanted, wanted);
    nearest->best = NULL;
    nearest->distance = SIZE_MAX;
}

void nearest_offer(struct nearest *nearest, const char *known)
{
    char folded[NEAREST_NAME_MAX + 1] = "";
    size_t wanted_length = strlen(nearest->wanted);
    size_t known_length = 0;
    size_t common = 0;
    size_t distance = 0;

    fold(folded, known);
    known_length = strlen(folded);
    common = wanted_length < known_length ? wanted_length : known_length;
    distance = edits(nearest->wanted, folded);
    /* "timeout" and "timeoutSeconds" both mean "timeoutS". */
    if (common >= 3 && memcmp(nearest->wanted, folded, common) == 0 && distance > 1) {
        distance = 1;
    }
    if (distance < nearest->distance && distance <= 1 + common / 4) {
        nearest->best = known;
        nearest->distance = distance;
    }
}

const char *nearest_best(const struct nearest *nearest)
{
    return nearest->wanted[0] == '\0' ? NULL : nearest->best;
}
