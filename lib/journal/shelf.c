/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf: log files in 256 directories, named by execution.
 * Owns: the layout of the journal's directory.
 * Threads: any.
 * May include: base.
 */
#include "lib/journal/shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/id.h"
#include "lib/journal/binder.h"

#define BUCKETS 256
#define BLOCK_BYTES 512 /* the unit of st_blocks, stat(3type) */
#define NAME_SIZE 65

unsigned shelf_bucket(const char *id)
{
    unsigned hash = 5381; /* Bernstein's */

    for (; *id != '\0'; id++) {
        hash = hash * 33 + (unsigned char)*id;
    }
    return hash % BUCKETS;
}

void shelf_path(const char *id, char out[static SHELF_PATH_SIZE])
{
    (void)snprintf(out, SHELF_PATH_SIZE, "%02x/%.64s", shelf_bucket(id), id);
}

static int make(int directory, const char *path)
{
    return openat(directory, path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                  S_IRUSR | S_IWUSR);
}

int shelf_make_file(int directory, const char *path)
{
    char bucket[3];
    int fd = make(directory, path);

    if (fd < 0 && errno == ENOENT) {
        (void)snprintf(bucket, sizeof(bucket), "%.2s", path);
        (void)mkdirat(directory, bucket, S_IRWXU);
        fd = make(directory, path);
    }
    return fd;
}

int shelf_make(int directory, const char *id)
{
    char path[SHELF_PATH_SIZE];

    shelf_path(id, path);
    return shelf_make_file(directory, path);
}

DIR *shelf_open_bucket(int directory, unsigned bucket)
{
    char name[8];

    (void)snprintf(name, sizeof(name), "%02x", bucket % BUCKETS);
    return fd_take_dir(openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

int shelf_open(int directory, const char *id)
{
    char path[SHELF_PATH_SIZE];

    shelf_path(id, path);
    return openat(directory, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

void shelf_remove(int directory, const char *id)
{
    char path[SHELF_PATH_SIZE];

    shelf_path(id, path);
    (void)unlinkat(directory, path, 0);
}

struct file {
    char name[NAME_SIZE]; /* the id of a log, or that of a binder */
    unsigned bucket;
    int64_t written_ms;
    uint64_t bytes;
};

struct files {
    struct file *items;
    size_t count;
    size_t capacity;
};

static struct file *add(struct files *files)
{
    if (files->count == files->capacity) {
        files->capacity = files->capacity > 0 ? files->capacity * 2 : 64;
        files->items = alloc_resize(files->items, files->capacity, sizeof(*files->items));
    }
    return &files->items[files->count++];
}

static void collect(int directory, unsigned bucket, struct files *files)
{
    CLEANUP_DIR DIR *dir = shelf_open_bucket(directory, bucket);
    const struct dirent *entry;
    struct stat status;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct file *file;

        if ((!id_valid(entry->d_name) && binder_number(entry->d_name) == 0) ||
            fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(status.st_mode)) {
            continue;
        }
        file = add(files);
        (void)snprintf(file->name, sizeof(file->name), "%.64s", entry->d_name);
        file->bucket = bucket;
        file->written_ms =
            status.st_mtim.tv_sec * INT64_C(1000) + status.st_mtim.tv_nsec / CLOCK_NS_PER_MS;
        file->bytes = (uint64_t)status.st_blocks * BLOCK_BYTES;
    }
}

static void remove_file(int directory, const struct file *file)
{
    char path[SHELF_PATH_SIZE];

    (void)snprintf(path, sizeof(path), "%02x/%.64s", file->bucket, file->name);
    (void)unlinkat(directory, path, 0);
}

static int by_age(const void *a, const void *b)
{
    const struct file *x = a;
    const struct file *y = b;

    return (x->written_ms > y->written_ms) - (x->written_ms < y->written_ms);
}

void shelf_expire(int directory, const struct shelf_rules *rules, struct shelf_usage *ret_usage)
{
    struct files files = { .count = 0 };
    struct shelf_usage usage = { .files = 0 };

    for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
        collect(directory, bucket, &files);
    }
    for (size_t i = 0; i < files.count; i++) {
        usage.bytes += files.items[i].bytes;
    }
    usage.files = files.count;
    if (files.count > 1) {
        qsort(files.items, files.count, sizeof(*files.items), by_age);
    }
    for (size_t i = 0; i < files.count; i++) {
        const struct file *file = &files.items[i];

        if (file->written_ms >= rules->oldest_ms && usage.bytes <= rules->max_bytes) {
            break;
        }
        if (!rules->in_use(rules->context, file->name)) {
            remove_file(directory, file);
            usage.bytes -= file->bytes;
            usage.files--;
            usage.expired++;
        }
    }
    free(files.items);
    *ret_usage = usage;
}
