/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record: checksums and plausibility of records.
 * Owns: nothing.
 * Threads: any; pure.
 * May include: base.
 */
#include "lib/journal/record.h"

#include <string.h>

/* Eight bytes a step, so that a log of some gigabytes a second is no burden. */
static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t word;

    for (; size >= sizeof(word); size -= sizeof(word), bytes += sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    word = size;
    for (size_t i = 0; i < size; i++) {
        word = word << 8 | bytes[i];
    }
    hash = (hash ^ word) * UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ hash >> 32;
}

uint32_t record_check(const struct record *head, const void *data)
{
    struct record plain = *head;
    uint64_t hash;

    plain.check = 0;
    hash = mix(UINT64_C(0x6b65726e64), &plain, sizeof(plain));
    hash = mix(hash, data, head->size);
    return (uint32_t)hash | 1;
}

bool record_plausible(const struct record *head, uint64_t seq, uint64_t room)
{
    return head->check != 0 && head->reserved == 0 && head->seq == seq &&
           head->size <= RECORD_DATA_MAX && sizeof(*head) + head->size <= room;
}
