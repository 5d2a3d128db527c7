/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: find out, by starting one, whether boxes can start on this host.
 * Owns: nothing beyond the factory's memory of it.
 * Threads: any; one has a starter probe, the others wait for its answer.
 * May include: base, box, boxes.
 */
#include <sys/wait.h>

#include "lib/base/clock.h"
#include "lib/box/box.h"
#include "lib/box/boxes_internal.h"

#define PROBE_S 5
#define PROBE_AGAIN_NS CLOCK_NS_PER_S

/* Runs `true` in a box. 0, or -1 with the reason. */
static int probe(struct boxes *boxes, struct err *err)
{
    struct box_spec spec = { .workspace = boxes->probe_dir,
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

struct probe {
    struct boxes *boxes;
    struct err failure;
    bool works;
};

static void run_probe(void *context)
{
    struct probe *asked = context;

    asked->works = probe(asked->boxes, &asked->failure) == 0;
}

/* Locked. */
static void find_out(struct boxes *boxes)
{
    struct probe asked = { .boxes = boxes, .failure = ERR_INIT };

    if (boxes_errand(boxes, run_probe, &asked, &asked.failure) < 0) {
        asked.works = false;
    }
    boxes->ready = asked.works;
    boxes->failure = asked.failure;
    boxes->failure.code = ERR_ENGINE_UNAVAILABLE;
    boxes->probed_ns = clock_mono_ns();
}

int boxes_ready(struct boxes *boxes, struct err *err)
{
    bool ready = false;

    (void)pthread_mutex_lock(&boxes->lock);
    if (!boxes->ready &&
        (boxes->probed_ns == 0 || clock_mono_ns() - boxes->probed_ns >= PROBE_AGAIN_NS)) {
        find_out(boxes);
    }
    ready = boxes->ready;
    if (!ready && err != NULL) {
        *err = boxes->failure;
    }
    (void)pthread_mutex_unlock(&boxes->lock);
    return ready ? 0 : -1;
}
