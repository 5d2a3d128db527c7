/* SPDX-License-Identifier: Apache-2.0 */
/*
 * box: one fresh kernel-isolated box, from launch to gone.
 *
 *     box_start    launch; returns when kernd-init inside is up and waits (a spare is a box here)
 *     box_begin    hand over the program: argv, environment, working directory, limits
 *     box_driver   the connection of the driver program, if the spec asked for one
 *     box_pump     move stdin/stdout/stderr and watch everything until something ends it
 *     box_end      kill what is left, verify it is gone, tell the outcome by evidence; in two parts
 *                  for who wants the outcome early: box_end_settle, box_end_leave
 *
 * The process must ignore SIGPIPE (programs may stop reading their stdin). Linux 5.9 is the floor
 * (see spawn.h). A box belongs to one thread at a time; box_signal may be called by any thread
 * while it lives. The thread that calls box_start must not end before the box (PR_SET_PDEATHSIG is
 * per thread, prctl(2)).
 */
#ifndef KERND_BOX_BOX_H
#define KERND_BOX_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/buf.h"
#include "lib/base/cancel.h"
#include "lib/base/err.h"
#include "lib/base/feed.h"
#include "lib/base/sink.h"
#include "lib/base/steps.h"
#include "lib/base/strv.h"

struct box;
struct boxes; /* the factory, boxes.h: engine, runtime directory, seccomp program, cgroup tree */

/*
 * What must be found at a mount point, by stat(2), or the program does not start (ESTALE):
 * launchers take paths, and between our look and theirs a box that can write there may have put a
 * link in the way. inode 0: not looked at.
 */
struct box_pin {
    uint64_t device;
    uint64_t inode;
};

struct box_mount {
    const char *source; /* host path, already validated and resolved */
    const char *target; /* absolute path in the box */
    bool writable;
    struct box_pin pin;
};

struct box_limits {
    uint64_t memory_bytes; /* 0: no cap */
    uint32_t pids;         /* 0: no cap; the box's own kernd-init is not counted */
    double cpus;           /* 0: no cap */
    uint64_t disk_bytes;   /* workspace quota, 0: no cap */
};

/* What only an engine with images can do; all may be NULL. Texts and lists fit their grammars. */
struct box_extras {
    const char *image;            /* NULL: the server's default */
    const char *security_profile; /* "untrusted" */
    const char *apparmor;         /* a profile that the host has loaded */
    const struct strv *profiles;  /* "vcpu:NAME", ... of the engine's own configuration */
    const struct strv *egress;    /* the only domains that the box reaches */
    const struct strv *cap_drop;  /* NULL: ALL */
};

/* What a box is made of. Borrowed; read only during box_start. */
struct box_spec {
    const char *engine; /* "bubblewrap" or "kern", NULL: the server's default */
    struct box_extras extras;
    const char *workspace; /* host directory mounted at /workspace */
    bool workspace_readonly;
    struct box_pin workspace_pin;
    const struct box_mount *mounts;
    size_t mount_count;
    struct box_limits limits;
    bool network; /* false: a loopback of its own only. true: the host's network */
    bool driver;  /* make driver.sock for a program that connects back */
    /*
     * Not NULL: make a template (box_fork). The host directory that has the workspaces of the boxes
     * to be forked; if `workspace` is set as well, they all have that one. Their mounts are those
     * of the template, which must be at places that a template doesn't need (lib/sandbox knows).
     * The texts must live as long as the template.
     */
    const char *fork_workspaces;
    const char
        *fork_layers;      /* of a template: the host directory that has its boxes' environments */
    bool prepares;         /* of box_fork: cell_boot_forked has something to say to the driver */
    bool ahead;            /* of box_fork: its code may take a while to come */
    int64_t deadline;      /* clock.h: when to give up starting it; not the box's own end */
    struct cancel *cancel; /* gives up starting too; may be NULL */
};

/* The program to run. Borrowed; read only during box_begin. */
struct box_program {
    const struct strv *argv; /* argv[0] is looked up in PATH inside the box if it has no slash */
    const struct strv *env; /* "K=V"; added to the box's base environment (PATH, HOME, LANG, ...) */
    const char *cwd;        /* absolute path in the box; NULL: /workspace */
    const char *code; /* NULL, or text that becomes the read-only file /run/kernd/<code_name> */
    size_t code_size;
    const char *code_name; /* "cell.py" */
    int driver_fd;         /* the driver's connection is made for it, under this number; 0: not */
};

enum box_stop {
    BOX_STOP_EXITED,    /* the program ended by itself */
    BOX_STOP_PEER_DONE, /* peer_ready said so (a kernel's cell is complete); the box lives on */
    BOX_STOP_PEER_LOST, /* the driver closed or broke its connection */
    BOX_STOP_DEADLINE,
    BOX_STOP_CANCELLED,
    BOX_STOP_OOM,  /* the memory watchdog found the box above its cap */
    BOX_STOP_DISK, /* the workspace went above its quota */
    BOX_STOP_LOST, /* kernd-init vanished without a report: killed from outside */
};

/* One round of moving bytes. Filled by the caller; captures and counters are written by box_pump.
 */
struct box_io {
    const void *stdin_data; /* written to the program, then its stdin is closed; NULL: empty */
    size_t stdin_size;
    bool keep_stdin;   /* this round leaves stdin alone: a later one writes it */
    struct feed *feed; /* not NULL: what comes behind stdin_data, until the feed ends */
    struct sink *sink; /* live events, may be NULL */
    size_t max_output; /* per stream: bytes kept and emitted; the rest is read and dropped */
    struct buf *capture_stdout; /* may be NULL; their own max must be >= max_output */
    struct buf *capture_stderr;
    bool truncated_stdout;
    bool truncated_stderr;
    uint64_t total_stdout; /* bytes the program wrote, kept or not */
    uint64_t total_stderr;
    int64_t deadline; /* clock.h */
    struct cancel *cancel;
    /*
     * An extra connection to watch (the driver's), -1 for none. peer_ready is called when it is
     * readable: 0 go on, 1 the round is complete (output already in the pipes is still read), -1
     * the peer is gone or broke the protocol.
     */
    int peer_fd;
    int (*peer_ready)(void *peer);
    void *peer;
    /* Whoever hands the program over before a round marks that here (STEP_SEND); may be NULL. */
    struct steps *steps;
};

/* What is known about a box that ended. Numbers that could not be measured are negative. */
struct box_outcome {
    bool started;    /* the program's exec succeeded */
    int wait_status; /* of the program, wait(2) form; valid if has_status */
    bool has_status;
    int start_errno; /* why exec failed (the program then "exits" 127 or 126) */
    bool oom;        /* by evidence: cgroup event or the watchdog's own kill */
    bool disk_full;
    bool escape_blocked; /* the program died of SIGSYS, as kernd-init saw it */
    char evidence[160];  /* for oom, disk_full, escape_blocked, start failures: what shows it */
    int64_t started_ns;  /* monotonic time of the program's exec, 0 if never */
    int64_t ended_ns;
    int64_t cpu_user_us;
    int64_t cpu_system_us;
    int64_t peak_memory_bytes;
    int64_t peak_pids;
    bool gone; /* every process of the box but kernd-init verified dead */
};

/* How each limit is enforced for this box: "cgroup", "watchdog", "rlimit", "measured" or "none". */
struct box_enforced {
    const char *memory;
    const char *pids;
    const char *cpu;
    const char *disk;
};

/*
 * Launches a box and waits for kernd-init's hello. 0, or -1: BOX_START_FAILED (with the launcher's
 * own words), ENGINE_UNAVAILABLE, CANCELLED, DEADLINE, IO. On failure nothing is left behind.
 */
int box_start(struct boxes *boxes, const struct box_spec *spec, struct box **ret_box,
              struct err *err);

/* Starts the program. 0, or -1 IO/BOX_START_FAILED. Returns before exec; its result comes by pump.
 */
int box_begin(struct box *box, const struct box_program *program, struct err *err);

/*
 * As box_start and box_begin in one, out of a template: a box made with spec.fork_workspaces whose
 * driver is up (box_driver). The new box has its driver running, which is about to connect; its
 * workspace is a directory right below the template's, or the template's own; it has no network.
 * It has the template's mounts, and of spec->mounts at most these, read-only: a directory right
 * below the workspace at its own place, and one right below the template's fork_layers at
 * /run/environment. Limits and what is seen inside are as with box_start. Many threads may fork of
 * one template at once; it must not be ended before the box is (box_fork_count). 0, or -1: as
 * box_start, with BOX_START_FAILED when the template can't (err->sys is ESTALE where what is to be
 * mounted is not what the caller looked at); nothing was run then.
 */
int box_fork(struct box *template, const struct box_spec *spec, struct box **ret_box,
             struct err *err);

/* How many boxes that were forked of it are there now. Any thread. */
size_t box_fork_count(const struct box *template);

/* No box is forked of it any more; those there are live on. Then box_end, when there are none. */
void box_fork_close(struct box *template);

/*
 * Accepts the one connection of the driver (spec.driver), checks that the peer is in this box, then
 * removes the socket so that no second one can come. The fd stays the box's. -1 with err on
 * deadline, cancel, or when the program ended first.
 */
int box_driver(struct box *box, int64_t deadline, struct cancel *cancel, struct err *err);

/*
 * Makes the bytes the file /run/secrets/<name> of the box, mode 0400. Before its program begins, or
 * at least before it looks. name: one component. 0 or -1 IO.
 */
int box_put_secret(struct box *box, const char *name, const void *data, size_t size,
                   struct err *err);

/*
 * Makes the text the read-only file /run/kernd/<name> in the box. 0 or -1 IO. For a program that is
 * to be begun, box_program does it.
 */
int box_put_code(struct box *box, const char *name, const char *code, size_t size, struct err *err);

/*
 * A spare gets the limits of its one call, none above those it was started with: a box that waits
 * for its program, or whose driver connected and waits. Its time counts from now. 0 or -1 IO (then
 * it is of no use).
 */
int box_rearm(struct box *box, const struct box_limits *limits, struct err *err);

/*
 * Runs until one of enum box_stop; may be called again for the next round (kernels). Drains stdout
 * and stderr always, whatever the caps. Emits SINK_STARTED once, at the program's exec.
 */
enum box_stop box_pump(struct box *box, struct box_io *io);

/* Sends a signal to the program's own process (group: false) or to all the box's processes. 0/-1.
 */
int box_signal(struct box *box, int signal_number, bool all, struct err *err);

/*
 * The first half of box_end: returns as soon as no process of the box runs any more but kernd-init,
 * by its own word (it has killed and reaped all others: nothing writes, and usage is final), or
 * else when all are gone. What is left then is the kernel's work of taking namespaces down, which
 * nobody need wait for. box_end_leave must follow, on a thread that may wait.
 */
void box_end_settle(struct box *box, struct box_io *io, struct box_outcome *ret_outcome);

/*
 * The second half: waits until everything is gone, and frees the box. False: something may still be
 * there. NULL is fine (true).
 */
bool box_end_leave(struct box *box);

/*
 * Kills whatever is left, reads the pipes dry into io (may be NULL) within a bounded time, waits
 * until every process is gone, reads usage, and frees the box. Never fails; takes at most a few
 * seconds even when the kernel is slow to kill.
 */
void box_end(struct box *box, struct box_io *io, struct box_outcome *ret_outcome);

/*
 * For a box that nobody pumps now: EXITED, LOST, OOM (it outgrew its memory, to be ended), or
 * PEER_DONE: it lives on. Reads a little of /proc, waits for nothing.
 */
enum box_stop box_look(struct box *box);

/*
 * The next round may be over in a few milliseconds: it is watched only from then on. box_look, soon
 * after it, makes up for that.
 */
void box_expect_short(struct box *box);

/*
 * Stops all processes of a box, or wakes them again: kernd-init obeys within about a millisecond. A
 * frozen box can be ended as any other. 0, or -1 IO.
 */
int box_freeze(struct box *box, bool frozen, struct err *err);

/*
 * Resident bytes of all processes of the box now, pages that they share counted for each; -1: can't
 * be told here. Any thread while the box lives.
 */
int64_t box_memory(const struct box *box);

/* Is the program still running, as far as kernd-init told? Reads what it said meanwhile. */
bool box_lives(struct box *box);

void box_enforced(const struct box *box, struct box_enforced *ret_enforced);
const char *box_id(const struct box *box);
pid_t box_init_pid(const struct box *box); /* host pid of kernd-init */

#endif
