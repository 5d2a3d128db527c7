/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: evidence to outcome.
 * Owns: nothing.
 * Threads: any.
 * May include: base, box, initlink.
 */
#include "lib/box/outcome.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#define MIB UINT64_C(1048576)

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The kernel's own count, where there is one. */
static void prefer(int64_t *value, int64_t counted)
{
    *value = counted >= 0 ? counted : *value;
}

static void take_usage(const struct initlink_report *report, const struct outcome_facts *facts,
                       struct box_outcome *outcome)
{
    outcome->cpu_user_us = -1;
    outcome->cpu_system_us = -1;
    outcome->peak_memory_bytes = facts->peak_bytes;
    outcome->peak_pids = facts->peak_pids;
    if (report->has_exited) {
        outcome->cpu_user_us = report->exited.cpu_user_us;
        outcome->cpu_system_us = report->exited.cpu_system_us;
        outcome->peak_memory_bytes = larger(facts->peak_bytes, report->exited.max_rss_bytes);
    }
    prefer(&outcome->cpu_user_us, facts->usage.cpu_user_us);
    prefer(&outcome->cpu_system_us, facts->usage.cpu_system_us);
    prefer(&outcome->peak_memory_bytes, facts->usage.peak_memory_bytes);
    prefer(&outcome->peak_pids, facts->usage.peak_pids);
}

static void take_evidence(const struct outcome_facts *facts, struct box_outcome *outcome)
{
    char *text = outcome->evidence;
    size_t size = sizeof(outcome->evidence);

    if (outcome->start_errno != 0) {
        (void)snprintf(text, size, "exec failed: %s", err_errno_text(outcome->start_errno));
    } else if (outcome->oom && facts->usage.oom_kills > 0) {
        (void)snprintf(text, size,
                       "memory.events: oom_kill %" PRId64 ", cap %" PRIu64 " MiB, peak %" PRId64
                       " MiB",
                       facts->usage.oom_kills, facts->memory_cap / MIB,
                       outcome->peak_memory_bytes / (int64_t)MIB);
    } else if (outcome->oom) {
        (void)snprintf(text, size,
                       "memory watchdog: %" PRIu64
                       " MiB in %zu processes, above the cap of %" PRIu64 " MiB",
                       facts->over_bytes / MIB, facts->over_processes, facts->memory_cap / MIB);
    } else if (outcome->disk_full && facts->files > 0) {
        (void)snprintf(text, size,
                       "counted: %" PRIu64
                       " files and directories (inodes) in the workspace, above the ceiling of "
                       "%" PRIu64,
                       facts->files, facts->files_cap);
    } else if (outcome->disk_full) {
        (void)snprintf(text, size,
                       "measured: %" PRIu64 " MiB in the workspace, above its quota of %" PRIu64
                       " MiB",
                       facts->disk_bytes / MIB, facts->disk_cap / MIB);
    } else if (outcome->escape_blocked) {
        (void)snprintf(text, size, "the program died of SIGSYS: a system call that is not allowed");
    } else if (facts->pumped && facts->stop == BOX_STOP_LOST) {
        (void)snprintf(text, size, "the box ended without a report: killed from outside");
    }
}

void outcome_judge(const struct initlink_report *report, const struct outcome_facts *facts,
                   struct box_outcome *ret_outcome)
{
    struct box_outcome outcome = { .gone = facts->gone, .ended_ns = facts->ended_ns };

    if (report->has_started) {
        outcome.start_errno = report->started.start_errno;
        outcome.started = report->started.start_errno == 0;
        outcome.started_ns = outcome.started ? report->started.at_ns : 0;
    }
    if (report->has_exited) {
        outcome.has_status = true;
        outcome.wait_status = report->exited.wait_status;
        outcome.ended_ns = report->exited.at_ns;
    }
    outcome.oom = (facts->pumped && facts->stop == BOX_STOP_OOM) || facts->usage.oom_kills > 0;
    outcome.disk_full = facts->pumped && facts->stop == BOX_STOP_DISK;
    outcome.escape_blocked = outcome.started && outcome.has_status &&
                             WIFSIGNALED(outcome.wait_status) &&
                             WTERMSIG(outcome.wait_status) == SIGSYS;
    take_usage(report, facts, &outcome);
    take_evidence(facts, &outcome);
    *ret_outcome = outcome;
}
