/* SPDX-License-Identifier: Apache-2.0 */
/*
 * binder: writing pieces of short logs, and finding them again.
 * Owns: the list of the binders that are written to.
 * Threads: any.
 * May include: base.
 */
#include "lib/journal/binder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/journal/record.h"
#include "lib/journal/shelf.h"
#include "lib/journal/window.h"

#define SHARDS 64
#define ID_BYTES 72 /* the id and NULs, before the bytes of the log */
#define SIZE_MAX_BYTES ((uint64_t)256 * 1024)
#define KIND_PIECE UINT32_C(0xfffe)
#define KIND_VOID UINT32_C(0xfffd)
#define PATH_SIZE 32

/* One that is written to; number 0: none yet. */
struct binder {
    uint64_t number;
    uint64_t size;
    int64_t deadline; /* clock.h; it is not written to any more behind it */
};

struct binders {
    int directory;
    int64_t span_ms;
    pthread_mutex_t lock;
    struct binder open[SHARDS];
    uint64_t latest; /* of the numbers given to binders, so that each has its own */
};

struct binders *binder_new(int directory, int64_t span_ms)
{
    struct binders *binders = alloc_zero(1, sizeof(*binders));

    binders->directory = directory;
    binders->span_ms = span_ms;
    (void)pthread_mutex_init(&binders->lock, NULL);
    return binders;
}

void binder_free(struct binders *binders)
{
    if (binders != NULL) {
        (void)pthread_mutex_destroy(&binders->lock);
        free(binders);
    }
}

static unsigned shard_of(const char *id)
{
    return shelf_bucket(id) % SHARDS;
}

static void make_path(unsigned shard, uint64_t number, char out[static PATH_SIZE])
{
    (void)snprintf(out, PATH_SIZE, "%02x/.%016llu", shard, (unsigned long long)number);
}

uint64_t binder_number(const char *name)
{
    uint64_t number;

    return name[0] == '.' && strlen(name) == 17 && text_parse_u64(name + 1, &number) == 0 ? number
                                                                                          : 0;
}

/* ---- the binders of a shard ---- */

struct numbers {
    uint64_t *items;
    size_t count;
};

static int latest_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x < y) - (x > y);
}

/* The caller frees the items. */
static struct numbers list(const struct binders *binders, unsigned shard)
{
    struct numbers numbers = { .count = 0 };
    CLEANUP_DIR DIR *dir = shelf_open_bucket(binders->directory, shard);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        uint64_t number = binder_number(entry->d_name);

        if (number > 0) {
            numbers.items = alloc_resize(numbers.items, numbers.count + 1, sizeof(*numbers.items));
            numbers.items[numbers.count++] = number;
        }
    }
    if (numbers.count > 1) {
        qsort(numbers.items, numbers.count, sizeof(*numbers.items), latest_first);
    }
    return numbers;
}

/* ---- writing ---- */

/* Under the lock. A new binder, later than all others of its shard whatever the clock says. */
static int make(struct binders *binders, unsigned shard, struct binder *ret_binder)
{
    struct numbers before = list(binders, shard);
    uint64_t number = (uint64_t)clock_wall_ms();
    char path[PATH_SIZE];
    int fd;

    number = number > binders->latest ? number : binders->latest + 1;
    if (before.count > 0 && number <= before.items[0]) {
        number = before.items[0] + 1;
    }
    free(before.items);
    binders->latest = number;
    *ret_binder =
        (struct binder){ .number = number, .deadline = clock_deadline_after_ms(binders->span_ms) };
    make_path(shard, ret_binder->number, path);
    fd = shelf_make_file(binders->directory, path);
    if (fd < 0) {
        ret_binder->number = 0;
    }
    return fd;
}

/* Under the lock. The binder of a shard that takes a piece more, made if need be: a descriptor. */
static int open_to_write(struct binders *binders, unsigned shard)
{
    struct binder *binder = &binders->open[shard];
    char path[PATH_SIZE];
    int fd = -1;

    if (binder->number > 0 && binder->size < SIZE_MAX_BYTES && !clock_passed(binder->deadline)) {
        make_path(shard, binder->number, path);
        fd = openat(binders->directory, path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    }
    /* It is full, old, or was deleted to make room. */
    return fd >= 0 ? fd : make(binders, shard, binder);
}

/* Appends head, id and bytes as they go to the disk. */
static void put_piece(struct buf *out, const char *id, const struct buf *log, size_t from)
{
    struct record head = { .size = (uint32_t)(ID_BYTES + log->size - from),
                           .kind = KIND_PIECE,
                           .time_ms = clock_wall_ms(),
                           .value = from };
    char name[ID_BYTES] = { 0 };
    char *at;

    (void)snprintf(name, sizeof(name), "%s", id);
    (void)buf_append(out, &head, sizeof(head));
    (void)buf_append(out, name, sizeof(name));
    (void)buf_append(out, from < log->size ? log->data + from : "", log->size - from);
    at = out->data;
    head.check = record_check(&head, at + sizeof(head));
    memcpy(at, &head, sizeof(head));
}

/* Under the lock. With no room on the disk the file is as before. */
static int append(int fd, struct binder *binder, const struct buf *piece)
{
    ssize_t written;

    do {
        written = pwrite(fd, piece->data, piece->size, (off_t)binder->size);
    } while (written < 0 && errno == EINTR);
    if (written == (ssize_t)piece->size) {
        binder->size += piece->size;
        return 0;
    }
    if (written >= 0) {
        if (ftruncate(fd, (off_t)binder->size) < 0) {
            binder->number = 0; /* nothing can stand behind half a piece */
        }
        errno = ENOSPC;
    }
    return -1;
}

/* Under the lock. */
static int write_piece(struct binders *binders, const char *id, const struct buf *log, size_t from,
                       struct binder_place *place)
{
    struct binder *binder = &binders->open[shard_of(id)];
    CLEANUP_FD int fd = open_to_write(binders, shard_of(id));
    CLEANUP_BUF struct buf piece = BUF_INIT(sizeof(struct record) + ID_BYTES + BINDER_LOG_MAX);
    bool whole = place->number != binder->number;
    uint64_t at = binder->size;

    if (fd < 0) {
        return -1;
    }
    put_piece(&piece, id, log, whole ? 0 : from);
    if (append(fd, binder, &piece) < 0) {
        return -1;
    }
    if (whole) {
        binder_void(binders, id, place);
        *place = (struct binder_place){ .number = binder->number, .at = at };
    }
    return 0;
}

int binder_write(struct binders *binders, const char *id, const struct buf *log, size_t from,
                 struct binder_place *place)
{
    int result;

    (void)pthread_mutex_lock(&binders->lock);
    result = write_piece(binders, id, log, from, place);
    (void)pthread_mutex_unlock(&binders->lock);
    return result;
}

void binder_void(struct binders *binders, const char *id, const struct binder_place *place)
{
    const uint32_t kind = KIND_VOID;
    char path[PATH_SIZE];
    CLEANUP_FD int fd = -1;

    if (place->number == 0) {
        return;
    }
    make_path(shard_of(id), place->number, path);
    fd = openat(binders->directory, path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    /* If it fails, what is there is read as a log that was cut short. */
    if (fd >= 0 &&
        pwrite(fd, &kind, sizeof(kind), (off_t)(place->at + offsetof(struct record, kind))) < 0) {
        return;
    }
}

/* ---- finding ---- */

/* What one piece says of the log. False: its file is damaged from here on. */
static bool take_piece(const struct record *head, const char *data, const char *id, struct buf *log,
                       bool *found)
{
    size_t size = head->size - ID_BYTES;

    if (head->kind == KIND_VOID || strncmp(data, id, ID_BYTES) != 0) {
        return true;
    }
    if (record_check(head, data) != head->check) {
        return false;
    }
    if (head->value == 0) {
        buf_reset(log); /* the id was used again */
        *found = true;
    }
    if (head->value == log->size) {
        (void)buf_append(log, data + ID_BYTES, size);
    }
    return true;
}

/* True if the log begins in this binder, or is said to be gone. */
static bool search(const struct binders *binders, const char *path, const char *id, struct buf *log)
{
    CLEANUP_FD int fd = openat(binders->directory, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status = { .st_size = 0 };
    struct window window;
    struct record head;
    uint64_t end = fd >= 0 && fstat(fd, &status) == 0 ? (uint64_t)status.st_size : 0;
    bool found = false;
    bool sound = true;

    window_init(&window, fd);
    for (uint64_t at = 0; sound && window_head(&window, at, end, &head) == 0;
         at += sizeof(head) + head.size) {
        const char *data = NULL;

        if (record_plausible(&head, 0, end - at) && head.size >= ID_BYTES &&
            head.size <= ID_BYTES + BINDER_LOG_MAX) {
            data = window_data(&window, at, end, &head);
        }
        sound = data != NULL && take_piece(&head, data, id, log, &found);
    }
    window_done(&window);
    return found;
}

bool binder_find(struct binders *binders, const char *id, struct buf *ret_log)
{
    struct numbers numbers = list(binders, shard_of(id));
    bool found = false;
    char path[PATH_SIZE];

    for (size_t i = 0; i < numbers.count && !found; i++) {
        make_path(shard_of(id), numbers.items[i], path);
        found = search(binders, path, id, ret_log);
    }
    free(numbers.items);
    return found && ret_log->size > 0;
}
