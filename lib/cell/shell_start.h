/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shell_start: one bash that runs driver_shell.sh, for kernd-shell (shell.c) alone.
 */
#ifndef KERND_CELL_SHELL_START_H
#define KERND_CELL_SHELL_START_H

#include <sys/types.h>

struct shell_start {
    const char *script; /* driver_shell.sh */
    const char *state;  /* path of what the shell before has saved */
    int last_code;      /* the first $? */
    int records;        /* the shell reads what to run from here */
    int status;         /* and tells exit codes here */
};

/*
 * In a process group of its own, with no signal blocked; both descriptors stay the caller's. 0, or
 * an errno value.
 */
int shell_start_bash(const struct shell_start *start, pid_t *ret_pid);

#endif
