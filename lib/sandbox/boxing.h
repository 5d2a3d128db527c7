/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boxing: from a request to the box it runs in: spec and environment. For lib/sandbox; run threads.
 */
#ifndef KERND_SANDBOX_BOXING_H
#define KERND_SANDBOX_BOXING_H

#include <stdbool.h>

#include "lib/base/cancel.h"
#include "lib/base/err.h"
#include "lib/base/strv.h"
#include "lib/box/box.h"
#include "lib/sandbox/run.h"

struct sandbox;

/* One box to be: borrowed pointers. */
struct boxing {
    struct sandbox *sandbox;
    const struct run_request *request; /* limits, mounts, network, session */
    const char *workspace;             /* host path */
    int root;                          /* the same, open */
    struct cancel *cancel;
    bool driver; /* a program connects back */
    bool bare;   /* nobody has written to the workspace yet, so no packages are there */
    bool ahead;  /* of its call: there is time to import what that wants preloaded */
};

/* As box_start. */
int boxing_start(const struct boxing *boxing, struct box **ret_box, struct err *err);

/* What its box may use. */
struct box_limits boxing_limits(const struct run_request *request);

/* Of a request, for a box; the caller frees it, what it points to is borrowed. */
struct box_mount *boxing_mounts(const struct run_mount *mounts, size_t count);

/* Did a setup of this session install something? */
bool boxing_has_deps(const struct boxing *boxing);

struct boxing_fork {
    int64_t deadline;
    bool prepares; /* box_spec.prepares */
};

/*
 * As boxing_start, but forked of a template (box_fork) that has the request's mounts: its driver
 * is about to connect.
 */
int boxing_fork(const struct boxing *boxing, struct box *template, const struct boxing_fork *how,
                struct box **ret_box, struct err *err);

/* Appends the variables of the request's program, see guest_env.h. */
void boxing_env(const struct boxing *boxing, struct strv *env);

/* Gives the request's secrets to its box, before the program begins. 0 or -1 IO. */
int boxing_secrets(const struct boxing *boxing, struct box *box, struct err *err);

#endif
