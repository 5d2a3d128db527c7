/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write the result of an execution.
 * Owns: the names and the order of its fields.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox.
 */
#include "api/result_out.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "api/limits_out.h"
#include "api/member_out.h"
#include "api/parts_out.h"
#include "api/problem.h"
#include "lib/base/text.h"

#define SIZE 1536 /* of most results without their output: the buffer need not grow in steps */

/* ---- how it ended ---- */

static void write_signal(struct json_out *json, int number)
{
    const char *name = number > 0 ? sigabbrev_np(number) : NULL;
    char text[24];

    if (number > 0 && name == NULL) {
        (void)snprintf(text, sizeof(text), "RTMIN+%d", number - SIGRTMIN);
        name = text;
    }
    member_out_string(json, "signal", name);
}

static void write_end(struct json_out *json, const struct run_result *result)
{
    bool success =
        result->has_exit_code && result->exit_code == 0 && result->fault == RUN_FAULT_NONE;

    member_out_bool(json, "success", success);
    member_out_measured(json, "exitCode", result->has_exit_code ? result->exit_code : -1);
    write_signal(json, result->signal);
}

static void write_fault(struct json_out *json, const struct run_result *result)
{
    json_out_key(json, "fault");
    if (result->fault == RUN_FAULT_NONE) {
        json_out_null(json);
        return;
    }
    json_out_open(json, '{');
    member_out_string(json, "type", run_fault_text(result->fault));
    member_out_string(json, "message", result->fault_message);
    member_out_string(json, "evidence",
                      result->fault_evidence[0] == '\0' ? NULL : result->fault_evidence);
    json_out_close(json, '}');
}

/* ---- output ---- */

/* Of what a record keeps inline; the log of events has all of it. */
#define KEPT_STREAM_MAX ((size_t)1 << 20)
#define KEPT_RESULTS_MAX ((size_t)8 << 20)
#define KEPT_FETCHED_MAX ((size_t)1 << 20)

static bool is_cut(const struct result_out *what, const struct buf *data)
{
    return what->kept && data->size > KEPT_STREAM_MAX;
}

static void write_stream(struct json_out *json, const struct result_out *what,
                         const struct buf *data, bool truncated)
{
    bool cut = is_cut(what, data);
    size_t size = cut ? KEPT_STREAM_MAX : data->size;

    if (what->request->stdout_base64) {
        json_out_base64(json, data->data, size);
        return;
    }
    /* The cap may have cut a character: half of one is not shown. */
    if (truncated || cut) {
        size -= text_utf8_partial_tail(data->data, size);
    }
    json_out_text(json, data->data, size);
}

static void write_cut_stream(struct json_out *json, const struct result_out *what, const char *name,
                             const struct buf *data)
{
    char url[128];

    if (!is_cut(what, data)) {
        return;
    }
    (void)snprintf(url, sizeof(url), "/v1/executions/%s/%s", what->id, name);
    json_out_open(json, '{');
    member_out_string(json, "stream", name);
    json_out_key(json, "bytes");
    json_out_count(json, data->size);
    member_out_string(json, "url", url);
    json_out_close(json, '}');
}

static void write_streams(struct json_out *json, const struct result_out *what)
{
    const struct run_result *result = what->result;

    json_out_key(json, "stdout");
    write_stream(json, what, &result->stdout_data, result->truncated_stdout);
    json_out_key(json, "stderr");
    write_stream(json, what, &result->stderr_data, result->truncated_stderr);
    if (is_cut(what, &result->stdout_data) || is_cut(what, &result->stderr_data)) {
        json_out_key(json, "cutStreams");
        json_out_open(json, '[');
        write_cut_stream(json, what, "stdout", &result->stdout_data);
        write_cut_stream(json, what, "stderr", &result->stderr_data);
        json_out_close(json, ']');
    }
}

/* Also in the end event, whose stream had the output itself. */
static void write_about_streams(struct json_out *json, const struct result_out *what)
{
    if (what->request->stdout_base64) {
        member_out_string(json, "stdoutEncoding", "base64");
    }
    parts_out_truncated(json, what->result->truncated_stdout, what->result->truncated_stderr);
}

/* ---- rich results ---- */

/* True: some were left out. */
static bool write_results(struct json_out *json, const struct result_out *what)
{
    const struct run_result *result = what->result;
    struct bundle bundle;
    size_t left = what->kept ? KEPT_RESULTS_MAX : SIZE_MAX;
    size_t count = 0;

    json_out_key(json, "results");
    json_out_open(json, '[');
    for (; count < result->result_count && result->results[count].size <= left; count++) {
        const struct buf *encoded = &result->results[count];

        left -= encoded->size;
        if (bundle_decode(encoded->data, encoded->size, &bundle, NULL) == 0) {
            json_out_open(json, '{');
            parts_out_bundle(json, &bundle);
            json_out_close(json, '}');
        }
    }
    json_out_close(json, ']');
    return count < result->result_count;
}

/* ---- files ---- */

static void write_files(struct json_out *json, const struct run_result *result)
{
    json_out_key(json, "files");
    json_out_open(json, '[');
    for (size_t i = 0; i < result->change_count; i++) {
        const struct run_change_row *row = &result->changes[i];

        json_out_open(json, '{');
        parts_out_change(json, row->path, row->size, row->change);
        json_out_close(json, '}');
    }
    json_out_close(json, ']');
}

/* Two spellings of one path would give the object the same name twice. */
static bool is_repeated(const struct run_result *result, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (text_equal(result->fetched[i].path, result->fetched[index].path)) {
            return true;
        }
    }
    return false;
}

static void write_fetched(struct json_out *json, const struct result_out *what)
{
    const struct run_result *result = what->result;
    size_t left = what->kept ? KEPT_FETCHED_MAX : SIZE_MAX;

    json_out_key(json, "fetched");
    json_out_open(json, '{');
    for (size_t i = 0; i < result->fetched_count; i++) {
        const struct run_fetched *file = &result->fetched[i];

        if (is_repeated(result, i)) {
            continue;
        }
        json_out_key(json, file->path);
        json_out_open(json, '{');
        if (file->data == NULL) {
            member_out_string(json, "error", file->reason);
        } else if (file->size > left) {
            member_out_string(json, "error", "not_kept");
        } else {
            left -= file->size;
            json_out_key(json, "base64");
            json_out_base64(json, file->data, file->size);
        }
        json_out_close(json, '}');
    }
    json_out_close(json, '}');
}

/* ---- what it cost, and under which limits ---- */

static void write_usage(struct json_out *json, const struct run_usage *usage)
{
    json_out_key(json, "usage");
    json_out_open(json, '{');
    member_out_ms(json, "wallMs", usage->wall_ms);
    member_out_ms(json, "queueMs", usage->queue_ms);
    member_out_ms(json, "startMs", usage->start_ms);
    member_out_ms(json, "cpuUserMs", usage->cpu_user_ms);
    member_out_ms(json, "cpuSystemMs", usage->cpu_system_ms);
    member_out_measured(json, "peakMemoryBytes", usage->peak_memory_bytes);
    member_out_measured(json, "peakPids", usage->peak_pids);
    member_out_string(json, "source", usage->source);
    json_out_close(json, '}');
}

static void write_limits(struct json_out *json, const struct limits *limits,
                         const struct run_enforced *enforced)
{
    json_out_key(json, "limits");
    json_out_open(json, '{');
    limits_out_members(json, limits);
    json_out_key(json, "enforced");
    json_out_open(json, '{');
    member_out_string(json, "memory", enforced->memory);
    member_out_string(json, "pids", enforced->pids);
    member_out_string(json, "cpu", enforced->cpu);
    member_out_string(json, "disk", enforced->disk);
    json_out_close(json, '}');
    json_out_close(json, '}');
}

static void write_times(struct json_out *json, const struct run_result *result)
{
    double wall_ms = result->usage.wall_ms;

    member_out_measured(json, "durationMs", wall_ms < 0 ? -1 : (int64_t)(wall_ms + 0.5));
    json_out_key(json, "startedAt");
    json_out_time(json, result->started_wall_ms);
    json_out_key(json, "finishedAt");
    json_out_time(json, result->finished_wall_ms);
}

static void write_error(struct json_out *json, const struct err *failure)
{
    json_out_key(json, "error");
    json_out_open(json, '{');
    problem_write_members(json, failure);
    json_out_close(json, '}');
}

/* ---- cells ---- */

/* Text that was written between the end of the cell before and the start of this one. */
static void write_background(struct json_out *json, const struct run_result *result)
{
    json_out_key(json, "background");
    if (result->late_stdout.size == 0 && result->late_stderr.size == 0) {
        json_out_null(json);
        return;
    }
    json_out_open(json, '{');
    json_out_key(json, "stdout");
    json_out_text(json, result->late_stdout.data, result->late_stdout.size);
    json_out_key(json, "stderr");
    json_out_text(json, result->late_stderr.data, result->late_stderr.size);
    json_out_close(json, '}');
}

static void write_cell(struct json_out *json, const struct run_result *result)
{
    json_out_key(json, "stateKept");
    if (result->started_wall_ms > 0) {
        json_out_bool(json, result->state_kept);
    } else {
        json_out_null(json);
    }
    write_background(json, result);
}

static void write_members(struct json_out *json, const struct result_out *what, bool whole)
{
    const struct run_result *result = what->result;
    bool left_out = false;

    (void)buf_reserve(json->out, SIZE); /* if it is not to be had, writing tells */
    member_out_string(json, "id", what->id);
    member_out_string(json, "sessionId", what->session_id);
    member_out_string(json, "kernelId", what->kernel_id);
    member_out_string(json, "kind", run_kind_text(what->request->kind));
    member_out_string(json, "state", "done");
    write_end(json, result);
    if (whole) {
        write_streams(json, what);
    }
    write_about_streams(json, what);
    write_fault(json, result);
    if (what->request->kind == RUN_CELL) {
        write_cell(json, result);
    }
    if (whole) {
        left_out = write_results(json, what);
        write_files(json, result);
    }
    member_out_bool(json, "resultsTruncated", result->results_truncated || left_out);
    member_out_bool(json, "filesTruncated", result->changes_truncated);
    write_fetched(json, what);
    write_usage(json, &result->usage);
    write_limits(json, &what->request->limits, &result->enforced);
    write_times(json, result);
    if (what->failure != NULL) {
        write_error(json, what->failure);
    }
}

void result_out_write(struct json_out *json, const struct result_out *what)
{
    json_out_open(json, '{');
    write_members(json, what, true);
    json_out_close(json, '}');
}

void result_out_write_end(struct json_out *json, const struct result_out *what)
{
    json_out_open(json, '{');
    write_members(json, what, false);
    json_out_close(json, '}');
}
