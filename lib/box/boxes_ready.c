/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: find out, by starting one, whether boxes can start on this host.
 * Owns: nothing beyond the factory's memory of it.
 * Threads: any; one has a starter probe, the others wait for its answer.
 * May include: base, box, boxes.
 */
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/clock.h"
#include "lib/box/box.h"
#include "lib/box/boxes_internal.h"

#define PROBE_S 5
#define PROBE_AGAIN_NS CLOCK_NS_PER_S

/* Runs `true` in a box. 0, or -1 with the reason. */
static int run_true(struct boxes *boxes, const struct boxes_engine *engine, struct err *err)
{
    struct box_spec spec = { .engine = engine->kind->name,
                             .workspace = boxes->probe_dir,
                             .deadline = clock_deadline_after_s(PROBE_S) };
    CLEANUP_STRV struct strv argv = { 0 };
    struct box_program program = { .argv = &argv };
    struct box_io io = { .deadline = clock_deadline_after_s(PROBE_S), .peer_fd = -1 };
    struct box_outcome outcome;
    struct box *box = NULL;
    enum box_stop stop = BOX_STOP_LOST;

    if (box_start(boxes, &spec, &box, err) < 0) {
        return -1;
    }
    strv_add(&argv, "true");
    if (box_begin(box, &program, err) < 0) {
        box_end(box, NULL, &outcome);
        return -1;
    }
    stop = box_pump(box, &io);
    box_end(box, &io, &outcome);
    if (stop != BOX_STOP_EXITED || !outcome.has_status || outcome.wait_status != 0) {
        return err_set(err, ERR_ENGINE_UNAVAILABLE, outcome.start_errno,
                       "a box starts, but can't run the program `true`: %s", outcome.evidence);
    }
    return 0;
}

/*
 * An empty box: which images are here is another question. It is up, kernd-init runs in it and got
 * its streams.
 */
static int start_empty(struct boxes *boxes, const struct boxes_engine *engine, struct err *err)
{
    const struct box_spec spec = { .engine = engine->kind->name,
                                   .extras = { .image = ENGINE_IMAGE_EMPTY },
                                   .workspace = boxes->probe_dir,
                                   .deadline = clock_deadline_after_s(PROBE_S) };
    struct box_outcome outcome;
    struct box *box = NULL;

    if (box_start(boxes, &spec, &box, err) < 0) {
        return -1;
    }
    box_end(box, NULL, &outcome);
    return 0;
}

struct probe {
    struct boxes *boxes;
    const struct boxes_engine *engine;
    struct err failure;
    bool works;
};

static void run_probe(void *context)
{
    struct probe *asked = context;

    asked->works = asked->engine->kind->images
                       ? start_empty(asked->boxes, asked->engine, &asked->failure) == 0
                       : run_true(asked->boxes, asked->engine, &asked->failure) == 0;
}

/* Locked. */
static void find_out(struct boxes *boxes, struct boxes_engine *engine)
{
    struct probe asked = { .boxes = boxes, .engine = engine, .failure = ERR_INIT };

    if (boxes_errand(boxes, run_probe, &asked, &asked.failure) < 0) {
        asked.works = false;
    }
    engine->ready = asked.works;
    engine->failure = asked.failure;
    engine->failure.code = ERR_ENGINE_UNAVAILABLE;
    engine->probed_ns = clock_mono_ns();
}

static struct boxes_identity identify(const char *path)
{
    struct stat status;

    if (path == NULL || stat(path, &status) < 0) {
        return (struct boxes_identity){ .inode = 0 };
    }
    return (struct boxes_identity){ .device = status.st_dev,
                                    .inode = status.st_ino,
                                    .size = status.st_size,
                                    .changed_ns = (int64_t)status.st_ctim.tv_sec * CLOCK_NS_PER_S +
                                                  status.st_ctim.tv_nsec };
}

static bool same(const struct boxes_identity *a, const struct boxes_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed_ns == b->changed_ns;
}

bool boxes_ready_locked(struct boxes *boxes, struct boxes_engine *engine)
{
    const struct boxes_identity now = identify(engine->launcher);
    bool never = engine->probed_ns == 0;

    if (!same(&now, &engine->identity)) {
        engine->identity = now;
        engine->ready = false;
        engine->version_known = false;
        never = true;
    }
    if (!engine->ready && (never || clock_mono_ns() - engine->probed_ns >= PROBE_AGAIN_NS)) {
        find_out(boxes, engine);
    }
    return engine->ready;
}

int boxes_ready(struct boxes *boxes, struct err *err)
{
    bool ready = false;

    (void)pthread_mutex_lock(&boxes->lock);
    ready = boxes_ready_locked(boxes, boxes->standard);
    if (!ready && err != NULL) {
        *err = boxes->standard->failure;
    }
    (void)pthread_mutex_unlock(&boxes->lock);
    return ready ? 0 : -1;
}
