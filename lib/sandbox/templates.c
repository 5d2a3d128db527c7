/* SPDX-License-Identifier: Apache-2.0 */
/*
 * templates: which template serves a call, and how long each lives.
 * Owns: the templates and the lane that boots them.
 * Threads: any; boxes are started, forked and ended outside the lock.
 * May include: all of lib.
 */
#include "lib/sandbox/templates.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/box/box.h"
#include "lib/cell/cell.h"
#include "lib/sandbox/guest_env.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/spare.h"
#include "lib/sandbox/templates_internal.h"

#define LANE_QUEUE 16
#define TEMPLATES_MAX 8
#define FORK_S 5
/* With modules of packages to import, ahead of the call. */
#define IMPORT_S 20
#define IDLE_NS (300 * CLOCK_NS_PER_S)
#define NOTED_NS (7200 * CLOCK_NS_PER_S)
/* How long an order waits for a moment without boots of boxes, of which there may be none: where
 * calls of other languages come all the time. */
#define PATIENCE_NS (1 * CLOCK_NS_PER_S)

static void disable(struct templates *templates, const char *why)
{
    (void)snprintf(templates->why, sizeof(templates->why), "%s", why);
    log_line(LOG_INFO, "no_templates", "why", why, NULL);
}

static size_t max_of(struct sandbox *sandbox)
{
    struct budget_stats memory;
    uint64_t max;

    budget_stats(sandbox->budget, &memory);
    max = memory.total / TEMPLATES_SHARE / TEMPLATES_BYTES;
    return max < TEMPLATES_MAX ? (size_t)max : TEMPLATES_MAX;
}

struct templates *templates_new(struct sandbox *sandbox, bool enabled, struct err *err)
{
    struct templates *templates = alloc_zero(1, sizeof(*templates));

    templates->sandbox = sandbox;
    templates->max = max_of(sandbox);
    if (enabled && templates->max == 0) {
        disable(templates, "the memory of all boxes is too small to keep one");
    } else if (enabled && !boxes_can_fork(sandbox->boxes)) {
        disable(templates, "boxes of this engine are not forked");
    } else {
        templates->enabled = enabled;
    }
    templates->lane = pool_new("template", 1, LANE_QUEUE, err);
    if (templates->lane == NULL) {
        free(templates);
        return NULL;
    }
    (void)pthread_mutex_init(&templates->lock, NULL);
    return templates;
}

/* Nobody uses it any more, and it is in no list. */
static void end(struct template *template)
{
    struct box_outcome outcome;

    cell_unboot(template->booted);
    if (template->box != NULL) {
        box_end(template->box, NULL, &outcome);
    }
    templates_boot_free(template);
}

/* ---- forking ---- */

/* Locked: one that takes orders, else NULL, and then one is on its way if it can be. */
static struct template *find(struct templates *templates, const struct templates_kind *kind)
{
    bool coming = false;

    for (struct template *at = templates->first; at != NULL; at = at->next) {
        if (at->state == TEMPLATE_RETIRED || !templates_kind_equal(&at->kind, kind)) {
            continue;
        }
        if (at->state == TEMPLATE_BOOTING) {
            coming = true;
        } else if (box_lives(at->box)) {
            return at;
        } else {
            templates_boot_retire(at);
        }
    }
    if (!coming) {
        templates_boot(templates, kind);
    }
    return NULL;
}

/* Modules may have read, when they were imported, what the call would have otherwise. */
static bool is_overridden(const struct strv *env, const struct strv *change)
{
    for (size_t i = 0; i < change->count; i++) {
        const size_t size = strcspn(change->items[i], "=") + 1;

        for (size_t j = 0; j < env->count; j++) {
            if (strncmp(change->items[i], env->items[j], size) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* What kernd-made directories of packages add to an interpreter's start. */
static bool is_of_packages(const char *assignment)
{
    return text_starts_with(assignment, "PYTHONPATH=") ||
           text_starts_with(assignment, "NODE_PATH=");
}

/*
 * What the box is to have in its environment before its code comes: the template's variables, and
 * where packages are found, which its driver is told (box_spec.prepares).
 */
static void base_env(const struct template *template, const struct boxing *boxing,
                     const struct strv *env, struct strv *ret_base)
{
    const bool packages = boxing->request->environment != NULL || boxing_has_deps(boxing);

    strv_copy(ret_base, &template->env);
    for (size_t i = 0; packages && i < env->count; i++) {
        if (is_of_packages(env->items[i])) {
            strv_add(ret_base, env->items[i]);
        }
    }
}

/* Sets the environment of the spare to what differs between it and the call's. */
static struct template *take(struct templates *templates, const struct boxing *boxing,
                             const struct templates_kind *kind, struct spare *spare)
{
    CLEANUP_STRV struct strv env = { 0 };
    struct template *template;

    boxing_env(boxing, &env);
    (void)pthread_mutex_lock(&templates->lock);
    template = find(templates, kind);
    if (template != NULL) {
        base_env(template, boxing, &env, &spare->env);
    }
    if (template != NULL && guest_env_change(&spare->env, &env, &spare->change) &&
        !(kind->preload.count > 0 && is_overridden(&template->env, &spare->change))) {
        template->users++;
        template->forks++;
        template->used_ns = clock_mono_ns();
        templates_boot_renew(template);
    } else {
        strv_done(&spare->env);
        strv_done(&spare->change);
        template = NULL;
    }
    (void)pthread_mutex_unlock(&templates->lock);
    return template;
}

/* Borrowed: what the driver hears before it is ready, see base_env. */
static bool says_something(const struct template *template, const struct boxing *boxing,
                           const struct spare *spare, struct strv *ret_env,
                           const struct strv **ret_preload)
{
    const bool packages = spare->env.count > template->env.count;

    for (size_t i = template->env.count; i < spare->env.count; i++) {
        strv_add(ret_env, spare->env.items[i]);
    }
    /* The template has imported them, unless packages of the call may be what is meant. */
    *ret_preload = packages && boxing->ahead ? &boxing->request->preload : NULL;
    return packages;
}

/* *ret_blameless: what failed may be what packages of the call do as they are imported, or its cap.
 */
static int fork_and_meet(struct template *template, const struct boxing *boxing,
                         struct spare *spare, bool *ret_blameless, struct err *err)
{
    CLEANUP_STRV struct strv env = { 0 };
    struct cell_boot boot = { .language = CELL_PYTHON,
                              .env = &env,
                              .deadline = clock_deadline_after_s(boxing->ahead ? IMPORT_S : FORK_S),
                              .cancel = boxing->cancel };
    const bool prepares = says_something(template, boxing, spare, &env, &boot.preload);
    const struct boxing_fork how = { .deadline = clock_deadline_after_s(FORK_S),
                                     .prepares = prepares };
    struct box_outcome outcome;

    if (boxing_fork(boxing, template->box, &how, &spare->box, err) < 0) {
        return -1;
    }
    if (cell_boot_forked(spare->box, &boot, prepares, &spare->booted, err) < 0) {
        box_end(CLEANUP_TAKE(spare->box), NULL, &outcome);
        *ret_blameless = prepares || outcome.oom;
        return -1;
    }
    return 0;
}

/*
 * The caller's own doing says nothing of the template: nor that a session was deleted, or its
 * packages were moved, while a box was made for it, that it may have too little memory to start
 * in, or that this user's sockets are full of descriptors.
 */
static bool is_own_doing(const struct err *failure)
{
    return failure->code == ERR_CANCELLED || failure->code == ERR_LIMITS_NOT_ENFORCED ||
           failure->sys == ESTALE || failure->sys == ENOENT || failure->sys == ENOMEM ||
           failure->sys == ETOOMANYREFS;
}

static void give_back(struct template *template, const struct err *failure, bool blameless)
{
    struct templates *templates = template->templates;

    (void)pthread_mutex_lock(&templates->lock);
    template->users--;
    if (failure->code == ERR_NONE) {
        templates->forks++;
        templates->why[0] = '\0';
        templates_note_drop(templates, &template->kind);
    } else if (!blameless && !is_own_doing(failure)) {
        templates_boot_retire(template);
        templates_boot_failed(templates, &template->kind, failure->msg);
    }
    templates_boot_let_go(template);
    (void)pthread_mutex_unlock(&templates->lock);
}

bool templates_fork(struct templates *templates, const struct boxing *boxing, struct spare *spare)
{
    struct err failure = ERR_INIT;
    struct templates_kind kind;
    struct template *template;
    bool blameless = false;
    bool forked;

    if (!templates->enabled || !templates_kind_of(boxing, &kind)) {
        return false;
    }
    template = take(templates, boxing, &kind, spare);
    templates_kind_done(&kind);
    if (template == NULL) {
        return false;
    }
    forked = fork_and_meet(template, boxing, spare, &blameless, &failure) == 0;
    if (!forked) {
        strv_done(&spare->env);
        strv_done(&spare->change);
    }
    give_back(template, &failure, blameless);
    return forked;
}

/* Locked. Boots what was ordered up to then. */
static void start_ordered(struct templates *templates, int64_t until_ns)
{
    for (struct template *at = templates->first; at != NULL; at = at->next) {
        if (at->state == TEMPLATE_BOOTING && !at->sent && at->born_ns <= until_ns) {
            at->sent = pool_submit(templates->lane, &at->job, NULL) == 0;
        }
    }
}

void templates_start(struct templates *templates)
{
    (void)pthread_mutex_lock(&templates->lock);
    start_ordered(templates, INT64_MAX);
    (void)pthread_mutex_unlock(&templates->lock);
}

/* ---- ending ---- */

/* Locked: takes those out that can be ended, one chain. */
static struct template *take_done(struct templates *templates)
{
    struct template *done = NULL;
    struct template **at = &templates->first;

    while (*at != NULL) {
        struct template *template = *at;

        if (template->state == TEMPLATE_RETIRED && template->users == 0 &&
            (template->box == NULL || box_fork_count(template->box) == 0)) {
            *at = template->next;
            template->next = done;
            done = template;
        } else {
            at = &template->next;
        }
    }
    return done;
}

static void end_all(struct template *chain)
{
    while (chain != NULL) {
        struct template *next = chain->next;

        end(chain);
        chain = next;
    }
}

void templates_age(struct templates *templates, int64_t now_ns)
{
    struct template *done;

    (void)pthread_mutex_lock(&templates->lock);
    for (struct template *at = templates->first; at != NULL; at = at->next) {
        if (at->used_ns + IDLE_NS < now_ns && at->state == TEMPLATE_UP) {
            templates_boot_retire(at);
        }
    }
    templates_note_age(templates, now_ns - NOTED_NS);
    start_ordered(templates, now_ns - PATIENCE_NS);
    done = take_done(templates);
    (void)pthread_mutex_unlock(&templates->lock);
    end_all(done);
}

void templates_free(struct templates *templates)
{
    struct template *done;

    if (templates == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&templates->lock);
    templates->closed = true;
    for (struct template *at = templates->first; at != NULL; at = at->next) {
        templates_boot_abandon(at);
    }
    done = take_done(templates);
    (void)pthread_mutex_unlock(&templates->lock);
    end_all(done);
    pool_free(templates->lane);
    end_all(take_done(templates)); /* what was just booting */
    templates_note_age(templates, INT64_MAX);
    (void)pthread_mutex_destroy(&templates->lock);
    free(templates);
}

void templates_stats(struct templates *templates, struct templates_stats *ret_stats)
{
    *ret_stats = (struct templates_stats){ .enabled = templates->enabled };
    (void)pthread_mutex_lock(&templates->lock);
    for (const struct template *at = templates->first; at != NULL; at = at->next) {
        ret_stats->up += at->state == TEMPLATE_UP || at->state == TEMPLATE_STALE ? 1 : 0;
    }
    ret_stats->forks = templates->forks;
    (void)snprintf(ret_stats->why, sizeof(ret_stats->why), "%s", templates->why);
    (void)pthread_mutex_unlock(&templates->lock);
}
