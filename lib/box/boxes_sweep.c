/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: remove what a killed predecessor left behind: launchers that live on, per-box directories.
 * Owns: nothing.
 * Threads: one, at start, when the runtime directory is locked.
 * May include: base, proctree, tree.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/box/boxes_internal.h"
#include "lib/box/proctree.h"
#include "lib/box/tree.h"

#define ARGUMENTS_MAX ((size_t)1024 * 1024)

/*
 * Is this a launcher with a box beneath this directory? Its first argument tells, which is ours
 * (engine.h); its file may have any name. Parts of /proc/PID/cmdline are divided by NUL bytes.
 */
static bool is_launcher(const char *pid, const char *boxes_part)
{
    CLEANUP_FREE char *path = alloc_printf("/proc/%s/cmdline", pid);
    CLEANUP_FREE char *content = NULL;
    size_t size = 0;

    content = fd_read_file(path, ARGUMENTS_MAX, &size);
    return content != NULL && size > 0 &&
           (text_equal(content, engine_bwrap.launcher_name) ||
            text_equal(content, engine_kern.launcher_name)) &&
           memmem(content, size, boxes_part, strlen(boxes_part)) != NULL;
}

static void kill_tree(pid_t pid)
{
    struct proctree tree = { .pids = alloc_zero(PROCTREE_MAX, sizeof(pid_t)) };

    proctree_list(pid, &tree);
    for (size_t i = 0; i < tree.count; i++) {
        (void)kill(tree.pids[i], SIGKILL);
    }
    (void)kill(pid, SIGKILL);
    free(tree.pids);
}

/*
 * Of any engine: the predecessor may have had another one.
 * Launchers die with the thread that started them (PR_SET_PDEATHSIG), and boxes with their
 * launcher. One that lives on all the same has its per-box directory in its arguments.
 */
static void kill_launchers(const char *boxes_dir)
{
    CLEANUP_FREE char *part = alloc_printf("%s/box_", boxes_dir);
    CLEANUP_DIR DIR *list = opendir("/proc"); /* close-on-exec, as glibc does */
    struct dirent *entry = NULL;

    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0]) && is_launcher(entry->d_name, part)) {
            uint64_t pid = 0;

            log_line(LOG_DEBUG, "launcher_swept", LOG_NUMBER "pid", entry->d_name, NULL);
            if (text_parse_u64(entry->d_name, &pid) == 0) {
                kill_tree((pid_t)pid);
            }
        }
    }
}

void boxes_sweep(int boxes_fd, const char *boxes_dir)
{
    CLEANUP_DIR DIR *list = fd_take_dir(openat(boxes_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct dirent *entry = NULL;
    bool clean = true;

    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (entry->d_name[0] != '.') {
            if (clean) {
                kill_launchers(boxes_dir);
            }
            clean = false;
            (void)tree_remove(boxes_fd, entry->d_name);
        }
    }
}
