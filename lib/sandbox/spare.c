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
#include "lib/base/id.h"
#include "lib/box/box.h"
#include "lib/cell/cell.h"
#include "lib/sandbox/boxing.h"
#include "lib/sandbox/capacity.h"
#include "lib/sandbox/shelf.h"

#define BOOT_S 20
#define MIB (UINT64_C(1) << 20)

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
        place_close(&spare->place);
    }
    strv_done(&spare->env);
    strv_done(&spare->change);
    free(spare);
}

static int open_place(struct sandbox *sandbox, const struct shelf *shelf, struct spare *spare,
                      struct err *err)
{
    char name[ID_SIZE];

    if (shelf->session_id[0] != '\0') {
        return 0;
    }
    return place_open_fresh(sandbox, id_make("call-spare", name), &spare->place, err);
}

static int boot_driver(const struct shelf *shelf, struct spare *spare, const struct boxing *boxing)
{
    struct cell_boot boot = { .language = (enum cell_language)shelf->like->language,
                              .env = &spare->env,
                              .preload = &shelf->like->preload,
                              .deadline = clock_deadline_after_s(BOOT_S),
                              .cancel = boxing->cancel };

    boxing_env(boxing, &spare->env);
    return shelf->driver ? cell_boot(spare->box, &boot, &spare->booted, NULL) : 0;
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
                             .driver = shelf->driver };

    spare->sandbox = sandbox;
    if (open_place(sandbox, shelf, spare, NULL) < 0) {
        spare_free(spare);
        return NULL;
    }
    if (boxing.workspace == NULL) {
        boxing.workspace = spare->place.path;
    } else {
        root = open(boxing.workspace, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        boxing.root = root;
    }
    if (boxing_start(&boxing, &spare->box, NULL) < 0 || boot_driver(shelf, spare, &boxing) < 0) {
        spare_free(spare);
        return NULL;
    }
    spare->born_ns = clock_mono_ns();
    return spare;
}

bool spare_arm(struct spare *spare, const struct run_request *request)
{
    const struct box_limits limits = { .memory_bytes = request->limits.memory_mb * MIB,
                                       .pids = (uint32_t)request->limits.pids,
                                       .cpus = request->limits.cpus,
                                       .disk_bytes = request->limits.disk_mb * MIB };

    return box_lives(spare->box) && box_rearm(spare->box, &limits, NULL) == 0;
}
