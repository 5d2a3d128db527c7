/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: the parts of kernd-init, the static program that is PID 1 of every box.
 *
 * It keeps no descriptor that the program could inherit and is not dumpable, so that the program,
 * which runs under the same user id, can neither read nor steer it (PR_SET_DUMPABLE in prctl(2),
 * "ptrace access mode checking" in ptrace(2)). Signals from inside can't end PID 1 either
 * (pid_namespaces(7)).
 */
#ifndef KERND_BOX_INIT_H
#define KERND_BOX_INIT_H

#include <sys/types.h>

#include "lib/box/init_wire.h"

/* PID 1 of a box and its one program. */
struct init_reaper {
    int connection; /* to kernd */
    bool in_image;  /* see INIT_WIRE_IN_IMAGE */
    int children;   /* signalfd for SIGCHLD */
    pid_t program;
    int wait_status;
    bool ended;
    bool alone; /* nobody else is left in the box */
};

/*
 * Blocks SIGCHLD, and no other signal, whatever was blocked before; opens a signalfd for it. The
 * other fields are the caller's to fill.
 */
bool init_reaper_open(struct init_reaper *reaper);

/*
 * Reaps, forwards signals and reports, until the program has ended. outlasts: what the program
 * leaves running is not killed, and goes on as long as the connection does. False: the connection
 * ended before the program did.
 */
bool init_reaper_run(struct init_reaper *reaper, bool outlasts);

/* The program as asked for; the vectors' strings live in the received message. */
struct init_program {
    struct init_wire_start limits;
    const char *cwd;
    char **pins;
    char **argv; /* NULL-terminated */
    char **environment;
};

/*
 * Waits for the START message, which stays for the life of the process. False: the connection ended
 * or broke the protocol.
 */
bool init_receive_start(int connection, struct init_program *ret_program);

/* Takes the program's streams from the connection as 0, 1 and 2. False: they did not come. */
bool init_receive_streams(int connection);

/*
 * What the program gets of this process's own environment: all that START does not set anew. Only
 * pointers are copied.
 */
char **init_receive_merge(char **own, char **given);

/* Sends one message; false when the connection is gone. */
bool init_send(int connection, enum init_wire_type type, const void *body, size_t size);

/* Default dispositions and an empty mask: neither what PID 1 blocks nor what launchers ignore. */
void init_state_signals(void);

/* Lowers limits to these, never raises one. */
void init_state_limits(const struct init_wire_start *limits);

/* File mode mask, a session of its own. */
void init_state_process(void);

/*
 * The second wall (landlock(7)): whatever is mounted in the box, the program and its children reach
 * files only beneath the places that kernd means a box to have; and no abstract socket nor process
 * outside of what it started itself (Linux 6.12). Of the kernels that have Landlock, those before
 * 5.19 could not allow a rename from one directory to another, so there it stays off.
 *
 * init_landlock_prepare makes the ruleset, without the caller's mounts: the ABI and a descriptor,
 * or 0 and -1 where this kernel has none. in_image: all that is in the box may be read and run.
 * init_landlock_enter adds those and confines this process; 0 or -1 with errno.
 */
uint32_t init_landlock_prepare(bool in_image, int *ret_ruleset);
int init_landlock_enter(int ruleset, char *const *pins);

/*
 * Makes the program's process, in this one's memory as vfork(2) does: no page is copied, and it
 * returns when the program is executed, or the child ended before. ruleset: of
 * init_landlock_prepare, -1: none. *ret_errno is 0, or the reason why no program runs, of which a
 * line went to its stderr; then the child, if one was made, ends with 127 (not found) or 126. The
 * process id, or -1.
 */
pid_t init_child_start(const struct init_program *program, int ruleset, int *ret_errno);

#endif
