/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget: an amount (of memory) that many share, and who may have more of it next.
 *
 * A claim is what one holder may use. Raising one succeeds while the sum stays within the total;
 * one that does not fit is passed by those that do, but not for ever: once it was passed
 * BUDGET_PASSES times, all that becomes free is kept for it until it fits. That can only help where
 * what is in its way ends by itself: one that would not even fit beside the lasting claims (of
 * holders without an end) is passed until some of those are gone. Any thread; never blocks.
 */
#ifndef KERND_BASE_BUDGET_H
#define KERND_BASE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_PASSES 16

struct budget;

/*
 * Embedded by its holder, who does not move it while it waits; all zero is an empty one. Under the
 * budget's lock but for `lasting`.
 */
struct budget_claim {
    uint64_t amount;
    bool lasting; /* its holder has no end of its own; set before it is raised */
    bool waiting; /* it did not fit when it was last raised */
    uint64_t since;
    uint64_t more; /* that it waits for */
    struct budget_claim *next_waiting;
    struct budget_claim **place; /* among those that wait: what points to it */
};

struct budget *budget_new(uint64_t total);
void budget_free(struct budget *budget); /* NULL is fine */

/* Raises a claim to the amount (never lowers it). False: not now; it counts as waiting then. */
bool budget_raise(struct budget *budget, struct budget_claim *claim, uint64_t amount);

/* The same for what can do without: it never waits, nor takes what others wait for. */
bool budget_raise_spare(struct budget *budget, struct budget_claim *claim, uint64_t amount);

/* Lowers a claim to the amount (never raises it). True: some claim waits, and may fit now. */
bool budget_lower(struct budget *budget, struct budget_claim *claim, uint64_t amount);

/* A claim that waits is not wanted any more. True as budget_lower. */
bool budget_forget(struct budget *budget, struct budget_claim *claim);

/*
 * What would have to be given back for some claim that waits to be raised: for the one that comes
 * next, else for the smallest. 0: none waits, or one fits.
 */
uint64_t budget_missing(struct budget *budget);

struct budget_stats {
    uint64_t total;
    uint64_t used;
    uint64_t waiting; /* claims that wait */
};
void budget_stats(struct budget *budget, struct budget_stats *ret_stats);

#endif
