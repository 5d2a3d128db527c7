/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: a depth-first walk with an explicit stack; names are read whole, sorted, then told.
 * Owns: the stack of directories being walked, each with its names.
 * Threads: one.
 * May include: base.
 */
#include "lib/work/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "lib/work/fail.h"
#include "lib/work/path.h"

#define OPEN_MAX_LEVELS 32
/* Names held at once, in bytes, so that a hostile workspace can't fill the server's memory. */
#define NAMES_MAX ((size_t)64 * 1024 * 1024)
#define READ_SIZE ((size_t)32 * 1024)

/* One directory on the way. Its names lie in one block as: type byte, name, NUL. */
struct level {
    int fd; /* -1: closed for the time being */
    size_t path_length;
    char *names;
    size_t names_size;
    size_t names_capacity;
    uint32_t *order; /* offsets into names, sorted by name */
    size_t count;
    size_t capacity;
    size_t next;
};

struct walk {
    int root; /* borrowed */
    bool recursive;
    const char *after; /* NULL once it was passed */
    const char *const *skip;
    bool incomplete;
    bool descend; /* the last told entry is a directory whose level is ready in `child` */
    struct level child;
    struct level *levels;
    size_t depth;
    size_t depth_capacity;
    size_t names_held;             /* bytes, by all levels of the stack */
    char path[PATH_BYTES_MAX + 1]; /* of the last told entry; its directory is a prefix */
    char buffer[READ_SIZE] __attribute__((aligned(16)));
};

static void level_done(struct level *level)
{
    fd_close(level->fd);
    free(level->names);
    free(level->order);
    *level = (struct level){ .fd = -1 };
}

static void level_add(struct level *level, const char *name, unsigned char type)
{
    size_t size = strlen(name) + 1;

    if (level->names_size + size + 1 > level->names_capacity) {
        level->names_capacity = (level->names_size + size + 1) * 2;
        level->names = alloc_resize(level->names, level->names_capacity, 1);
    }
    if (level->count == level->capacity) {
        level->capacity = level->capacity > 0 ? level->capacity * 2 : 16;
        level->order = alloc_resize(level->order, level->capacity, sizeof(*level->order));
    }
    level->order[level->count++] = (uint32_t)level->names_size;
    level->names[level->names_size++] = (char)type;
    memcpy(level->names + level->names_size, name, size);
    level->names_size += size;
}

/* The same name twice: in the order in which they were read. */
static int by_name(const void *a, const void *b, void *names)
{
    const uint32_t first = *(const uint32_t *)a;
    const uint32_t second = *(const uint32_t *)b;
    const char *text = names;
    int order = strcmp(text + first + 1, text + second + 1);

    return order != 0 ? order : (first > second) - (first < second);
}

/*
 * A name that was deleted and made anew while the directory was read can come twice (readdir(3)
 * leaves that open). What came last is there.
 */
static void sort(struct level *level)
{
    const char *text = level->names;
    size_t kept = 0;

    if (level->count > 1) {
        qsort_r(level->order, level->count, sizeof(*level->order), by_name, level->names);
    }
    for (size_t i = 0; i < level->count; i++) {
        if (i + 1 == level->count ||
            strcmp(text + level->order[i] + 1, text + level->order[i + 1] + 1) != 0) {
            level->order[kept++] = level->order[i];
        }
    }
    level->count = kept;
}

/* Reads all names of level->fd. 0 or -1 with errno. */
static int level_read(struct walk *walk, struct level *level)
{
    ssize_t got;

    while ((got = getdents64(level->fd, walk->buffer, sizeof(walk->buffer))) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry = (const void *)(walk->buffer + at);

            at += entry->d_reclen;
            if (text_equal(entry->d_name, ".") || text_equal(entry->d_name, "..")) {
                continue;
            }
            if (walk->names_held + level->names_size >= NAMES_MAX) {
                walk->incomplete = true;
                break;
            }
            level_add(level, entry->d_name, entry->d_type);
        }
    }
    sort(level);
    return got < 0 ? -1 : 0;
}

/* Opens and reads `name` below directory. 0 and a level, or -1 with errno. */
static int level_open(struct walk *walk, int directory, const char *name, struct level *ret_level)
{
    struct level level = { .fd = fd_open_beneath(directory, name, O_RDONLY | O_DIRECTORY, 0) };

    if (level.fd < 0) {
        return -1;
    }
    if (level_read(walk, &level) < 0) {
        int sys = errno;

        level_done(&level);
        errno = sys;
        return -1;
    }
    *ret_level = level;
    return 0;
}

static void push(struct walk *walk, const struct level *level)
{
    if (walk->depth == walk->depth_capacity) {
        walk->depth_capacity = walk->depth_capacity > 0 ? walk->depth_capacity * 2 : 8;
        walk->levels = alloc_resize(walk->levels, walk->depth_capacity, sizeof(*walk->levels));
    }
    if (walk->depth >= OPEN_MAX_LEVELS) {
        fd_clear(&walk->levels[walk->depth - OPEN_MAX_LEVELS].fd);
    }
    walk->levels[walk->depth++] = *level;
    walk->names_held += level->names_size;
}

/* The descriptor of a level that may have been closed on the way down; -1 when it is gone. */
static int level_fd(struct walk *walk, struct level *level)
{
    if (level->fd < 0) {
        CLEANUP_FREE char *path = alloc_copy(walk->path, level->path_length);

        level->fd = fd_open_beneath(walk->root, level->path_length > 0 ? path : PATH_ROOT,
                                    O_PATH | O_DIRECTORY, 0);
    }
    return level->fd;
}

/* walk->path becomes the path of a name in level. False when it is too long to be told. */
static bool set_path(struct walk *walk, const struct level *level, const char *name)
{
    size_t at = level->path_length;
    size_t size = strlen(name) + 1;

    if (at + 1 + size > sizeof(walk->path)) {
        walk->incomplete = true;
        return false;
    }
    if (at > 0) {
        walk->path[at++] = '/';
    }
    memcpy(walk->path + at, name, size);
    return true;
}

static bool skipped(const struct walk *walk)
{
    for (const char *const *skip = walk->skip; skip != NULL && *skip != NULL; skip++) {
        if (text_equal(*skip, walk->path)) {
            return true;
        }
    }
    return false;
}

static unsigned char type_of(int directory, const char *name, unsigned char told)
{
    struct stat status;

    if (told != DT_UNKNOWN) {
        return told;
    }
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
        return DT_REG; /* gone: whoever looks at it finds out */
    }
    return (unsigned char)IFTODT(status.st_mode);
}

/* Gets the level below a directory ready, to be walked after it was told. */
static void prepare_child(struct walk *walk, struct walk_entry *entry)
{
    if (level_open(walk, entry->directory, entry->name, &walk->child) < 0) {
        entry->unreadable = errno != ENOENT;
        return;
    }
    walk->child.path_length = strlen(walk->path);
    walk->descend = true;
}

/* The next name of the top level: 1 told in *ret_entry, 0 passed over. */
static int visit(struct walk *walk, struct level *level, struct walk_entry *ret_entry)
{
    const char *record = level->names + level->order[level->next++];
    bool tell = true;

    if (!set_path(walk, level, record + 1) || skipped(walk)) {
        return 0;
    }
    if (walk->after != NULL && path_compare(walk->path, walk->after) <= 0) {
        /* Behind us, unless the place to go on from is inside it. */
        if (!path_is_beneath(walk->after, walk->path)) {
            return 0;
        }
        tell = false;
    } else {
        walk->after = NULL;
    }
    *ret_entry = (struct walk_entry){ .path = walk->path,
                                      .name = record + 1,
                                      .directory = level_fd(walk, level) };
    if (ret_entry->directory < 0) {
        return 0;
    }
    ret_entry->type = type_of(ret_entry->directory, record + 1, (unsigned char)record[0]);
    if (ret_entry->type == DT_DIR && walk->recursive) {
        prepare_child(walk, ret_entry);
    }
    return tell ? 1 : 0;
}

bool walk_next(struct walk *walk, struct walk_entry *ret_entry)
{
    for (;;) {
        struct level *level;

        if (walk->descend) {
            push(walk, &walk->child);
            walk->child = (struct level){ .fd = -1 };
            walk->descend = false;
        }
        if (walk->depth == 0) {
            return false;
        }
        level = &walk->levels[walk->depth - 1];
        if (level->next == level->count) {
            walk->names_held -= level->names_size;
            level_done(level);
            walk->depth--;
        } else if (visit(walk, level, ret_entry) > 0) {
            return true;
        }
    }
}

void walk_prune(struct walk *walk)
{
    if (walk->descend) {
        level_done(&walk->child);
        walk->descend = false;
    }
}

bool walk_incomplete(const struct walk *walk)
{
    return walk->incomplete;
}

int walk_open(int root, const struct walk_options *options, struct walk **ret_walk, struct err *err)
{
    struct walk *walk = alloc_zero(1, sizeof(*walk));
    bool whole = text_equal(options->start, PATH_ROOT);
    struct level level;

    walk->root = root;
    walk->recursive = options->recursive;
    walk->after = options->after;
    walk->skip = options->skip;
    walk->child.fd = -1;
    if (level_open(walk, root, options->start, &level) < 0) {
        free(walk);
        return fail_errno(err, errno, "the directory cannot be read");
    }
    if (!whole) {
        level.path_length = strlen(options->start);
        memcpy(walk->path, options->start, level.path_length + 1);
    }
    push(walk, &level);
    *ret_walk = walk;
    return 0;
}

void walk_close(struct walk *walk)
{
    if (walk == NULL) {
        return;
    }
    walk_prune(walk);
    while (walk->depth > 0) {
        level_done(&walk->levels[--walk->depth]);
    }
    free(walk->levels);
    free(walk);
}
