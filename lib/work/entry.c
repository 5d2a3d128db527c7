/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry: from struct stat to what clients are told.
 * Owns: nothing.
 * Threads: any; pure.
 * May include: base.
 */
#include "lib/work/entry.h"

#include <stddef.h>

#include "lib/base/clock.h"
#include "lib/base/id.h"

static const char *const type_texts[ENTRY_TYPE_MAX] = {
    [ENTRY_FILE] = "file", [ENTRY_DIRECTORY] = "directory", [ENTRY_SYMLINK] = "symlink",
    [ENTRY_FIFO] = "fifo", [ENTRY_SOCKET] = "socket",       [ENTRY_DEVICE] = "device",
};

const char *entry_type_text(enum entry_type type)
{
    return type_texts[type];
}

enum entry_type entry_type_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return ENTRY_FILE;
    case S_IFDIR:
        return ENTRY_DIRECTORY;
    case S_IFLNK:
        return ENTRY_SYMLINK;
    case S_IFIFO:
        return ENTRY_FIFO;
    case S_IFSOCK:
        return ENTRY_SOCKET;
    default:
        return ENTRY_DEVICE;
    }
}

/* Times that 64 bits of nanoseconds can't tell (a program may set any) are the last or first ones.
 */
static int64_t in_ns(const struct timespec *time)
{
    int64_t ns;

    if (__builtin_mul_overflow((int64_t)time->tv_sec, CLOCK_NS_PER_S, &ns) ||
        __builtin_add_overflow(ns, (int64_t)time->tv_nsec, &ns)) {
        return time->tv_sec < 0 ? INT64_MIN : INT64_MAX;
    }
    return ns;
}

/* One step of the splitmix64 generator: every bit of the input reaches every bit of the output. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash += value + UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ (hash >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ (hash >> 27)) * UINT64_C(0x94d049bb133111eb);
    return hash ^ (hash >> 31);
}

uint64_t entry_stamp(const struct stat *status)
{
    uint64_t hash = mix(0, status->st_ino);

    hash = mix(hash, (uint64_t)status->st_size);
    hash = mix(hash, (uint64_t)in_ns(&status->st_mtim));
    return mix(hash, (uint64_t)in_ns(&status->st_ctim));
}

void entry_from_stat(const struct stat *status, struct entry *ret_entry)
{
    uint64_t stamp = entry_stamp(status);

    *ret_entry = (struct entry){
        .type = entry_type_of(status->st_mode),
        .size = S_ISDIR(status->st_mode) ? 0 : (uint64_t)status->st_size,
        .mtime_ns = in_ns(&status->st_mtim),
        .mode = status->st_mode & 07777U,
    };
    id_hex(&stamp, sizeof(stamp), ret_entry->etag);
}
