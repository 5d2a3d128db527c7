/* SPDX-License-Identifier: Apache-2.0 */
/*
 * templates_boot: how a template comes up, on a thread that lives as long as it does.
 * Owns: nothing of its own.
 * Threads: the lane of templates; what the header says under the lock from any.
 * May include: all of lib.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/box/box.h"
#include "lib/cell/cell.h"
#include "lib/sandbox/capacity.h"
#include "lib/sandbox/environments.h"
#include "lib/sandbox/guest_env.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/templates_internal.h"

/* One that nobody wants for so long makes way for another. */
#define UNUSED_NS (30 * CLOCK_NS_PER_S)
#define BOOT_S 30
#define AGE_NS (900 * CLOCK_NS_PER_S)
/* After so many failures in a row templates are left alone, each time for twice as long. */
#define FAILURES_MAX 3
#define PAUSE_NS (60 * CLOCK_NS_PER_S)
#define PAUSES_MAX 6 /* an hour */
/* After calls waited for its memory, so that it does not come and go with them. */
#define YIELDED_NS (10 * CLOCK_NS_PER_S)
/* While it imports; less where the memory of all boxes is small. */
#define MEMORY_BYTES (UINT64_C(1) << 30)

void templates_boot_retire(struct template *template)
{
    if (template->state != TEMPLATE_BOOTING && template->state != TEMPLATE_RETIRED) {
        template->state = TEMPLATE_RETIRED;
        templates_boot_let_go(template);
    }
}

void templates_boot_let_go(struct template *template)
{
    if (template->state != TEMPLATE_RETIRED || template->users > 0) {
        return;
    }
    if (template->box != NULL) {
        box_fork_close(template->box);
    }
    /* Its interpreter ends now; what boxes still have of it is within their own claims. */
    capacity_give(template->templates->sandbox, &template->memory, 0);
}

void templates_boot_abandon(struct template *template)
{
    if (template->state == TEMPLATE_BOOTING && template->sent) {
        cancel_fire(&template->cancel, CANCEL_SHUTDOWN);
        capacity_give(template->templates->sandbox, &template->memory, 0);
    } else {
        template->state = TEMPLATE_RETIRED;
        templates_boot_let_go(template);
    }
}

void templates_boot_failed(struct templates *templates, const struct templates_kind *kind,
                           const char *why)
{
    struct templates_note *note = templates_note_make(templates, kind);
    const bool again = templates->why[0] != '\0' && text_starts_with(why, templates->why);

    note->failures++;
    note->failed_ns = note->used_ns;
    (void)snprintf(templates->why, sizeof(templates->why), "%s", why);
    log_line(again ? LOG_DEBUG : LOG_WARNING, "no_template", "why", templates->why, NULL);
}

static uint64_t memory_of(struct budget *budget)
{
    struct budget_stats memory;
    uint64_t share;

    budget_stats(budget, &memory);
    share = memory.total / TEMPLATES_SHARE;
    return share < MEMORY_BYTES ? share : MEMORY_BYTES;
}

/* What it imported may be more than most import. */
static int claim_all(struct template *template, const struct box *box, struct err *err)
{
    const int64_t bytes = box_memory(box);

    return bytes < 0 || budget_raise_spare(template->templates->sandbox->budget, &template->memory,
                                           (uint64_t)bytes)
               ? 0
               : err_set(err, ERR_BOX_START_FAILED, 0, "no memory is left for what it imports");
}

static int boot(struct template *template, struct box **ret_box, struct cell_booted **ret_booted,
                struct err *err)
{
    struct sandbox *sandbox = template->templates->sandbox;
    const struct templates_kind *kind = &template->kind;
    CLEANUP_FREE struct box_mount *mounts = boxing_mounts(kind->mounts, kind->mount_count);
    const struct box_spec spec = { .driver = true,
                                   .workspace = kind->workspace,
                                   .workspace_readonly = kind->readonly,
                                   .mounts = mounts,
                                   .mount_count = kind->mount_count,
                                   .fork_workspaces = sandbox->workspaces_path,
                                   .fork_layers = environments_parent(sandbox->environments),
                                   .limits = { .memory_bytes = memory_of(sandbox->budget) },
                                   .deadline = clock_deadline_after_s(BOOT_S),
                                   .cancel = &template->cancel };
    const struct cell_boot how = { .language = CELL_PYTHON,
                                   .env = &template->env,
                                   .preload = &kind->preload,
                                   .deadline = spec.deadline,
                                   .cancel = spec.cancel };

    return box_start(sandbox->boxes, &spec, ret_box, err) < 0 ||
                   cell_boot_template(*ret_box, &how, ret_booted, err) < 0 ||
                   claim_all(template, *ret_box, err) < 0
               ? -1
               : 0;
}

static bool is_same_kind(const struct template *a, const struct template *b)
{
    return templates_kind_equal(&a->kind, &b->kind);
}

/* Locked: it takes the place of the one before. */
static void come_up(struct template *template)
{
    struct templates *templates = template->templates;

    template->state = TEMPLATE_UP;
    template->born_ns = clock_mono_ns();
    template->used_ns = template->born_ns;
    for (struct template *other = templates->first; other != NULL; other = other->next) {
        if (other != template && other->state == TEMPLATE_STALE && is_same_kind(other, template)) {
            templates_boot_retire(other);
        }
    }
}

static bool is_abandoned(const struct template *template)
{
    return cancel_get(&template->cancel) != CANCEL_NONE;
}

static void boot_run(struct pool_job *job)
{
    struct template *template = CONTAINER_OF(job, struct template, job);
    struct templates *templates = template->templates;
    struct err err = ERR_INIT;
    struct box *box = NULL;
    struct cell_booted *booted = NULL;
    const bool failed = is_abandoned(template) || boot(template, &box, &booted, &err) < 0;

    (void)pthread_mutex_lock(&templates->lock);
    template->box = box;
    template->booted = booted;
    if (failed || is_abandoned(template)) {
        template->state = TEMPLATE_RETIRED;
        templates_boot_let_go(template);
    } else {
        come_up(template);
    }
    if (failed && !is_abandoned(template)) {
        templates_boot_failed(templates, &template->kind, err.msg);
    }
    (void)pthread_mutex_unlock(&templates->lock);
}

static void boot_drop(struct pool_job *job)
{
    struct template *template = CONTAINER_OF(job, struct template, job);

    (void)pthread_mutex_lock(&template->templates->lock);
    template->state = TEMPLATE_RETIRED;
    (void)pthread_mutex_unlock(&template->templates->lock);
}

/* Of calls that ask for nothing of their own, which most are. */
static bool is_common(const struct templates *templates, const struct templates_kind *kind)
{
    const double usual = templates->sandbox->defaults.cpus;

    return kind->preload.count == 0 && !templates_kind_is_private(kind) && !(kind->cpus < usual) &&
           !(kind->cpus > usual);
}

/*
 * Locked. The one that nobody used for longest, if that is long, or if it is for the common kind:
 * nobody can keep that one out with calls of eight kinds of his own.
 */
static struct template *find_unused(const struct templates *templates,
                                    const struct templates_kind *kind)
{
    struct template *oldest = NULL;

    for (struct template *at = templates->first; at != NULL; at = at->next) {
        if (at->state == TEMPLATE_UP && (oldest == NULL || at->used_ns < oldest->used_ns)) {
            oldest = at;
        }
    }
    return oldest != NULL &&
                   (clock_mono_ns() - oldest->used_ns > UNUSED_NS || is_common(templates, kind))
               ? oldest
               : NULL;
}

/* Locked. */
static bool make_room(struct templates *templates, const struct templates_kind *kind)
{
    struct template *unused;
    size_t count = 0;

    for (const struct template *at = templates->first; at != NULL; at = at->next) {
        count += at->state == TEMPLATE_BOOTING || at->state == TEMPLATE_UP ? 1 : 0;
    }
    unused = count < templates->max ? NULL : find_unused(templates, kind);
    if (unused != NULL) {
        templates_boot_retire(unused);
    }
    return count < templates->max || unused != NULL;
}

/* Locked. Did the last ones of this kind fail, so that it is not tried again yet? */
static bool is_spoilt(const struct templates *templates, const struct templates_kind *kind)
{
    const struct templates_note *note = templates_note_find(templates, kind);
    unsigned doubled;

    if (note == NULL || note->failures < FAILURES_MAX) {
        return false;
    }
    doubled = note->failures - FAILURES_MAX;
    return clock_mono_ns() - note->failed_ns < PAUSE_NS
                                                   << (doubled < PAUSES_MAX ? doubled : PAUSES_MAX);
}

/* Locked. */
static bool may_boot(struct templates *templates, const struct templates_kind *kind)
{
    const bool yielded =
        templates->yielded_ns != 0 && clock_mono_ns() - templates->yielded_ns < YIELDED_NS;

    return !templates->closed && !yielded && !is_spoilt(templates, kind) &&
           make_room(templates, kind);
}

void templates_boot_free(struct template *template)
{
    capacity_give(template->templates->sandbox, &template->memory, 0);
    if (template->job.run != NULL) {
        cancel_done(&template->cancel);
    }
    strv_done(&template->env);
    templates_kind_done(&template->kind);
    free(template);
}

/* The variables of a call that says nothing itself. */
static void plain_env(double cpus, struct strv *env)
{
    struct run_request *plain = run_request_new();

    plain->limits.cpus = cpus;
    guest_env_make(plain, false, env);
    run_request_free(plain);
}

static struct template *add(struct templates *templates, const struct templates_kind *kind)
{
    struct template *template = alloc_zero(1, sizeof(*template));

    template->templates = templates;
    template->born_ns = clock_mono_ns();
    template->used_ns = template->born_ns;
    templates_kind_copy(&template->kind, kind);
    template->next = templates->first;
    templates->first = template;
    return template;
}

/* Locked. Did a call want this kind before? Else it is noted that one does. */
static bool was_wanted(struct templates *templates, const struct templates_kind *kind)
{
    if (templates_note_find(templates, kind) != NULL) {
        return true;
    }
    (void)templates_note_make(templates, kind);
    return false;
}

static void boot_one(struct templates *templates, const struct templates_kind *kind)
{
    struct template *template;

    if (!may_boot(templates, kind)) {
        return;
    }
    template = add(templates, kind);
    template->state = TEMPLATE_BOOTING;
    plain_env(kind->cpus, &template->env);
    if (cancel_init(&template->cancel, NULL) == 0) {
        template->job = (struct pool_job){ .run = boot_run, .drop = boot_drop };
    }
    if (template->job.run == NULL ||
        !budget_raise_spare(templates->sandbox->budget, &template->memory, TEMPLATES_BYTES)) {
        templates->first = template->next;
        templates_boot_free(template);
    }
}

void templates_boot(struct templates *templates, const struct templates_kind *kind)
{
    if (!templates->closed && (!templates_kind_is_private(kind) || was_wanted(templates, kind))) {
        boot_one(templates, kind);
    }
}

static bool has_successor(const struct template *template)
{
    for (const struct template *at = template->templates->first; at != NULL; at = at->next) {
        if (at->state == TEMPLATE_BOOTING && is_same_kind(at, template)) {
            return true;
        }
    }
    return false;
}

void templates_boot_renew(struct template *template)
{
    const int64_t age = clock_mono_ns() - template->born_ns;

    if (template->state == TEMPLATE_UP &&
        (template->forks >= TEMPLATES_FORKS_MAX || age > AGE_NS)) {
        template->state = TEMPLATE_STALE;
    }
    if (template->state == TEMPLATE_STALE && !has_successor(template)) {
        boot_one(template->templates, &template->kind);
    }
}
