/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: keep a sum of claims within a total, without starving large or small ones.
 * Owns: the sum; claims are their holders'.
 * Threads: any; one lock, nothing is called under it.
 * May include: libc.
 */
#include "lib/base/budget.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/alloc.h"

struct budget {
    pthread_mutex_t lock;
    uint64_t total;
    uint64_t used;
    uint64_t lasting; /* the part of it that has no end of its own */
    uint64_t waiting;
    uint64_t grants;                 /* claims that were raised, ever: a clock of passes */
    const struct budget_claim *next; /* what is free is kept for this one */
    struct budget_claim *first_waiting;
};

struct budget *budget_new(uint64_t total)
{
    struct budget *budget = alloc_zero(1, sizeof(*budget));

    (void)pthread_mutex_init(&budget->lock, NULL);
    budget->total = total;
    return budget;
}

void budget_free(struct budget *budget)
{
    if (budget != NULL) {
        (void)pthread_mutex_destroy(&budget->lock);
        free(budget);
    }
}

static bool fits(const struct budget *budget, uint64_t used, uint64_t more)
{
    return used <= budget->total && more <= budget->total - used;
}

/* Locked. It waits no longer: it was raised, or is not wanted. */
static void end_wait(struct budget *budget, struct budget_claim *claim)
{
    if (claim->waiting) {
        *claim->place = claim->next_waiting;
        if (claim->next_waiting != NULL) {
            claim->next_waiting->place = claim->place;
        }
        claim->waiting = false;
        budget->waiting--;
    }
    if (budget->next == claim) {
        budget->next = NULL;
    }
}

/* Locked. */
static void grant(struct budget *budget, struct budget_claim *claim, uint64_t more)
{
    end_wait(budget, claim);
    claim->amount += more;
    budget->used += more;
    budget->lasting += claim->lasting ? more : 0;
    budget->grants++;
}

/* Locked. */
static void refuse(struct budget *budget, struct budget_claim *claim, uint64_t more)
{
    if (!claim->waiting) {
        claim->waiting = true;
        claim->since = budget->grants;
        claim->next_waiting = budget->first_waiting;
        claim->place = &budget->first_waiting;
        if (claim->next_waiting != NULL) {
            claim->next_waiting->place = &claim->next_waiting;
        }
        budget->first_waiting = claim;
        budget->waiting++;
    }
    claim->more = more;
    if (budget->next == NULL && budget->grants - claim->since >= BUDGET_PASSES &&
        fits(budget, budget->lasting, more)) {
        budget->next = claim;
    }
}

bool budget_raise(struct budget *budget, struct budget_claim *claim, uint64_t amount)
{
    bool raised = true;
    uint64_t more;

    (void)pthread_mutex_lock(&budget->lock);
    more = amount > claim->amount ? amount - claim->amount : 0;
    if (more > 0) {
        raised =
            (budget->next == NULL || budget->next == claim) && fits(budget, budget->used, more);
        if (raised) {
            grant(budget, claim, more);
        } else {
            refuse(budget, claim, more);
        }
    }
    (void)pthread_mutex_unlock(&budget->lock);
    return raised;
}

bool budget_raise_spare(struct budget *budget, struct budget_claim *claim, uint64_t amount)
{
    bool raised = true;
    uint64_t more;

    (void)pthread_mutex_lock(&budget->lock);
    more = amount > claim->amount ? amount - claim->amount : 0;
    if (more > 0) {
        raised = budget->waiting == 0 && fits(budget, budget->used, more);
        if (raised) {
            grant(budget, claim, more);
        }
    }
    (void)pthread_mutex_unlock(&budget->lock);
    return raised;
}

bool budget_lower(struct budget *budget, struct budget_claim *claim, uint64_t amount)
{
    bool wanted;

    (void)pthread_mutex_lock(&budget->lock);
    wanted = budget->waiting > 0 && claim->amount > amount;
    if (claim->amount > amount) {
        budget->used -= claim->amount - amount;
        budget->lasting -= claim->lasting ? claim->amount - amount : 0;
        claim->amount = amount;
    }
    (void)pthread_mutex_unlock(&budget->lock);
    return wanted;
}

bool budget_forget(struct budget *budget, struct budget_claim *claim)
{
    bool wanted;

    (void)pthread_mutex_lock(&budget->lock);
    wanted = budget->next == claim;
    end_wait(budget, claim);
    (void)pthread_mutex_unlock(&budget->lock);
    return wanted;
}

uint64_t budget_missing(struct budget *budget)
{
    uint64_t least = UINT64_MAX;
    uint64_t left;

    (void)pthread_mutex_lock(&budget->lock);
    left = budget->used < budget->total ? budget->total - budget->used : 0;
    for (const struct budget_claim *at = budget->first_waiting; at != NULL; at = at->next_waiting) {
        if ((budget->next == NULL || budget->next == at) && at->more < least) {
            least = at->more;
        }
    }
    (void)pthread_mutex_unlock(&budget->lock);
    return least == UINT64_MAX || least <= left ? 0 : least - left;
}

void budget_stats(struct budget *budget, struct budget_stats *ret_stats)
{
    (void)pthread_mutex_lock(&budget->lock);
    *ret_stats = (struct budget_stats){ .total = budget->total,
                                        .used = budget->used,
                                        .waiting = budget->waiting };
    (void)pthread_mutex_unlock(&budget->lock);
}
