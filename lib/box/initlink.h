/* SPDX-License-Identifier: Apache-2.0 */
/*
 * initlink: kernd's end of the connection to kernd-init in a box, and what was heard through it.
 *
 * The peer is our own program, but it lives in the box: whatever comes is checked, bounded, and a
 * malformed message is the same as a lost connection.
 */
#ifndef KERND_BOX_INITLINK_H
#define KERND_BOX_INITLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/base/strv.h"
#include "lib/box/init_wire.h"

/* What kernd-init said so far. */
struct initlink_report {
    bool hello;
    uint32_t landlock_abi; /* the wall that kernd-init puts around the program, 0: none */
    bool has_started;      /* exec was tried */
    bool has_exited;
    bool outside; /* a forked box that is not in its cgroup yet */
    bool lost;    /* the connection ended, or broke the protocol */
    struct init_wire_started started;
    struct init_wire_exited exited;
};

struct initlink {
    int fd; /* non-blocking; stays open when lost, since other threads may send signals */
    int pidfd;
    pid_t pid; /* of kernd-init as the host sees it */
    struct initlink_report report;
    char input[128];
    size_t input_size;
};

struct initlink_program {
    const struct strv *pins; /* see init_wire.h; may be NULL */
    const char *cwd;
    const struct strv *argv;
    const struct strv *environment;
    uint32_t tasks;
    uint32_t driver_fd; /* see init_wire.h */
    uint64_t file_bytes;
};

/* Soft: programs with select(2) break above it; they may raise it themselves. */
#define INITLINK_FILES_SOFT UINT32_C(1024)

#define INITLINK_INIT ((struct initlink){ .fd = -1, .pidfd = -1 })

/*
 * A listening socket `name` in directory dir, mode 0600, for one connection. -1 with err IO. The
 * path's length does not matter (it is bound through /proc/self/fd; unix(7) has 108 bytes).
 */
int initlink_listen(int dir, const char *name, struct err *err);

/* Accepts from a listener that is readable. 0, or -1 IO. */
int initlink_accept(struct initlink *link, int listener, struct err *err);

/* Gives kernd-init the program's 0, 1 and 2 (see INIT_WIRE_IN_IMAGE); ours stay open. 0 or -1 IO.
 */
int initlink_send_streams(const struct initlink *link, const int *fds, struct err *err);

/* Reads and takes in all that is there. Never blocks. Look at link->report after. */
void initlink_hear(struct initlink *link);

/* Sends START; waits at most a few seconds for room. 0, or -1: IO, BAD_VALUE (over 4 MiB). */
int initlink_send_start(struct initlink *link, const struct initlink_program *program,
                        struct err *err);

/* Never blocks. 0 or -1 IO. Any thread. */
int initlink_send_signal(const struct initlink *link, int signal_number, bool all, struct err *err);

/*
 * Takes messages out of data into the report; the number of bytes used (an incomplete message at
 * the end stays). report->lost is set on a malformed or unexpected one. Pure.
 */
size_t initlink_parse(struct initlink_report *report, const void *data, size_t size);

void initlink_done(struct initlink *link);

#endif
