/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: all numbers for a monitoring system, as Prometheus text.
 * Owns: nothing.
 * Threads: the quick lane.
 * May include: lib/base, lib/sandbox.
 */
#include "api/resource_metrics.h"

#include "api/metrics_out.h"
#include "api/resource.h"
#include "api/traffic.h"
#include "lib/base/self.h"
#include "lib/sandbox/sandbox.h"
#include "lib/sandbox/tally.h"

#define MS_PER_S 1000.0

static void write_build(struct metrics_out *out, const struct boxes_abilities *abilities)
{
    const char *version = abilities->engine_version;

    metrics_out_family(out, "kernd_build_info", "gauge", "Always 1; the labels tell what runs.");
    metrics_out_value(out,
                      (const char *const[]){ "version", KERND_VERSION, "engine", abilities->engine,
                                             "engine_version", version != NULL ? version : "",
                                             NULL },
                      1);
}

static void write_queue(struct metrics_out *out, const struct sandbox_stats *stats)
{
    metrics_out_single(out, "kernd_queue_length", "gauge", "Executions that wait for a run thread.",
                       (double)stats->queued);
    metrics_out_single(out, "kernd_queue_limit", "gauge", "How many may wait.",
                       (double)stats->queue_max);
    metrics_out_single(out, "kernd_callers", "gauge", "Callers with executions that run or wait.",
                       (double)stats->callers);
    metrics_out_single(out, "kernd_run_threads", "gauge", "How many may run at the same time.",
                       (double)stats->run_threads);
    metrics_out_single(out, "kernd_executions_running", "gauge", "Run threads at work.",
                       (double)stats->running);
}

static void write_executions(struct metrics_out *out, const struct tally_view *tally)
{
    metrics_out_family(out, "kernd_executions_total", "counter",
                       "Executions that ended, by what the sandbox had to do (fault none: nothing; "
                       "error: there is no result).");
    for (size_t kind = 0; kind < TALLY_KINDS; kind++) {
        const char *name = run_kind_text((enum run_kind)kind);

        for (size_t fault = 0; fault < TALLY_FAULTS; fault++) {
            const char *text = run_fault_text((enum run_fault)fault);

            metrics_out_value(
                out,
                (const char *const[]){ "kind", name, "fault", text != NULL ? text : "none", NULL },
                (double)tally->ends[kind][fault]);
        }
        metrics_out_value(out, (const char *const[]){ "kind", name, "fault", "error", NULL },
                          (double)tally->errors[kind]);
    }
}

static size_t live_kernels(const struct tally_view *tally)
{
    size_t count = 0;

    for (size_t state = 0; state < KERNELS_DEAD; state++) {
        count += tally->kernels[state];
    }
    return count;
}

/* Counted one after another: what began in between must not make a number negative. */
static void write_boxes(struct metrics_out *out, const struct sandbox_stats *stats,
                        const struct tally_view *tally, const char *engine)
{
    const size_t kernels = live_kernels(tally);
    const size_t others = stats->spares + kernels + stats->templates;
    const struct {
        const char *state;
        size_t count;
    } rows[] = { { "work", stats->boxes > others ? stats->boxes - others : 0 },
                 { "spare", stats->spares },
                 { "kernel", kernels },
                 { "template", stats->templates } };

    metrics_out_family(out, "kernd_boxes", "gauge", "Boxes that live.");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        metrics_out_value(out,
                          (const char *const[]){ "engine", engine, "state", rows[i].state, NULL },
                          (double)rows[i].count);
    }
    metrics_out_family(out, "kernd_kernels", "gauge", "Kernels by state.");
    for (size_t state = 0; state < TALLY_KERNEL_STATES; state++) {
        const char *text = kernels_state_text((enum kernels_state)state);

        metrics_out_value(out, (const char *const[]){ "state", text, NULL },
                          (double)tally->kernels[state]);
    }
    metrics_out_family(out, "kernd_spare_takes_total", "counter",
                       "Calls that found a box started ahead (hit), or none (miss).");
    metrics_out_value(out, (const char *const[]){ "result", "hit", NULL },
                      (double)stats->spare_hits);
    metrics_out_value(out, (const char *const[]){ "result", "miss", NULL },
                      (double)stats->spare_misses);
    metrics_out_single(out, "kernd_forks_total", "counter",
                       "Boxes that were forked of a warm interpreter, in place of a start.",
                       (double)stats->forks);
}

static void write_step(void *context, const struct steps_row *row)
{
    metrics_out_histogram(
        context, (const char *const[]){ "step", row->name, NULL },
        &(struct metrics_out_histogram){ row->bounds_s, row->at_most, STEPS_BUCKETS, row->sum_s });
}

static void write_disk(struct metrics_out *out, const struct sandbox_stats *stats,
                       const struct tally_view *tally)
{
    metrics_out_single(out, "kernd_store_bytes", "gauge", "The database and its log.",
                       (double)tally->store_bytes);
    metrics_out_single(out, "kernd_journal_bytes", "gauge",
                       "Event logs of executions, as the janitor found them last.",
                       (double)tally->journal_bytes);
    metrics_out_single(out, "kernd_snapshot_bytes", "gauge", "Archives of snapshots.",
                       (double)tally->snapshot_bytes);
    metrics_out_single(out, "kernd_store_writes_queued", "gauge", "Records not written yet.",
                       (double)stats->records_queued);
    metrics_out_single(out, "kernd_store_writes_dropped_total", "counter",
                       "Records given up because the disk stayed full.",
                       (double)stats->records_dropped);
}

/* Under the names that every exporter gives them. */
static void write_process(struct metrics_out *out, int64_t started_wall_ms)
{
    struct self_cost cost;

    self_measure(&cost);
    metrics_out_single(out, "process_cpu_seconds_total", "counter",
                       "User and system time of the server itself.", cost.cpu_s);
    metrics_out_single(out, "process_resident_memory_bytes", "gauge", "Resident memory.",
                       (double)cost.resident_bytes);
    metrics_out_single(out, "process_virtual_memory_bytes", "gauge", "Address space.",
                       (double)cost.virtual_bytes);
    metrics_out_single(out, "process_open_fds", "gauge", "Open descriptors.",
                       (double)cost.open_fds);
    metrics_out_single(out, "process_max_fds", "gauge", "How many there may be.",
                       (double)cost.max_fds);
    metrics_out_single(out, "process_start_time_seconds", "gauge",
                       "Start of the server, in seconds since 1970.",
                       (double)started_wall_ms / MS_PER_S);
}

static void write_all(const struct api *api, struct metrics_out *out)
{
    struct boxes_abilities abilities;
    struct sandbox_stats stats;
    struct tally_view tally;

    sandbox_abilities(api->sandbox, &abilities);
    sandbox_stats(api->sandbox, &stats);
    tally_read(api->sandbox, &tally);
    write_build(out, &abilities);
    traffic_write(api->traffic, out);
    write_queue(out, &stats);
    write_executions(out, &tally);
    write_boxes(out, &stats, &tally, abilities.engine);
    metrics_out_family(out, "kernd_step_duration_seconds", "histogram",
                       "Where the time of calls went, step by step.");
    steps_each(sandbox_steps(api->sandbox), write_step, out);
    write_disk(out, &stats, &tally);
    write_process(out, api->started_wall_ms);
}

void resource_metrics(struct api_call *call)
{
    struct metrics_out out;
    struct err err = ERR_INIT;

    if (resource_no_query(call, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    call->reply.status = 200;
    api_reply_header(&call->reply, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    metrics_out_init(&out, &call->reply.body);
    write_all(call->api, &out);
    if (out.failed) {
        (void)err_set(&err, ERR_INTERNAL, 0, "the answer is larger than this server can send");
        resource_fail(call, &err);
        return;
    }
    api_call_finish(call);
}
