/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution_internal: the body of an execution, for lib/sandbox alone.
 *
 * Written by the run thread that owns the execution while it runs; what others read meanwhile
 * (state, waiters) is under the lock. After EXECUTION_DONE nothing changes any more.
 */
#ifndef KERND_SANDBOX_EXECUTION_INTERNAL_H
#define KERND_SANDBOX_EXECUTION_INTERNAL_H

#include <pthread.h>

#include "lib/base/alarm.h"
#include "lib/base/budget.h"
#include "lib/base/feed.h"
#include "lib/base/pool.h"
#include "lib/sandbox/events.h"
#include "lib/sandbox/execution.h"
#include "lib/sandbox/session.h"

struct sandbox;

struct execution {
    char id[SESSION_ID_SIZE];
    char session_id[SESSION_ID_SIZE]; /* "": a one-shot */
    char kernel_id[SESSION_ID_SIZE];  /* "": not a cell */
    struct warm *warm;                /* of a cell: one reference */
    struct execution *next_cell;      /* the kernel's queue */
    atomic_int references;
    struct run_request *request; /* owned */
    struct cancel cancel;
    struct pool_job job;
    struct budget_claim memory; /* of its box; a cell has none of its own */
    struct sandbox *sandbox;    /* borrowed: outlives every execution */
    int64_t queued_ns;
    struct steps steps; /* of whoever has the execution: its submitter, then its run thread */
    int64_t queued_wall_ms;

    struct tape *tape; /* what happens is written here; one reference */
    struct events_sink sink;
    struct feed feed; /* standard input of an interactive one */
    struct alarm_entry queue_alarm;

    pthread_mutex_t lock;
    enum execution_state state;
    bool recorded;   /* its end is */
    struct box *box; /* while its program runs */
    struct execution_waiter *waiters;
    struct run_result result; /* valid once done and failure.code is ERR_NONE */
    struct err failure;

    struct execution *previous; /* the sandbox's list of live ones, under its lock */
    struct execution *next;
};

/* Takes the request over. One reference. NULL with err IO (the request is freed then too). */
struct execution *execution_new(struct sandbox *sandbox, struct run_request *request,
                                struct err *err);

/* Counted among what runs in its session, from here until it leaves it. */
void execution_enter_session(struct execution *execution);

/*
 * It no longer needs the session's files or its environment: gives the holds back. Idempotent; one
 * thread.
 */
void execution_leave(struct execution *execution);

/* QUEUED to RUNNING. */
void execution_set_running(struct execution *execution);

/* The box whose program takes signals from now on; NULL before it ends. */
void execution_set_box(struct execution *execution, struct box *box);

/*
 * The end: failure NULL and execution->result filled, or why there is no result. Calls the waiters
 * on this thread, outside the lock.
 */
void execution_finish(struct execution *execution, const struct err *failure);

#endif
