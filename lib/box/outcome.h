/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome: what is known about a box that ended, from evidence alone.
 */
#ifndef KERND_BOX_OUTCOME_H
#define KERND_BOX_OUTCOME_H

#include "lib/box/box.h"
#include "lib/box/cgroup.h"
#include "lib/box/initlink.h"

/* Everything kernd saw and did itself. */
struct outcome_facts {
    enum box_stop stop; /* why the last pump ended */
    bool pumped;        /* stop is valid */
    int64_t ended_ns;   /* when kernd saw the end, for boxes that did not report theirs */
    bool gone;
    uint64_t memory_cap;
    uint64_t over_bytes; /* the watchdog's measurement above the cap, 0: none */
    size_t over_processes;
    int64_t peak_bytes; /* the watchdog's largest sum, -1: it did not look */
    int64_t peak_pids;  /* -1: not counted */
    uint64_t disk_cap;
    uint64_t disk_bytes; /* measured above the cap, 0: none */
    uint64_t files_cap;
    uint64_t files;            /* counted above the cap, 0: none */
    struct cgroup_usage usage; /* all -1: the box had no cgroup */
};

/* Pure. Fills every field. */
void outcome_judge(const struct initlink_report *report, const struct outcome_facts *facts,
                   struct box_outcome *ret_outcome);

#endif
