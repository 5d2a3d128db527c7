/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: start the shell of a bash kernel.
 * Owns: nothing.
 * Threads: one.
 * May include: base.
 */
#include "lib/cell/shell_start.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/alloc.h"

/* Descriptors as driver_shell.sh knows them. */
enum shell_fd { SHELL_STDOUT = 250, SHELL_STDERR, SHELL_RECORDS, SHELL_STATUS };

int shell_start_bash(const struct shell_start *start, pid_t *ret_pid)
{
    char *const argv[] = { alloc_text("bash"),
                           alloc_text("--noprofile"),
                           alloc_text("--norc"),
                           alloc_text(start->script),
                           alloc_text(start->state),
                           alloc_printf("%d", start->last_code),
                           NULL };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t set;
    int failed = 0;

    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, SHELL_STDOUT);
    (void)posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, SHELL_STDERR);
    (void)posix_spawn_file_actions_adddup2(&files, start->records, SHELL_RECORDS);
    (void)posix_spawn_file_actions_adddup2(&files, start->status, SHELL_STATUS);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    (void)sigemptyset(&set);
    (void)posix_spawnattr_setsigmask(&attributes, &set);
    failed = posix_spawnp(ret_pid, "bash", &files, &attributes, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attributes);
    for (size_t i = 0; argv[i] != NULL; i++) {
        free(argv[i]);
    }
    return failed;
}
