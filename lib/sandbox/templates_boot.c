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
#include "lib/box/box.h"
#include "lib/cell/cell.h"
#include "lib/sandbox/capacity.h"
#include "lib/sandbox/environments.h"
#include "lib/sandbox/guest_env.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/templates_internal.h"

#define TEMPLATES_MAX 8 /* that take orders or are about to */
#define WANTED_MAX 16
/* One that nobody wants for so long makes way for another. */
#define UNUSED_NS (30 * CLOCK_NS_PER_S)
#define BOOT_S 30
#define AGE_NS (900 * CLOCK_NS_PER_S)
/* After so many failures in a row templates are left alone for a while. */
#define FAILURES_MAX 3
#define PAUSE_NS (60 * CLOCK_NS_PER_S)
/* What one has once it is up, with an interpreter and some modules. */
#define WAITING_BYTES (UINT64_C(48) << 20)
/* While it imports. */
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
    if (template->state == TEMPLATE_RETIRED && template->users == 0 && template->box != NULL) {
        box_fork_close(template->box);
    }
}

void templates_boot_failed(struct templates *templates, const char *why)
{
    (void)snprintf(templates->why, sizeof(templates->why), "%s", why);
    templates->failures++;
    templates->failed_ns = clock_mono_ns();
    log_line(LOG_WARNING, "no_template", "why", templates->why, NULL);
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
                                   .limits = { .memory_bytes = MEMORY_BYTES },
                                   .deadline = clock_deadline_after_s(BOOT_S),
                                   .cancel = &template->templates->cancel };
    const struct cell_boot how = { .language = CELL_PYTHON,
                                   .env = &template->env,
                                   .preload = &kind->preload,
                                   .deadline = spec.deadline,
                                   .cancel = spec.cancel };

    return box_start(sandbox->boxes, &spec, ret_box, err) < 0
               ? -1
               : cell_boot_template(*ret_box, &how, ret_booted, err);
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

static void boot_run(struct pool_job *job)
{
    struct template *template = CONTAINER_OF(job, struct template, job);
    struct templates *templates = template->templates;
    struct err err = ERR_INIT;
    struct box *box = NULL;
    struct cell_booted *booted = NULL;
    const bool failed = boot(template, &box, &booted, &err) < 0;

    (void)pthread_mutex_lock(&templates->lock);
    template->box = box;
    template->booted = booted;
    if (failed) {
        template->state = TEMPLATE_RETIRED;
        templates_boot_failed(templates, err.msg);
    } else {
        come_up(template);
        if (templates->closed) {
            templates_boot_retire(template);
        }
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

/* Locked. The one that nobody used for longest, if that is long. */
static struct template *find_unused(const struct templates *templates)
{
    struct template *oldest = NULL;

    for (struct template *at = templates->first; at != NULL; at = at->next) {
        if (at->state == TEMPLATE_UP && (oldest == NULL || at->used_ns < oldest->used_ns)) {
            oldest = at;
        }
    }
    return oldest != NULL && clock_mono_ns() - oldest->used_ns > UNUSED_NS ? oldest : NULL;
}

/* Locked. */
static bool make_room(struct templates *templates)
{
    struct template *unused;
    size_t count = 0;

    for (const struct template *at = templates->first; at != NULL; at = at->next) {
        count += at->state == TEMPLATE_BOOTING || at->state == TEMPLATE_UP ? 1 : 0;
    }
    unused = count < TEMPLATES_MAX ? NULL : find_unused(templates);
    if (unused != NULL) {
        templates_boot_retire(unused);
    }
    return count < TEMPLATES_MAX || unused != NULL;
}

/* Locked. */
static bool may_boot(struct templates *templates)
{
    return !templates->closed &&
           (templates->failures < FAILURES_MAX ||
            clock_mono_ns() - templates->failed_ns > PAUSE_NS) &&
           make_room(templates);
}

void templates_boot_free(struct template *template)
{
    capacity_give(template->templates->sandbox, &template->memory, 0);
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
    template->used_ns = clock_mono_ns();
    templates_kind_copy(&template->kind, kind);
    template->next = templates->first;
    templates->first = template;
    return template;
}

/*
 * Locked. Did a call want this kind before? Else it is noted that one does, in place of the oldest
 * of which that is noted.
 */
static bool was_wanted(struct templates *templates, const struct templates_kind *kind)
{
    struct template *oldest = NULL;
    size_t count = 0;

    for (struct template *at = templates->first; at != NULL; at = at->next) {
        if (at->state != TEMPLATE_WANTED) {
            continue;
        }
        if (templates_kind_equal(&at->kind, kind)) {
            templates_boot_retire(at);
            return true;
        }
        oldest = at;
        count++;
    }
    if (count >= WANTED_MAX) {
        templates_boot_retire(oldest);
    }
    add(templates, kind)->state = TEMPLATE_WANTED;
    return false;
}

static void boot_one(struct templates *templates, const struct templates_kind *kind)
{
    struct template *template;

    if (!may_boot(templates)) {
        return;
    }
    template = add(templates, kind);
    template->state = TEMPLATE_BOOTING;
    plain_env(kind->cpus, &template->env);
    template->job.run = boot_run;
    template->job.drop = boot_drop;
    if (!budget_raise_spare(templates->sandbox->budget, &template->memory, WAITING_BYTES) ||
        pool_submit(templates->lane, &template->job, NULL) < 0) {
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
