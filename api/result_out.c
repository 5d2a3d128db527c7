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

#include "api/json_scan.h"
#include "lib/base/text.h"

static void write_text_field(struct json_out *json, const char *name, const char *text)
{
    json_out_key(json, name);
    json_out_string(json, text);
}

static void write_bool_field(struct json_out *json, const char *name, bool value)
{
    json_out_key(json, name);
    json_out_bool(json, value);
}

static void write_ms_field(struct json_out *json, const char *name, double value)
{
    json_out_key(json, name);
    json_out_ms(json, value);
}

/* A negative number was not measured. */
static void write_measured_field(struct json_out *json, const char *name, int64_t value)
{
    json_out_key(json, name);
    if (value < 0) {
        json_out_null(json);
    } else {
        json_out_whole(json, value);
    }
}

/* A cap of 0 is none. */
static void write_cap_field(struct json_out *json, const char *name, double value)
{
    json_out_key(json, name);
    if (value > 0) {
        json_out_number(json, value);
    } else {
        json_out_null(json);
    }
}

/* ---- how it ended ---- */

static void write_signal(struct json_out *json, int number)
{
    const char *name = number > 0 ? sigabbrev_np(number) : NULL;
    char text[24];

    if (number > 0 && name == NULL) {
        (void)snprintf(text, sizeof(text), "RTMIN+%d", number - SIGRTMIN);
        name = text;
    }
    write_text_field(json, "signal", name);
}

static void write_end(struct json_out *json, const struct run_result *result)
{
    bool success =
        result->has_exit_code && result->exit_code == 0 && result->fault == RUN_FAULT_NONE;

    write_bool_field(json, "success", success);
    write_measured_field(json, "exitCode", result->has_exit_code ? result->exit_code : -1);
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
    write_text_field(json, "type", run_fault_text(result->fault));
    write_text_field(json, "message", result->fault_message);
    write_text_field(json, "evidence",
                     result->fault_evidence[0] == '\0' ? NULL : result->fault_evidence);
    json_out_close(json, '}');
}

/* ---- output ---- */

static void write_stream(struct json_out *json, const struct buf *data, bool truncated, bool base64)
{
    size_t size = data->size;

    if (base64) {
        json_out_base64(json, data->data, size);
        return;
    }
    /* The cap may have cut a character: half of one is not shown. */
    if (truncated) {
        size -= text_utf8_partial_tail(data->data, size);
    }
    json_out_text(json, data->data, size);
}

static void write_output(struct json_out *json, const struct run_result *result, bool base64)
{
    json_out_key(json, "stdout");
    write_stream(json, &result->stdout_data, result->truncated_stdout, base64);
    json_out_key(json, "stderr");
    write_stream(json, &result->stderr_data, result->truncated_stderr, base64);
    if (base64) {
        write_text_field(json, "stdoutEncoding", "base64");
    }
    write_bool_field(json, "truncated", result->truncated_stdout || result->truncated_stderr);
    json_out_key(json, "truncatedStreams");
    json_out_open(json, '[');
    if (result->truncated_stdout) {
        json_out_string(json, "stdout");
    }
    if (result->truncated_stderr) {
        json_out_string(json, "stderr");
    }
    json_out_close(json, ']');
}

/* ---- rich results ---- */

static bool is_json(const struct bundle_part *part)
{
    static const char whole[] = "application/json";
    static const char suffix[] = "+json";
    size_t suffix_size = sizeof(suffix) - 1;

    if (part->mime_size == sizeof(whole) - 1 && memcmp(part->mime, whole, part->mime_size) == 0) {
        return true;
    }
    return part->mime_size > suffix_size &&
           memcmp(part->mime + part->mime_size - suffix_size, suffix, suffix_size) == 0;
}

/*
 * JSON becomes part of the answer as it is, once it is known to be strict; else it is left out.
 * Was it written?
 */
static bool write_part(struct json_out *json, const struct bundle_part *part)
{
    const struct json_scan_bounds bounds = { .depth = RESULT_OUT_DEPTH, .values = SIZE_MAX };
    bool as_json = is_json(part);

    if (as_json && json_scan(part->data, part->data_size, &bounds, NULL) < 0) {
        return false;
    }
    json_out_key_bytes(json, part->mime, part->mime_size);
    if (as_json) {
        json_out_raw(json, part->data, part->data_size);
    } else {
        json_out_text(json, part->data, part->data_size);
    }
    return true;
}

static void write_bundle(struct json_out *json, const struct bundle *bundle)
{
    bool whole = !bundle->shortened;

    json_out_open(json, '{');
    json_out_key(json, "data");
    json_out_open(json, '{');
    for (size_t i = 0; i < bundle->count; i++) {
        whole = write_part(json, &bundle->parts[i]) && whole;
    }
    json_out_close(json, '}');
    write_bool_field(json, "isMain", bundle->is_main);
    write_bool_field(json, "truncated", !whole);
    json_out_close(json, '}');
}

static void write_results(struct json_out *json, const struct run_result *result)
{
    struct bundle bundle;

    json_out_key(json, "results");
    json_out_open(json, '[');
    for (size_t i = 0; i < result->result_count; i++) {
        const struct buf *encoded = &result->results[i];

        if (bundle_decode(encoded->data, encoded->size, &bundle, NULL) == 0) {
            write_bundle(json, &bundle);
        }
    }
    json_out_close(json, ']');
    write_bool_field(json, "resultsTruncated", result->results_truncated);
}

/* ---- files ---- */

/* Every byte that is not unreserved (RFC 3986, section 2.3) as an escape; slashes stay. */
static void write_percent_path(struct json_out *json, const char *path)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    CLEANUP_BUF struct buf text = BUF_INIT(strlen(path) * 3);

    for (; *path != '\0'; path++) {
        if (strchr(plain, *path) != NULL) {
            (void)buf_append(&text, path, 1);
        } else {
            (void)buf_printf(&text, "%%%02X", (unsigned)(unsigned char)*path);
        }
    }
    json_out_key(json, "pathPercent");
    json_out_text(json, text.data, text.size);
}

static const char *change_text(enum run_change change)
{
    switch (change) {
    case RUN_CREATED:
        return "created";
    case RUN_MODIFIED:
        return "modified";
    case RUN_DELETED:
        return "deleted";
    }
    return NULL;
}

static void write_files(struct json_out *json, const struct run_result *result)
{
    json_out_key(json, "files");
    json_out_open(json, '[');
    for (size_t i = 0; i < result->change_count; i++) {
        const struct run_change_row *row = &result->changes[i];

        json_out_open(json, '{');
        write_text_field(json, "path", row->path);
        /* A name that is not UTF-8 is told twice: to read, and to fetch. */
        if (!text_utf8_valid(row->path, strlen(row->path))) {
            write_percent_path(json, row->path);
        }
        json_out_key(json, "size");
        json_out_count(json, row->size);
        write_text_field(json, "change", change_text(row->change));
        json_out_close(json, '}');
    }
    json_out_close(json, ']');
    write_bool_field(json, "filesTruncated", result->changes_truncated);
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

static void write_fetched(struct json_out *json, const struct run_result *result)
{
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
            write_text_field(json, "error", file->reason);
        } else {
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
    write_ms_field(json, "wallMs", usage->wall_ms);
    write_ms_field(json, "queueMs", usage->queue_ms);
    write_ms_field(json, "startMs", usage->start_ms);
    write_ms_field(json, "cpuUserMs", usage->cpu_user_ms);
    write_ms_field(json, "cpuSystemMs", usage->cpu_system_ms);
    write_measured_field(json, "peakMemoryBytes", usage->peak_memory_bytes);
    write_measured_field(json, "peakPids", usage->peak_pids);
    write_text_field(json, "source", usage->source);
    json_out_close(json, '}');
}

static void write_limits(struct json_out *json, const struct limits *limits,
                         const struct run_enforced *enforced)
{
    json_out_key(json, "limits");
    json_out_open(json, '{');
    write_cap_field(json, "timeoutS", limits->timeout_s);
    write_cap_field(json, "memoryMb", (double)limits->memory_mb);
    write_cap_field(json, "cpus", limits->cpus);
    write_cap_field(json, "pids", (double)limits->pids);
    write_cap_field(json, "diskMb", (double)limits->disk_mb);
    write_cap_field(json, "maxOutputBytes", (double)limits->max_output_bytes);
    json_out_key(json, "enforced");
    json_out_open(json, '{');
    write_text_field(json, "memory", enforced->memory);
    write_text_field(json, "pids", enforced->pids);
    write_text_field(json, "cpu", enforced->cpu);
    write_text_field(json, "disk", enforced->disk);
    json_out_close(json, '}');
    json_out_close(json, '}');
}

static void write_times(struct json_out *json, const struct run_result *result)
{
    double wall_ms = result->usage.wall_ms;

    write_measured_field(json, "durationMs", wall_ms < 0 ? -1 : (int64_t)(wall_ms + 0.5));
    json_out_key(json, "startedAt");
    json_out_time(json, result->started_wall_ms);
    json_out_key(json, "finishedAt");
    json_out_time(json, result->finished_wall_ms);
}

void result_out_write(struct json_out *json, const char *id, const struct run_request *request,
                      const struct run_result *result)
{
    json_out_open(json, '{');
    write_text_field(json, "id", id);
    write_text_field(json, "sessionId", NULL);
    write_text_field(json, "kernelId", NULL);
    write_text_field(json, "kind", run_kind_text(request->kind));
    write_text_field(json, "state", "done");
    write_end(json, result);
    write_output(json, result, request->stdout_base64);
    write_fault(json, result);
    write_results(json, result);
    write_files(json, result);
    write_fetched(json, result);
    write_usage(json, &result->usage);
    write_limits(json, &request->limits, &result->enforced);
    write_times(json, result);
    json_out_close(json, '}');
}
