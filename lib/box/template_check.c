/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: decide whether a process may fork boxes.
 * Owns: the filter programs that it reads.
 * Threads: one, which is what it checks.
 * May include: base, template.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "lib/box/template.h"

#define KERND "/run/kernd/"
#define MAPS_MAX ((size_t)4 * 1024 * 1024)
#define ID_MAP_MAX ((size_t)4096)
#define PINS_BYTES_MAX ((size_t)1024 * 1024)

/* The directory has a link for each thread, beside its own two (fs/proc/base.c, proc_task_getattr).
 */
static bool has_one_thread(void)
{
    struct stat status;

    return stat("/proc/self/task", &status) == 0 && status.st_nlink == 3;
}

/* A map of one user, who is root inside: no host has that, and bwrap gives it to templates. */
static bool is_own_user_namespace(void)
{
    CLEANUP_FREE char *map = fd_read_file("/proc/self/uid_map", ID_MAP_MAX, NULL);
    unsigned inside = 1;
    unsigned outside = 0;
    unsigned count = 0;

    /* NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers */
    return map != NULL && sscanf(map, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 &&
           count == 1 && strchr(map, '\n') != NULL && strchr(map, '\n')[1] == '\0';
}

/* Do the mounts belong to this user namespace? Those of the host belong to the host's. */
static bool are_own_mounts(struct template *template)
{
    CLEANUP_FD int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    CLEANUP_FD int owner = mounts < 0 ? -1 : ioctl(mounts, NS_GET_USERNS);
    struct stat of_mounts;
    struct stat of_owner;
    struct stat own;

    if (owner < 0 || fstat(mounts, &of_mounts) < 0 || fstat(owner, &of_owner) < 0 ||
        stat("/proc/self/ns/user", &own) < 0) {
        return false;
    }
    template->mount_namespace = (uint64_t)of_mounts.st_ino;
    return of_owner.st_dev == own.st_dev && of_owner.st_ino == own.st_ino;
}

/* A descriptor that an import left open would be closed under it in every box. */
static bool has_only_own_descriptors(int connection)
{
    CLEANUP_DIR DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        uint64_t fd = 0;

        if (text_parse_u64(entry->d_name, &fd) == 0 && fd > STDERR_FILENO &&
            fd != (uint64_t)connection && fd != (uint64_t)dirfd(directory)) {
            return false;
        }
    }
    return directory != NULL;
}

/* "start-end rwxs offset device inode path": shared memory that is no file of the system. */
static bool is_shared(const char *line)
{
    const char *mode = strchr(line, ' ');
    const char *path = strchr(line, '/');

    return mode == NULL || strlen(mode) < 5 ||
           (mode[4] == 's' && (mode[2] == 'w' || path == NULL || strncmp(path, "/usr/", 5) != 0));
}

static bool has_no_shared_memory(void)
{
    CLEANUP_FREE char *maps = fd_read_file("/proc/self/maps", MAPS_MAX, NULL);
    char *rest = maps;
    const char *line;

    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        if (is_shared(line)) {
            return false;
        }
    }
    return maps != NULL;
}

static bool read_filter(const char *path, struct template_filter *ret_filter)
{
    size_t size = 0;

    ret_filter->program = fd_read_file(path, TEMPLATE_FILTER_MAX, &size);
    ret_filter->count = (unsigned short)(size / sizeof(struct sock_filter));
    return ret_filter->program != NULL && size > 0 && size % sizeof(struct sock_filter) == 0;
}

static bool read_pins(struct template *template)
{
    size_t size = 0;
    char *pins = fd_read_file(KERND TEMPLATE_WIRE_PINS, PINS_BYTES_MAX, &size);
    char *pin = pins;

    if (pins == NULL || size == 0 || pins[size - 1] != '\0') {
        return false;
    }
    while (pin < pins + size && strchr(pin, '/') != NULL &&
           template->pin_count < TEMPLATE_PINS_MAX) {
        template->pins[template->pin_count++] = pin;
        pin += strlen(pin) + 1;
    }
    return pin == pins + size;
}

const char *template_check(struct template *template, int connection)
{
    if (!is_own_user_namespace() || !are_own_mounts(template)) {
        return "its namespaces are not its own";
    }
    if (!has_one_thread()) {
        return "it has more than one thread";
    }
    if (!has_only_own_descriptors(connection)) {
        return "it holds descriptors open";
    }
    if (!has_no_shared_memory()) {
        return "it has memory that its children would share";
    }
    if (!read_pins(template)) {
        return "it does not know what boxes may reach";
    }
    return read_filter(KERND TEMPLATE_WIRE_FILTER, &template->filter) &&
                   read_filter(KERND TEMPLATE_WIRE_WALLS, &template->walls)
               ? NULL
               : "it has no system call filter";
}

const char *template_check_again(void)
{
    return has_one_thread() ? NULL : "it has more than one thread";
}
