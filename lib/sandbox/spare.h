/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spare: one box started ahead. For lib/sandbox; belongs to one thread at a time.
 */
#ifndef KERND_SANDBOX_SPARE_H
#define KERND_SANDBOX_SPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/budget.h"
#include "lib/base/cancel.h"
#include "lib/base/strv.h"
#include "lib/sandbox/place.h"

struct boxing;
struct cell_booted;
struct sandbox;
struct shelf;

struct spare {
    struct sandbox *sandbox;
    struct budget_claim memory;
    struct box *box;
    struct cell_booted *booted; /* NULL: the box waits for its program */
    struct strv env;            /* what it was booted with */
    struct strv change;         /* what is to be set for the call that took it */
    struct place place;         /* a fresh workspace, for calls without a session */
    int64_t born_ns;
    struct spare *next;
};

/*
 * Starts a box of the shelf's shape, and its driver. NULL when it does not come up. The calling
 * thread must live as long as the box (box.h).
 */
struct spare *spare_boot(struct sandbox *sandbox, const struct shelf *shelf, struct cancel *cancel);

/*
 * A box for this very request, made of a template; with the request's own workspace. NULL: there is
 * no template for it now, boot one.
 */
struct spare *spare_fork(const struct boxing *boxing);

/* Gives it the limits of its one call. False: it is dead, or can't be used for it. */
bool spare_arm(struct spare *spare, const struct run_request *request);

/* Frees what is left in it: ends the box if it still has one. NULL is fine. */
void spare_free(struct spare *spare);

#endif
