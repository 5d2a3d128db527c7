/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spares: boxes started ahead of the calls that will use them, each once. For lib/sandbox.
 *
 * Calls of one shape (session or none, language, network, caps) share a shelf. The first call of a
 * shape starts its own box and makes the shelf; later ones take what stands there. A spare never
 * ran anyone's code: it is a box that waits for its program, and for python one whose driver is up.
 * Any thread; boxes are started by the spares' own lane, whose threads live as long as they do.
 */
#ifndef KERND_SANDBOX_SPARES_H
#define KERND_SANDBOX_SPARES_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/sandbox/boxing.h"
#include "lib/sandbox/spare.h"

struct sandbox;
struct spares;

/* max: so many in all, each some ten megabytes; 0: none are kept. */
struct spares *spares_new(struct sandbox *sandbox, size_t max, struct err *err);

/* Ends all spares and the lane. No call may be taking any more. NULL is fine. */
void spares_free(struct spares *spares);

/*
 * A live spare for this call, with its limits set, the caller's from now (its parts are moved on
 * and the rest freed by spare_free); NULL when there is none. Also makes and fills the shelf:
 * cheap.
 */
struct spare *spares_take(struct spares *spares, const struct boxing *boxing);

/* The same for what is none of these calls and can use their spares: it makes no shelf. */
struct spare *spares_take_other(struct spares *spares, const struct boxing *boxing);

/* Ends all spares: what they use is wanted for calls. None is booted while any waits for memory. */
void spares_give_way(struct spares *spares);

/* Sends what is missing on the shelves to the lane. Cheap. */
void spares_refill(struct spares *spares);

/* Ends all spares of a session: its files go. */
void spares_drop_session(struct spares *spares, const char *session_id);

/* Ends all spares that see an environment: it goes. */
void spares_drop_environment(struct spares *spares, const char *id);

/* The janitor's look: shelves that were not used for a while are emptied. */
void spares_age(struct spares *spares, int64_t now_ns);

struct spares_stats {
    size_t waiting;
    uint64_t hits;
    uint64_t misses;
};
void spares_stats(struct spares *spares, struct spares_stats *ret_stats);

#endif
