/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels: warm interpreters of sessions, as callers see them. Any thread but the event one.
 *
 * Cells of one kernel run one after the other, in the order they came; each is an execution. A
 * kernel is a use of its session until it is dead or frozen: then the session's own idle time
 * begins, at whose end the kernel goes with it.
 */
#ifndef KERND_SANDBOX_KERNELS_H
#define KERND_SANDBOX_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/sandbox/execution.h"
#include "lib/sandbox/session.h"

struct sandbox;

enum kernels_state {
    KERNELS_STARTING,
    KERNELS_IDLE,
    KERNELS_BUSY,
    KERNELS_FROZEN, /* idle for long: its processes are stopped, the next cell wakes them */
    KERNELS_DEAD,
};
const char *kernels_state_text(enum kernels_state state);

/* On whose behalf, and which kernel. Borrowed. */
struct kernels_name {
    struct session_actor actor;
    const char *session_id;
    const char *id;
};

struct kernels_options {
    enum run_language language;
    double timeout_s;      /* of each cell that has none of its own; 0: the session's */
    double idle_timeout_s; /* then it is frozen; 0: never */
    double ttl_s;          /* after the last cell: then it is closed; 0: never */
};
#define KERNELS_IDLE_TIMEOUT_S 600.0
#define KERNELS_TTL_S 3600.0

struct kernels_view {
    char id[SESSION_ID_SIZE];
    char session_id[SESSION_ID_SIZE];
    char language[16];
    char interpreter[64]; /* "python 3.11.2", "" until it is known */
    enum kernels_state state;
    char reason[256]; /* why it is dead; "" */
    uint64_t cells;   /* begun */
    size_t queued;
    int64_t memory_bytes; /* now; -1: not known */
    double timeout_s;
    double idle_timeout_s;
    double ttl_s;
    int64_t created_ms;
    int64_t used_ms;
    int64_t ended_ms; /* 0: it lives */
};

/* Waits for an opening or restart. */
struct kernels_waiter {
    /*
     * Called once, on any thread, which it must not hold up. failure NULL: the interpreter is idle.
     * Else why not: BOX_START_FAILED ..., KERNEL_DEAD (it was removed meanwhile).
     */
    void (*done)(struct kernels_waiter *waiter, const struct err *failure);
    struct kernels_waiter *next; /* the kernel's own */
};

/*
 * Makes a kernel; its box starts on a run thread, and the waiter is called when that has ended:
 * after a failure nothing is left of the kernel. A kernel by the same id that was lost with an
 * earlier server is replaced. 0, or -1 KERNEL_EXISTS, SESSION_NOT_FOUND, QUEUE_FULL,
 * LIMIT_EXCEEDS_MAXIMUM, TOO_MANY_REQUESTS (too many kernels): the waiter is not called then.
 */
int kernels_open(struct sandbox *sandbox, const struct kernels_name *name,
                 const struct kernels_options *options, struct kernels_waiter *waiter,
                 struct err *err);

/* Nobody is interested in it any more: begins its end, and waits for nothing. Any thread. */
void kernels_abandon(struct sandbox *sandbox, const char *session_id, const char *id);

/* -1 KERNEL_NOT_FOUND, SESSION_NOT_FOUND; KERNEL_LOST: it ended with a server before this one. */
int kernels_get(struct sandbox *sandbox, const struct kernels_name *name,
                struct kernels_view *ret_view, struct err *err);

struct kernels_list {
    struct kernels_view *items;
    size_t count;
};
void kernels_list_done(struct kernels_list *list);
int kernels_list(struct sandbox *sandbox, const struct session_actor *actor, const char *session_id,
                 struct kernels_list *ret_list, struct err *err);

/*
 * Queues a cell: request->kind is RUN_CELL, request->cell_session and request->cell_kernel say of
 * which kernel; of its limits time and output count, and 0 means the kernel's. Takes the request
 * over. The execution with one reference, or NULL with KERNEL_DEAD (the message tells why it died),
 * KERNEL_LOST, KERNEL_NOT_FOUND, QUEUE_FULL, LIMIT_EXCEEDS_MAXIMUM.
 */
struct execution *kernels_submit(struct sandbox *sandbox, struct run_request *request,
                                 struct err *err);

/*
 * Interrupts the cell that runs, if one does: *ret_cell is its execution (one reference), NULL when
 * none runs. Its end tells what happened: fault none, it ended by itself before; else the state was
 * kept, or after KERNEL_GRACE_MS the kernel had to be killed.
 */
int kernels_interrupt(struct sandbox *sandbox, const struct kernels_name *name,
                      struct execution **ret_cell, struct err *err);

/*
 * Kills what runs, drops what is queued (both end with the fault `cancelled`), starts a clean
 * interpreter under the same id. The waiter is called as by kernels_open; a failure leaves the
 * kernel dead. 0, or -1 KERNEL_NOT_FOUND, KERNEL_LOST, KERNEL_DEAD (it is being removed): the
 * waiter is not called then.
 */
int kernels_restart(struct sandbox *sandbox, const struct kernels_name *name,
                    struct kernels_waiter *waiter, struct err *err);

/*
 * Ends and forgets it, whether it is there or not; the waiter is called, perhaps at once, when that
 * is done (its failure says nothing then). 0, or -1 SESSION_NOT_FOUND, IO: the waiter is not
 * called.
 */
int kernels_delete(struct sandbox *sandbox, const struct kernels_name *name,
                   struct kernels_waiter *waiter, struct err *err);

#endif
