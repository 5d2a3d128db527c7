/* SPDX-License-Identifier: Apache-2.0 */
/*
 * templates_yield: which templates end for calls that wait for memory.
 * Owns: nothing.
 * Threads: any; boxes are ended outside the lock.
 * May include: all of lib.
 */
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/box/box.h"
#include "lib/sandbox/templates_internal.h"

/*
 * One with boxes under way that was asked for one so lately has more: they are calls, which end by
 * their deadlines, and without it those that come cost several times as much.
 */
#define BUSY_NS (5 * CLOCK_NS_PER_S)

/* Locked. Has it no box, and is none about to be forked? */
static bool is_without_boxes(const struct template *template)
{
    return template->users == 0 && (template->box == NULL || box_fork_count(template->box) == 0);
}

static bool can_yield(const struct template *template, int64_t now_ns)
{
    return template->memory.amount > 0 && template->state != TEMPLATE_RETIRED &&
           (is_without_boxes(template) || template->used_ns + BUSY_NS < now_ns);
}

/* Those without boxes first, and of these and the others what was not used for longest. */
static bool is_before(const struct template *a, const struct template *b)
{
    const bool idle = is_without_boxes(a);

    return idle != is_without_boxes(b) ? idle : a->used_ns < b->used_ns;
}

static struct template *first_to_yield(const struct templates *templates, int64_t now_ns)
{
    struct template *first = NULL;

    for (struct template *at = templates->first; at != NULL; at = at->next) {
        if (can_yield(at, now_ns) && (first == NULL || is_before(at, first))) {
            first = at;
        }
    }
    return first;
}

static uint64_t all_that_yield(const struct templates *templates, int64_t now_ns)
{
    uint64_t bytes = 0;

    for (const struct template *at = templates->first; at != NULL; at = at->next) {
        bytes += can_yield(at, now_ns) ? at->memory.amount : 0;
    }
    return bytes;
}

/* Locked. Returns how many were told to end. */
static size_t choose(struct templates *templates, uint64_t missing)
{
    const int64_t now_ns = clock_mono_ns();
    struct template *template;
    size_t count = 0;

    if (all_that_yield(templates, now_ns) < missing) {
        return 0;
    }
    while (missing > 0 && (template = first_to_yield(templates, now_ns)) != NULL) {
        const uint64_t bytes = template->memory.amount;

        missing = missing > bytes ? missing - bytes : 0;
        templates_boot_abandon(template);
        count++;
    }
    templates->yielded_ns = now_ns;
    return count;
}

void templates_yield(struct templates *templates, uint64_t missing)
{
    size_t count;

    (void)pthread_mutex_lock(&templates->lock);
    count = choose(templates, missing);
    (void)pthread_mutex_unlock(&templates->lock);
    if (count > 0) {
        log_line(LOG_INFO, "templates_gave_way", "why", "calls wait for memory", NULL);
        templates_age(templates, clock_mono_ns());
    }
}
