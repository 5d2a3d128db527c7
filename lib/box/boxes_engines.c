/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: know the engines: which are allowed and installed, which one a box gets, what they say.
 * Owns: the engines' part of the factory.
 * Threads: find and done from one, the rest from any.
 * May include: base, boxes, engine, launcher.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/box/boxes_internal.h"
#include "lib/box/launcher.h"

/* The first that is installed is the standard one: it starts in half the time, and needs no image.
 */
static const struct engine *const kinds[BOXES_ENGINES_MAX] = { &engine_bwrap, &engine_kern };

/* The path that the configuration gives for this engine, NULL: to be looked for. */
static const char *given_path(const struct boxes_config *config, const struct engine *kind)
{
    if (!kind->images) {
        return config->launcher;
    }
    return text_equal(config->engine, kind->name) && config->launcher != NULL ? config->launcher
                                                                              : config->kern;
}

static int find_one(const struct boxes_config *config, struct boxes_engine *engine, struct err *err)
{
    const char *path = given_path(config, engine->kind);

    engine->launcher = launcher_find(path, engine->kind->launcher_name);
    if (path != NULL && engine->launcher == NULL) {
        return err_set(err, ERR_ENGINE_UNAVAILABLE, ENOENT,
                       "the launcher %s is not an executable file", path);
    }
    return 0;
}

int boxes_engines_find(const struct boxes_config *config, struct boxes *boxes, struct err *err)
{
    bool automatic = text_equal(config->engine, "auto");

    for (size_t i = 0; i < BOXES_ENGINES_MAX; i++) {
        struct boxes_engine *engine = &boxes->engines[i];

        engine->kind = kinds[i];
        engine->allowed = automatic || text_equal(config->engine, kinds[i]->name);
        if (engine->allowed && find_one(config, engine, err) < 0) {
            return -1;
        }
        if (engine->allowed && (boxes->standard == NULL || boxes->standard->launcher == NULL) &&
            (boxes->standard == NULL || engine->launcher != NULL)) {
            boxes->standard = engine;
        }
    }
    boxes->image = alloc_text(config->image != NULL ? config->image : BOXES_IMAGE);
    boxes->cache_dir = config->image_cache == NULL ? NULL : alloc_text(config->image_cache);
    return boxes->standard != NULL
               ? 0
               : err_set(err, ERR_BAD_VALUE, 0, "there is no engine \"%s\"", config->engine);
}

void boxes_engines_done(struct boxes *boxes)
{
    for (size_t i = 0; i < BOXES_ENGINES_MAX; i++) {
        free(boxes->engines[i].launcher);
    }
    free(boxes->image);
    free(boxes->cache_dir);
}

struct boxes_engine *boxes_engines_pick(struct boxes *boxes, const char *name, struct err *err)
{
    if (name == NULL) {
        return boxes->standard;
    }
    for (size_t i = 0; i < BOXES_ENGINES_MAX; i++) {
        if (boxes->engines[i].allowed && text_equal(boxes->engines[i].kind->name, name)) {
            return &boxes->engines[i];
        }
    }
    (void)err_field(err, ERR_NOT_SUPPORTED_HERE, "/engine", "this server has no engine %s", name);
    return NULL;
}

void boxes_engines_names(const struct boxes *boxes, const char **ret_own, const char **ret_other)
{
    *ret_own = boxes->standard->kind->name;
    *ret_other = NULL;
    for (size_t i = 0; i < BOXES_ENGINES_MAX; i++) {
        if (&boxes->engines[i] != boxes->standard && boxes->engines[i].launcher != NULL) {
            *ret_other = boxes->engines[i].kind->name;
        }
    }
}

bool boxes_engines_have(const struct boxes *boxes, const char *name)
{
    for (size_t i = 0; i < BOXES_ENGINES_MAX; i++) {
        if (boxes->engines[i].launcher != NULL && text_equal(boxes->engines[i].kind->name, name)) {
            return true;
        }
    }
    return false;
}

int boxes_engines_check(const struct boxes_engine *engine, struct err *err)
{
    if (engine->launcher != NULL) {
        return 0;
    }
    (void)err_set(err, ERR_ENGINE_UNAVAILABLE, ENOENT, "the program %s is not installed",
                  engine->kind->launcher_name);
    return engine->kind->images ? err_remedy(err, "install kern (github.com/getkern/kern)")
                                : err_remedy(err, "sudo apt install %s", engine->kind->package);
}

const char *boxes_engines_image_program(const struct boxes *boxes, const char **ret_cache_dir)
{
    for (size_t i = 0; i < BOXES_ENGINES_MAX; i++) {
        if (boxes->engines[i].kind->images && boxes->engines[i].launcher != NULL) {
            *ret_cache_dir = boxes->cache_dir;
            return boxes->engines[i].launcher;
        }
    }
    return NULL;
}

static void ask_version(void *context)
{
    struct boxes_engine *engine = context;
    CLEANUP_FREE char *version = launcher_version(engine->launcher);

    (void)snprintf(engine->version, sizeof(engine->version), "%s", version);
}

/* Asked for when first wanted: it costs a process, and starting up should not. */
const char *boxes_engines_version(struct boxes *boxes, struct boxes_engine *engine)
{
    if (!engine->version_known && engine->launcher != NULL) {
        engine->version_known = true;
        (void)boxes_errand(boxes, ask_version, engine, NULL);
    }
    return engine->version;
}

static int cap_bound(struct boxes_engine *engine)
{
    int cap = atomic_load(&engine->cap);

    return cap == ENGINE_CAP_UNKNOWN ? -1 : cap == ENGINE_CAP_BOUND;
}

size_t boxes_engines(struct boxes *boxes, struct boxes_engine_view ret_views[BOXES_ENGINES_MAX])
{
    size_t count = 0;

    (void)pthread_mutex_lock(&boxes->lock);
    for (size_t i = 0; i < BOXES_ENGINES_MAX; i++) {
        struct boxes_engine *engine = &boxes->engines[i];
        struct boxes_engine_view *view = &ret_views[count];

        if (engine->launcher == NULL && engine != boxes->standard) {
            continue;
        }
        *view = (struct boxes_engine_view){ .name = engine->kind->name,
                                            .standard = engine == boxes->standard,
                                            .ready = boxes_ready_locked(boxes, engine),
                                            .images = engine->kind->images,
                                            .cap_bound = cap_bound(engine),
                                            .failure = engine->failure };
        (void)snprintf(view->version, sizeof(view->version), "%s",
                       boxes_engines_version(boxes, engine));
        count++;
    }
    (void)pthread_mutex_unlock(&boxes->lock);
    return count;
}
