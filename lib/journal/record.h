/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record: one event as bytes in a log: a fixed head, then the data. Pure functions, any thread.
 *
 * Heads are in the machine's byte order: a log is read by the machine that wrote it. A record that
 * was cut short by a crash, or whose bytes never reached the disk, is told by its check.
 */
#ifndef KERND_JOURNAL_RECORD_H
#define KERND_JOURNAL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record {
    uint32_t size;  /* bytes of data behind the head */
    uint32_t check; /* record_check of the whole, this field as 0; never 0 */
    uint32_t kind;
    uint32_t reserved; /* 0 */
    uint64_t seq;
    int64_t time_ms;
    uint64_t value;
};

/* A single record is no larger: a head with a larger size is garbage. */
#define RECORD_DATA_MAX UINT32_C(0x20000000)

/* The checksum of a head and its data. */
uint32_t record_check(const struct record *head, const void *data);

/* Can this head stand where the next seq is `seq`, `room` bytes before the end of the log? */
bool record_plausible(const struct record *head, uint64_t seq, uint64_t room);

#endif
