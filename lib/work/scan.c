/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan: census and comparison.
 * Owns: nothing between calls.
 * Threads: any.
 * May include: base.
 */
#include "lib/work/scan.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/work/entry.h"
#include "lib/work/files.h"
#include "lib/work/path.h"
#include "lib/work/walk.h"

#define FILES_MAX_DEFAULT 200000
#define BLOCK_BYTES 512 /* the unit of st_blocks, stat(3type) */
/* Longer than any tick of the clock that file times are taken from. */
#define FRESH_NS (20 * CLOCK_NS_PER_MS)
#define CONTENT_SIZE_MAX 65536
#define CONTENT_FILES_MAX 32

struct file {
    uint64_t stamp;
    uint64_t size;
    uint64_t content; /* hash, 0: not taken */
    size_t path;      /* offset into paths */
};

struct scan {
    struct file *files; /* in the order of path_compare */
    size_t count;
    size_t capacity;
    char *paths;
    size_t paths_size;
    size_t paths_capacity;
    uint64_t bytes;
    uint64_t disk;
    int64_t fresh_ns; /* a file changed since then may change again without a new ctime */
    size_t contents;
    bool incomplete;
};

static const char *path_of(const struct scan *scan, size_t i)
{
    return scan->paths + scan->files[i].path;
}

static int64_t coarse_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return (int64_t)now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

/* FNV-1a; never 0. 0 when the file can't be read any more. */
static uint64_t content_hash(int root, const char *path)
{
    CLEANUP_FD int fd = -1;
    CLEANUP_FREE unsigned char *data = NULL;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    ssize_t size;

    if (files_open(root, path, &fd, NULL, NULL) < 0) {
        return 0;
    }
    data = alloc_zero(1, CONTENT_SIZE_MAX);
    size = read(fd, data, CONTENT_SIZE_MAX);
    for (ssize_t i = 0; i < size; i++) {
        hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    }
    return size < 0 ? 0 : hash | 1;
}

static void add_path(struct scan *scan, const char *path)
{
    size_t size = strlen(path) + 1;

    if (scan->paths_size + size > scan->paths_capacity) {
        scan->paths_capacity = (scan->paths_size + size) * 2;
        scan->paths = alloc_resize(scan->paths, scan->paths_capacity, 1);
    }
    memcpy(scan->paths + scan->paths_size, path, size);
    scan->paths_size += size;
}

static void add(struct scan *scan, int root, const char *path, const struct stat *status)
{
    struct file file = { .stamp = entry_stamp(status),
                         .size = (uint64_t)status->st_size,
                         .path = scan->paths_size };
    int64_t ctime_ns = status->st_ctim.tv_sec * CLOCK_NS_PER_S + status->st_ctim.tv_nsec;

    if (ctime_ns > scan->fresh_ns && file.size <= CONTENT_SIZE_MAX &&
        scan->contents < CONTENT_FILES_MAX) {
        file.content = content_hash(root, path);
        scan->contents++;
    }
    if (scan->count == scan->capacity) {
        scan->capacity = scan->capacity > 0 ? scan->capacity * 2 : 64;
        scan->files = alloc_resize(scan->files, scan->capacity, sizeof(*scan->files));
    }
    add_path(scan, path);
    scan->files[scan->count++] = file;
    scan->bytes += file.size;
    scan->disk += (uint64_t)status->st_blocks * BLOCK_BYTES;
}

struct scan *scan_nothing(void)
{
    struct scan *scan = alloc_zero(1, sizeof(*scan));

    scan->fresh_ns = coarse_now_ns() - FRESH_NS;
    return scan;
}

int scan_take(int root, const struct scan_options *options, struct scan **ret_scan, struct err *err)
{
    struct walk_options how = { .start = PATH_ROOT,
                                .recursive = true,
                                .skip = options != NULL ? options->skip : NULL };
    size_t files_max =
        options != NULL && options->files_max > 0 ? options->files_max : FILES_MAX_DEFAULT;
    struct walk_entry entry;
    struct walk *walk = NULL;
    struct scan *scan;
    struct stat status;

    if (walk_open(root, &how, &walk, err) < 0) {
        return -1;
    }
    scan = scan_nothing();
    while (walk_next(walk, &entry)) {
        if (entry.type != DT_REG ||
            fstatat(entry.directory, entry.name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(status.st_mode)) {
            continue;
        }
        if (scan->count == files_max) {
            scan->incomplete = true;
            break;
        }
        add(scan, root, entry.path, &status);
    }
    scan->incomplete = scan->incomplete || walk_incomplete(walk);
    walk_close(walk);
    *ret_scan = scan;
    return 0;
}

void scan_free(struct scan *scan)
{
    if (scan != NULL) {
        free(scan->files);
        free(scan->paths);
        free(scan);
    }
}

size_t scan_files(const struct scan *scan)
{
    return scan->count;
}

uint64_t scan_bytes(const struct scan *scan)
{
    return scan->bytes;
}

uint64_t scan_disk(const struct scan *scan)
{
    return scan->disk;
}

bool scan_incomplete(const struct scan *scan)
{
    return scan->incomplete;
}

/* What a comparison works on: where it stands in both, and where its rows go. */
struct comparison {
    int root;
    const struct scan *before;
    const struct scan *after;
    size_t b;
    size_t a;
    size_t rows_max;
    size_t capacity;
    struct scan_diff *diff;
};

static bool tell(struct comparison *c, const char *path, uint64_t size, enum scan_change change)
{
    struct scan_diff *diff = c->diff;

    if (diff->count == c->rows_max) {
        diff->truncated = true;
        return false;
    }
    if (diff->count == c->capacity) {
        c->capacity = c->capacity > 0 ? c->capacity * 2 : 16;
        diff->rows = alloc_resize(diff->rows, c->capacity, sizeof(*diff->rows));
    }
    diff->rows[diff->count++] =
        (struct scan_row){ .path = alloc_text(path), .size = size, .change = change };
    return true;
}

/* Beyond the last file of a census that ended early nothing is known. */
static bool beyond(const struct scan *scan, size_t at)
{
    return scan->incomplete && at == scan->count;
}

static bool differs(const struct comparison *c)
{
    const struct file *old = &c->before->files[c->b];
    const struct file *new = &c->after->files[c->a];

    if (old->stamp != new->stamp) {
        return true;
    }
    return old->content != 0 && content_hash(c->root, path_of(c->after, c->a)) != old->content;
}

/* One step of the merge of two sorted lists. False at the end, or when the rows are full. */
static bool step(struct comparison *c)
{
    bool more_before = c->b < c->before->count;
    bool more_after = c->a < c->after->count;
    int order;

    if ((!more_before && !more_after) || beyond(c->before, c->b) || beyond(c->after, c->a)) {
        return false;
    }
    order = !more_before  ? 1
            : !more_after ? -1
                          : path_compare(path_of(c->before, c->b), path_of(c->after, c->a));
    if (order < 0) {
        c->b++;
        return tell(c, path_of(c->before, c->b - 1), c->before->files[c->b - 1].size, SCAN_DELETED);
    }
    if (order > 0) {
        c->a++;
        return tell(c, path_of(c->after, c->a - 1), c->after->files[c->a - 1].size, SCAN_CREATED);
    }
    order = differs(c) ? 1 : 0;
    c->b++;
    c->a++;
    return order == 0 ||
           tell(c, path_of(c->after, c->a - 1), c->after->files[c->a - 1].size, SCAN_MODIFIED);
}

void scan_compare(int root, const struct scan *before, const struct scan *after, size_t rows_max,
                  struct scan_diff *ret_diff)
{
    struct scan_diff diff = { .truncated = before->incomplete || after->incomplete };
    struct comparison c = {
        .root = root, .before = before, .after = after, .rows_max = rows_max, .diff = &diff
    };

    while (step(&c)) {
    }
    *ret_diff = diff;
}

void scan_diff_done(struct scan_diff *diff)
{
    for (size_t i = 0; i < diff->count; i++) {
        free(diff->rows[i].path);
    }
    free(diff->rows);
    *diff = (struct scan_diff){ .count = 0 };
}
