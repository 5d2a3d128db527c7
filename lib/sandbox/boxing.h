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
#include "lib/sandbox/run.h"

struct box;
struct sandbox;

/* One box to be: borrowed pointers. */
struct boxing {
    struct sandbox *sandbox;
    const struct run_request *request; /* limits, mounts, network, session */
    const char *workspace;             /* host path */
    int root;                          /* the same, open */
    struct cancel *cancel;
    bool driver; /* a program connects back */
};

/* As box_start. */
int boxing_start(const struct boxing *boxing, struct box **ret_box, struct err *err);

/* Did a setup of this session install something? */
bool boxing_has_deps(const struct boxing *boxing);

/* As boxing_start, but forked of a template (box_fork), until the deadline: it has its driver. */
int boxing_fork(const struct boxing *boxing, struct box *template, int64_t deadline,
                struct box **ret_box, struct err *err);

/* Appends the variables of the request's program, see guest_env.h. */
void boxing_env(const struct boxing *boxing, struct strv *env);

/* Gives the request's secrets to its box, before the program begins. 0 or -1 IO. */
int boxing_secrets(const struct boxing *boxing, struct box *box, struct err *err);

#endif
