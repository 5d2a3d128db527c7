/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: find the command that words begin with.
 * Owns: nothing.
 * Threads: any.
 * May include: client.
 */
#include "client/lookup.h"

#include <string.h>

#include "client/roster.h"

static int words_of(const struct command *command, int count, char *const *words)
{
    const char *name = command->name;
    int used = 0;

    while (*name != '\0') {
        const size_t length = strcspn(name, " ");

        if (used == count || strlen(words[used]) != length ||
            memcmp(words[used], name, length) != 0) {
            return 0;
        }
        used++;
        name += length + (name[length] == ' ' ? 1 : 0);
    }
    return used;
}

const struct command *lookup_command(int count, char *const *words, int *ret_used)
{
    const struct command *found = NULL;
    const struct command *row;

    *ret_used = 0;
    for (size_t i = 0; (row = roster_at(i)) != NULL; i++) {
        const int used = words_of(row, count, words);

        if (used > *ret_used) {
            *ret_used = used;
            found = row;
        }
    }
    return found;
}
