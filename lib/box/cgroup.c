/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: files of the cgroup v2 tree: finding ours, making, limiting, reading, removing children.
 * Owns: the open directory of the subtree.
 * Threads: any; cgroup_open before there are others.
 * May include: base.
 */
#include "lib/box/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cgroupdir.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"

#define MAIN "main"
#define BOX_PREFIX "box_" /* of every box's id */
#define SMALL_FILE ((size_t)64 * 1024)
/* cpu.max is a quota per period; the kernel's default period. */
#define CPU_PERIOD_US 100000
/* Several times what kernd takes itself. */
#define OWN_MEMORY "64M"

static int put(int directory, const char *name, const char *text)
{
    CLEANUP_FD int fd = openat(directory, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0) {
        return -1;
    }
    return write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* A whole small file as a fresh text, NULL with errno. */
static char *get(int directory, const char *name)
{
    CLEANUP_BUF struct buf text = BUF_INIT(SMALL_FILE);
    CLEANUP_FD int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 || fd_read_to_end(fd, &text, NULL) < 0) {
        return NULL;
    }
    return text.size == 0 ? alloc_text("") : buf_take(&text, NULL);
}

/* The number behind "name " at the start of a line, or alone if name is ""; -1 when not there. */
static int64_t number_in(const char *text, const char *name)
{
    size_t name_size = strlen(name);

    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *end = strchrnul(line, '\n');

        if (strncmp(line, name, name_size) == 0 && (name_size == 0 || line[name_size] == ' ')) {
            const char *digits = line + name_size + (name_size > 0 ? 1 : 0);
            CLEANUP_FREE char *number = alloc_copy(digits, (size_t)(end - digits));
            uint64_t value;

            return text_parse_u64(number, &value) < 0 || value > INT64_MAX ? -1 : (int64_t)value;
        }
        line = *end == '\0' ? end : end + 1;
    }
    return -1;
}

static int64_t read_number(int directory, const char *file, const char *name)
{
    CLEANUP_FREE char *text = get(directory, file);

    return text == NULL ? -1 : number_in(text, name);
}

/* ---- finding our place ---- */

/* A cgroup that nobody gave us, and that others are in, is not ours to arrange. */
static bool may_arrange(const struct cgroupdir *own, const char *path, bool in_main)
{
    return cgroupdir_writable(path) && !own->top &&
           (in_main || cgroupdir_delegated(path) || cgroupdir_alone(path));
}

static int open_own(struct cgroup_tree *tree)
{
    struct cgroupdir own;
    bool in_main;

    cgroupdir_find(&own);
    if (own.path == NULL) {
        (void)snprintf(tree->why, sizeof(tree->why), "there is no cgroup v2 hierarchy");
        return -1;
    }
    /* One that was started again, or by a program that an earlier kernd moved, is in main/ already.
     */
    in_main = text_ends_with(own.path, "/" MAIN);
    if (in_main) {
        own.path[strlen(own.path) - strlen("/" MAIN)] = '\0';
    }
    if (may_arrange(&own, own.path, in_main)) {
        tree->fd = open(own.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    cgroupdir_done(&own);
    if (tree->fd < 0) {
        (void)snprintf(tree->why, sizeof(tree->why), "the cgroup kernd runs in is not its own");
        return -1;
    }
    /* A second kernd in the same unit would sweep away the boxes of the first. */
    if (flock(tree->fd, LOCK_EX | LOCK_NB) < 0) {
        (void)snprintf(tree->why, sizeof(tree->why), "another kernd uses the same cgroup");
        fd_clear(&tree->fd);
        return -1;
    }
    return 0;
}

/* All processes of the own cgroup (kernd, and a shell that waits for it, say) go into main/. */
static int move_out(struct cgroup_tree *tree)
{
    CLEANUP_FREE char *processes = get(tree->fd, "cgroup.procs");
    char *save = NULL;

    if (mkdirat(tree->fd, MAIN, 0755) < 0 && errno != EEXIST) {
        return -1;
    }
    for (char *line = processes == NULL ? NULL : strtok_r(processes, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        /* One that ended meanwhile is no failure. */
        if (put(tree->fd, MAIN "/cgroup.procs", line) < 0 && errno != ESRCH) {
            return -1;
        }
    }
    return 0;
}

static bool hand_on(const struct cgroup_tree *tree, const char *available, const char *name)
{
    CLEANUP_FREE char *order = alloc_printf("+%s", name);
    const char *found = strstr(available, name);

    return found != NULL && put(tree->fd, "cgroup.subtree_control", order) == 0;
}

static void sweep(struct cgroup_tree *tree)
{
    CLEANUP_DIR DIR *directory =
        fd_take_dir(openat(tree->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const struct dirent *entry;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (text_starts_with(entry->d_name, BOX_PREFIX)) {
            int box = openat(tree->fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

            (void)cgroup_remove(tree, entry->d_name, box, clock_deadline_after_s(1));
        }
    }
}

void cgroup_open(struct cgroup_tree *ret_tree)
{
    CLEANUP_FREE char *available = NULL;

    *ret_tree = (struct cgroup_tree){ .fd = -1 };
    if (open_own(ret_tree) < 0) {
        return;
    }
    if (move_out(ret_tree) < 0) {
        (void)snprintf(ret_tree->why, sizeof(ret_tree->why), "kernd can't move into a leaf: %s",
                       err_errno_text(errno));
        fd_clear(&ret_tree->fd);
        return;
    }
    sweep(ret_tree);
    available = get(ret_tree->fd, "cgroup.controllers");
    if (available != NULL) {
        ret_tree->memory = hand_on(ret_tree, available, "memory");
        ret_tree->pids = hand_on(ret_tree, available, "pids");
        ret_tree->cpu = hand_on(ret_tree, available, "cpu");
        /* The controller alone is no weight: that takes a policy of the kernel's (iocost). */
        ret_tree->io = hand_on(ret_tree, available, "io") &&
                       faccessat(ret_tree->fd, MAIN "/io.weight", W_OK, 0) == 0;
    }
    if (ret_tree->memory) {
        (void)put(ret_tree->fd, MAIN "/memory.min", OWN_MEMORY);
    }
    ret_tree->peaks = faccessat(ret_tree->fd, MAIN "/memory.peak", F_OK, 0) == 0;
}

void cgroup_close(struct cgroup_tree *tree)
{
    fd_clear(&tree->fd);
}

/* ---- boxes ---- */

static int put_count(int fd, const char *file, uint64_t value)
{
    CLEANUP_FREE char *text =
        value == 0 ? alloc_text("max") : alloc_printf("%llu", (unsigned long long)value);

    return put(fd, file, text);
}

/* A disk without a policy for it refuses the weight, which is as good as none. */
static void put_weight(int fd)
{
    CLEANUP_FREE char *text = alloc_printf("%u", CGROUP_IO_WEIGHT);

    (void)put(fd, "io.weight", text);
}

static int put_cpus(int fd, double cpus)
{
    CLEANUP_FREE char *text = cpus > 0
                                  ? alloc_printf("%.0f %d", cpus * CPU_PERIOD_US, CPU_PERIOD_US)
                                  : alloc_printf("max %d", CPU_PERIOD_US);

    return put(fd, "cpu.max", text);
}

/* No swap, and a box dies whole: a program with half of its processes killed tells nonsense. */
static int put_memory(int fd, uint64_t bytes)
{
    if (put_count(fd, "memory.max", bytes) < 0 || put(fd, "memory.oom.group", "1") < 0) {
        return -1;
    }
    /* Not there without swap accounting: then there is no swap to use either. */
    return put(fd, "memory.swap.max", "0") < 0 && errno != ENOENT ? -1 : 0;
}

int cgroup_limit(const struct cgroup_tree *tree, int fd, const struct cgroup_limits *limits,
                 struct err *err)
{
    uint64_t tasks = limits->pids == 0 ? 0 : (uint64_t)limits->pids + limits->own_tasks;

    if ((tree->memory && put_memory(fd, limits->memory_bytes) < 0) ||
        (tree->pids && put_count(fd, "pids.max", tasks) < 0) ||
        (tree->cpu && put_cpus(fd, limits->cpus) < 0)) {
        return err_set(err, ERR_IO, errno, "the box's cgroup takes no limits: %s",
                       err_errno_text(errno));
    }
    if (tree->io) {
        put_weight(fd);
    }
    return 0;
}

int cgroup_make(const struct cgroup_tree *tree, const char *id, const struct cgroup_limits *limits,
                int *ret_fd, struct err *err)
{
    CLEANUP_FD int fd = -1;
    bool made = mkdirat(tree->fd, id, 0755) == 0;

    if (made) {
        fd = openat(tree->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0) {
        (void)err_set(err, ERR_IO, errno, "the box's cgroup can't be made: %s",
                      err_errno_text(errno));
    }
    if (fd < 0 || cgroup_limit(tree, fd, limits, err) < 0) {
        if (made) {
            (void)unlinkat(tree->fd, id, AT_REMOVEDIR);
        }
        return -1;
    }
    *ret_fd = CLEANUP_TAKE_FD(fd);
    return 0;
}

int64_t cgroup_oom_kills(const struct cgroup_tree *tree, int fd)
{
    return tree->memory ? read_number(fd, "memory.events", "oom_kill") : -1;
}

void cgroup_read(const struct cgroup_tree *tree, int fd, struct cgroup_usage *ret_usage)
{
    CLEANUP_FREE char *cpu = get(fd, "cpu.stat");

    *ret_usage = (struct cgroup_usage){
        .cpu_user_us = cpu == NULL ? -1 : number_in(cpu, "user_usec"),
        .cpu_system_us = cpu == NULL ? -1 : number_in(cpu, "system_usec"),
        .memory_bytes = tree->memory ? read_number(fd, "memory.current", "") : -1,
        .peak_memory_bytes = tree->peaks ? read_number(fd, "memory.peak", "") : -1,
        .peak_pids = tree->pids ? read_number(fd, "pids.peak", "") : -1,
        .oom_kills = cgroup_oom_kills(tree, fd),
    };
}

int cgroup_enter(int fd, pid_t pid)
{
    CLEANUP_FREE char *text = alloc_printf("%d", (int)pid);

    return put(fd, "cgroup.procs", text);
}

int cgroup_kill(int fd)
{
    return put(fd, "cgroup.kill", "1");
}

int cgroup_freeze(int fd, bool frozen)
{
    return put(fd, "cgroup.freeze", frozen ? "1" : "0");
}

bool cgroup_populated(int fd)
{
    return read_number(fd, "cgroup.events", "populated") != 0;
}

/* cgroup.events tells its changes by POLLPRI; populated is read again after each. */
static void wait_empty(int fd, int64_t deadline)
{
    CLEANUP_FD int events = openat(fd, "cgroup.events", O_RDONLY | O_CLOEXEC);

    while (events >= 0 && cgroup_populated(fd) && !clock_passed(deadline)) {
        struct pollfd watched = { .fd = events, .events = POLLPRI };
        char seen[256];

        (void)!pread(events, seen, sizeof(seen), 0); /* only so that its next change is told */
        (void)poll(&watched, 1, clock_poll_ms(deadline, 20));
    }
}

bool cgroup_remove(const struct cgroup_tree *tree, const char *id, int fd, int64_t deadline)
{
    CLEANUP_FD int own = fd;

    if (unlinkat(tree->fd, id, AT_REMOVEDIR) == 0 || errno == ENOENT) {
        return true;
    }
    if (own >= 0) {
        (void)cgroup_kill(own);
        wait_empty(own, deadline);
    }
    return unlinkat(tree->fd, id, AT_REMOVEDIR) == 0 || errno == ENOENT;
}
