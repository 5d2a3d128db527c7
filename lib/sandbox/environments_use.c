/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environments_use: may it be used, and who does.
 * Owns: the count of calls that use each environment.
 * Threads: any but the event one; ending a use, any.
 * May include: all of lib.
 */
#include "lib/sandbox/environments_use.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/sandbox/environments_internal.h"
#include "lib/sandbox/sandbox_internal.h"

static int refuse(struct err *err, enum err_code code, const char *why)
{
    return err_field(err, code, "/environment", "the environment %s", why);
}

/* Interpreters are the host's: what was made for another version is found to be broken late. */
static int check_version(struct sandbox *sandbox, const char *made_with, enum run_language language,
                         struct err *err)
{
    const char *version = made_with == NULL ? NULL : sandbox_language_version(sandbox, language);

    if (made_with == NULL || text_equal(made_with, version)) {
        return 0;
    }
    (void)err_field(err, ERR_CONFLICT, "/environment",
                    "the environment was built with %s %s, which is %s here now",
                    run_language_text(language), made_with, version == NULL ? "missing" : version);
    return err_remedy(err, "build it again: POST /v1/environments with the same body");
}

static int check_state(const struct environments_view *view, struct err *err)
{
    switch (view->state) {
    case ENVIRONMENTS_BUILDING:
        (void)refuse(err, ERR_CONFLICT, "is still being built");
        return err_remedy(err, "wait for the execution %s", view->execution_id);
    case ENVIRONMENTS_FAILED:
        (void)refuse(err, ERR_CONFLICT, "could not be built");
        return err_remedy(err, "read /v1/environments/%s/log, or build it again", view->id);
    case ENVIRONMENTS_READY:
        break;
    }
    return 0;
}

static int check_usable(struct sandbox *sandbox, const struct environments_view *view,
                        struct err *err)
{
    struct boxes_abilities abilities;

    boxes_abilities(sandbox->boxes, &abilities);
    if (!text_equal(view->spec.engine, abilities.engine)) {
        return refuse(err, ERR_NOT_SUPPORTED_HERE, "is one of another engine");
    }
    return check_state(view, err) < 0 ||
                   check_version(sandbox, view->spec.python, RUN_PYTHON, err) < 0 ||
                   check_version(sandbox, view->spec.node, RUN_NODE, err) < 0
               ? -1
               : 0;
}

/* What it imports comes first, and nothing twice. */
static void merge_preload(const struct strv *own, struct strv *preload)
{
    struct strv all = { 0 };

    strv_copy(&all, own);
    for (size_t i = 0; i < preload->count; i++) {
        bool there = false;

        for (size_t j = 0; j < own->count; j++) {
            there = there || text_equal(own->items[j], preload->items[i]);
        }
        if (!there) {
            strv_add(&all, preload->items[i]);
        }
    }
    strv_done(preload);
    *preload = all;
}

int environments_use_resolve(struct sandbox *sandbox, char **environment, struct strv *preload,
                             struct err *err)
{
    struct environments_view view;
    int result;

    if (*environment == NULL) {
        return 0;
    }
    if (environments_get(sandbox, *environment, &view, err) < 0) {
        if (err != NULL) {
            (void)snprintf(err->pointer, sizeof(err->pointer), "/environment");
        }
        return -1;
    }
    result = check_usable(sandbox, &view, err);
    if (result == 0) {
        free(*environment);
        *environment = alloc_text(view.id);
        merge_preload(&view.spec.preload, preload);
    }
    environments_view_done(&view);
    return result;
}

/* Locked. */
static struct environment_use *find_use(const struct environments *environments, const char *id)
{
    struct environment_use *use = environments->uses;

    while (use != NULL && !text_equal(use->id, id)) {
        use = use->next;
    }
    return use;
}

/* Locked. */
static struct environment_use *count_use(struct environments *environments, const char *id)
{
    struct environment_use *use = find_use(environments, id);

    if (use == NULL) {
        use = alloc_zero(1, sizeof(*use));
        use->environments = environments;
        (void)snprintf(use->id, sizeof(use->id), "%s", id);
        use->next = environments->uses;
        environments->uses = use;
    }
    use->count++;
    return use;
}

int environments_use_begin(struct sandbox *sandbox, struct run_request *request, struct err *err)
{
    struct environments *environments = sandbox->environments;
    int result;

    if (environments_use_resolve(sandbox, &request->environment, &request->preload, err) < 0) {
        return -1;
    }
    if (request->environment == NULL) {
        return 0;
    }
    /* It may have been deleted since. */
    (void)pthread_mutex_lock(&environments->lock);
    result = environments_check(sandbox, request->environment, err);
    if (result == 0) {
        request->environment_use = count_use(environments, request->environment);
    }
    (void)pthread_mutex_unlock(&environments->lock);
    return result;
}

void environments_use_end(struct environment_use *use)
{
    struct environments *environments;
    struct environment_use **at;

    if (use == NULL) {
        return;
    }
    environments = use->environments;
    (void)pthread_mutex_lock(&environments->lock);
    use->count--;
    if (use->count == 0) {
        for (at = &environments->uses; *at != use; at = &(*at)->next) {
        }
        *at = use->next;
        free(use);
    }
    (void)pthread_mutex_unlock(&environments->lock);
}

bool environments_use_holds(const struct environments *environments, const char *id)
{
    return find_use(environments, id) != NULL;
}
