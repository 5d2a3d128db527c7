/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spare: booting, arming and ending one box ahead of its call.
 * Owns: the box, its driver, and a fresh workspace for calls without a session.
 * Threads: one at a time.
 * May include: all of lib.
 */
#include "lib/sandbox/spare.h"

#include <fcntl.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/box/box.h"
#include "lib/cell/cell.h"
#include "lib/sandbox/boxing.h"
#include "lib/sandbox/capacity.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/shelf.h"
#include "lib/sandbox/templates.h"

#define BOOT_S 20

void spare_free(struct spare *spare)
{
    struct box_outcome outcome;

    if (spare == NULL) {
        return;
    }
    cell_unboot(spare->booted);
    if (spare->box != NULL) {
        box_end(spare->box, NULL, &outcome);
    }
    capacity_give(spare->sandbox, &spare->memory, 0);
    if (spare->place.path != NULL) {
        place_close(&spare->place, false);
    }
    strv_done(&spare->env);
    strv_done(&spare->change);
    free(spare);
}

static int open_place(struct sandbox *sandbox, const struct shelf *shelf, struct spare *spare,
                      struct err *err)
{
    return shelf->session_id[0] != '\0' ? 0 : place_open_fresh(sandbox, &spare->place, err);
}

/* Where a box ahead of its call comes from: of a template, else booted. */
static int make_box(struct spare *spare, const struct boxing *boxing)
{
    struct cell_boot boot = { .language = (enum cell_language)boxing->request->language,
                              .env = &spare->env,
                              .preload = &boxing->request->preload,
                              .deadline = clock_deadline_after_s(BOOT_S),
                              .cancel = boxing->cancel };

    if (templates_fork(boxing->sandbox->templates, boxing, spare)) {
        strv_done(&spare->change); /* that of its shelf; its call may have another */
        return 0;
    }
    if (boxing_start(boxing, &spare->box, NULL) < 0) {
        return -1;
    }
    boxing_env(boxing, &spare->env);
    return boxing->driver ? cell_boot(spare->box, &boot, &spare->booted, NULL) : 0;
}

struct spare *spare_boot(struct sandbox *sandbox, const struct shelf *shelf, struct cancel *cancel)
{
    struct spare *spare = alloc_zero(1, sizeof(*spare));
    CLEANUP_FD int root = -1;
    struct boxing boxing = { .sandbox = sandbox,
                             .request = shelf->like,
                             .workspace = shelf->workspace,
                             .root = -1,
                             .cancel = cancel,
                             .driver = shelf->driver,
                             .bare = shelf->session_id[0] == '\0',
                             .ahead = true };

    spare->sandbox = sandbox;
    if (open_place(sandbox, shelf, spare, NULL) < 0) {
        spare_free(spare);
        return NULL;
    }
    if (boxing.workspace == NULL) {
        boxing.workspace = spare->place.path;
        boxing.root = spare->place.root;
    } else {
        root = open(boxing.workspace, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        boxing.root = root;
    }
    if (make_box(spare, &boxing) < 0) {
        spare_free(spare);
        return NULL;
    }
    spare->born_ns = clock_mono_ns();
    return spare;
}

struct spare *spare_fork(const struct boxing *boxing)
{
    struct spare *spare = alloc_zero(1, sizeof(*spare));

    spare->sandbox = boxing->sandbox;
    if (templates_fork(boxing->sandbox->templates, boxing, spare) &&
        spare_arm(spare, boxing->request)) {
        return spare;
    }
    spare_free(spare);
    return NULL;
}

bool spare_arm(struct spare *spare, const struct run_request *request)
{
    const struct box_limits limits = boxing_limits(request);

    return box_lives(spare->box) && box_rearm(spare->box, &limits, NULL) == 0;
}
