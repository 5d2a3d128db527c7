/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: boxes that nobody pumps: look at them, measure them, stop and wake their processes.
 * Owns: nothing beyond the box.
 * Threads: the box's; box_memory from any.
 * May include: base, box, initlink, proctree, watchdog.
 */
#include <signal.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/box/box_internal.h"
#include "lib/box/proctree.h"

enum box_stop box_look(struct box *box)
{
    enum box_stop stop = BOX_STOP_PEER_DONE;

    initlink_hear(&box->link);
    if (box->link.report.has_exited) {
        stop = BOX_STOP_EXITED;
    } else if (box->link.report.lost) {
        stop = BOX_STOP_LOST;
    } else if (watchdog_look(&box->watchdog)) {
        stop = BOX_STOP_OOM;
    }
    box->stop = stop;
    box->pumped = true;
    return stop;
}

int64_t box_memory(const struct box *box)
{
    struct proctree tree = { .pids = NULL };
    uint64_t bytes;

    if (!proctree_supported()) {
        return -1;
    }
    tree.pids = alloc_zero(PROCTREE_MAX, sizeof(*tree.pids));
    proctree_list(box->link.pid, &tree);
    bytes = proctree_resident(&tree);
    free(tree.pids);
    return (int64_t)bytes;
}

int box_freeze(struct box *box, bool frozen, struct err *err)
{
    return box_signal(box, frozen ? SIGSTOP : SIGCONT, true, err);
}
