/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: health, readiness, version, capabilities, statistics.
 * Owns: nothing.
 * Threads: the quick lane.
 * May include: lib/base, lib/sandbox.
 */
#include "api/resource_meta.h"

#include "api/document.h"
#include "api/limits_out.h"
#include "api/member_out.h"
#include "api/resource.h"
#include "lib/base/clock.h"
#include "lib/sandbox/sandbox.h"
#include "lib/sandbox/tally.h"

#define MS_PER_S 1000.0

void resource_meta_health(struct api_call *call)
{
    struct json_out json;

    resource_reply(call, 200, &json);
    json_out_open(&json, '{');
    member_out_string(&json, "status", "ok");
    json_out_close(&json, '}');
    resource_finish(call, &json);
}

/* What one engine does for a caller and the other refuses, by the names of options and features. */
static void write_features(struct json_out *json, bool images)
{
    static const char *const of_images[] = { "image",    "profiles", "egressAllow",
                                             "apparmor", "capDrop",  "enforceLimits" };
    static const char *const of_host[] = { "templates" };
    const char *const *names = images ? of_images : of_host;
    size_t count =
        images ? sizeof(of_images) / sizeof(of_images[0]) : sizeof(of_host) / sizeof(of_host[0]);

    json_out_key(json, "features");
    json_out_open(json, '[');
    for (size_t i = 0; i < count; i++) {
        json_out_string(json, names[i]);
    }
    json_out_close(json, ']');
}

static void write_engine(struct json_out *json, const struct boxes_engine_view *view)
{
    json_out_open(json, '{');
    member_out_string(json, "name", view->name);
    member_out_string(json, "version", view->version[0] == '\0' ? NULL : view->version);
    json_out_key(json, "standard");
    json_out_bool(json, view->standard);
    json_out_key(json, "images");
    json_out_bool(json, view->images);
    write_features(json, view->images);
    json_out_key(json, "ready");
    json_out_bool(json, view->ready);
    json_out_key(json, "memoryCapBound");
    if (view->cap_bound < 0) {
        json_out_null(json);
    } else {
        json_out_bool(json, view->cap_bound > 0);
    }
    member_out_string(json, "why", view->ready ? NULL : view->failure.msg);
    member_out_string(json, "remedy",
                      view->ready || view->failure.remedy[0] == '\0' ? NULL : view->failure.remedy);
    json_out_close(json, '}');
}

/* Without a probe: whoever asks for the version is to have it at once. */
static void write_standard_engine(struct json_out *json, struct sandbox *sandbox)
{
    struct boxes_abilities abilities;

    sandbox_abilities(sandbox, &abilities);
    json_out_key(json, "engines");
    json_out_open(json, '[');
    json_out_open(json, '{');
    member_out_string(json, "name", abilities.engine);
    member_out_string(json, "version",
                      abilities.engine_version[0] == '\0' ? NULL : abilities.engine_version);
    json_out_close(json, '}');
    json_out_close(json, ']');
}

/* The one of calls that name none comes first. */
static void write_engines(struct json_out *json, struct sandbox *sandbox)
{
    struct boxes_engine_view views[BOXES_ENGINES_MAX];
    size_t count = sandbox_engines(sandbox, views);

    json_out_key(json, "engines");
    json_out_open(json, '[');
    for (size_t i = 0; i < count; i++) {
        if (views[i].standard) {
            write_engine(json, &views[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!views[i].standard) {
            write_engine(json, &views[i]);
        }
    }
    json_out_close(json, ']');
}

void resource_meta_ready(struct api_call *call)
{
    struct err err = ERR_INIT;
    struct json_out json;

    if (sandbox_ready(call->api->sandbox, &err) < 0) {
        resource_fail(call, &err);
        return;
    }
    resource_reply(call, 200, &json);
    json_out_open(&json, '{');
    member_out_string(&json, "status", "ready");
    write_engines(&json, call->api->sandbox);
    json_out_close(&json, '}');
    resource_finish(call, &json);
}

void resource_meta_version(struct api_call *call)
{
    struct json_out json;

    resource_reply(call, 200, &json);
    json_out_open(&json, '{');
    member_out_string(&json, "name", "kernd");
    member_out_string(&json, "version", KERND_VERSION);
    member_out_string(&json, "api", "v1");
    write_standard_engine(&json, call->api->sandbox);
    json_out_key(&json, "startedAt");
    json_out_time(&json, call->api->started_wall_ms);
    json_out_close(&json, '}');
    resource_finish(call, &json);
}

/* ---- capabilities ---- */

static void write_languages(struct json_out *json, struct sandbox *sandbox)
{
    json_out_key(json, "languages");
    json_out_open(json, '[');
    for (int i = 0; i < RUN_LANGUAGE_MAX; i++) {
        const char *version = sandbox_language_version(sandbox, (enum run_language)i);

        json_out_open(json, '{');
        member_out_string(json, "name", run_language_text((enum run_language)i));
        json_out_key(json, "available");
        json_out_bool(json, version != NULL);
        member_out_string(json, "version", version);
        json_out_close(json, '}');
    }
    json_out_close(json, ']');
}

static void write_limits(struct json_out *json, const char *name, const struct limits *limits)
{
    json_out_key(json, name);
    json_out_open(json, '{');
    limits_out_members(json, limits);
    json_out_close(json, '}');
}

/* 0 is none. */
static void write_if_any(struct json_out *json, int64_t value)
{
    if (value > 0) {
        json_out_whole(json, value);
    } else {
        json_out_null(json);
    }
}

static void write_capacity(struct json_out *json, const struct capacity *capacity)
{
    json_out_key(json, "capacity");
    json_out_open(json, '{');
    member_out_count(json, "workers", capacity->workers);
    member_out_count(json, "workersPerCaller", capacity->workers_per_caller);
    member_out_count(json, "workersPerSession", capacity->workers_per_session);
    member_out_count(json, "queue", capacity->queue);
    member_out_count(json, "queuePerCaller", capacity->queue_per_caller);
    member_out_count(json, "memoryMb", capacity->memory_mb);
    json_out_close(json, '}');
}

static void write_walls(struct json_out *json, const struct boxes_abilities *abilities)
{
    json_out_key(json, "enforcement");
    json_out_open(json, '{');
    member_out_string(json, "memory", abilities->memory);
    member_out_string(json, "pids", abilities->pids);
    member_out_string(json, "cpu", abilities->cpu);
    member_out_string(json, "disk", abilities->disk);
    json_out_close(json, '}');
    json_out_key(json, "seccomp");
    json_out_bool(json, abilities->seccomp);
    json_out_key(json, "landlock");
    json_out_bool(json, abilities->landlock);
    json_out_key(json, "landlockAbi");
    write_if_any(json, abilities->landlock_abi);
    json_out_key(json, "ioWeight");
    write_if_any(json, abilities->io_weight);
    member_out_count(json, "workspaceFiles", abilities->files_max);
}

static void write_list(struct json_out *json, const char *name, const char *const *items)
{
    json_out_key(json, name);
    json_out_open(json, '[');
    for (; *items != NULL; items++) {
        json_out_string(json, *items);
    }
    json_out_close(json, ']');
}

static void write_templates(struct json_out *json, struct sandbox *sandbox)
{
    static const char *const none[] = { NULL };
    static const char *const languages[] = { "python", NULL };
    struct sandbox_stats stats;

    sandbox_stats(sandbox, &stats);
    json_out_key(json, "templates");
    json_out_open(json, '{');
    write_list(json, "languages", stats.templates_enabled ? languages : none);
    member_out_count(json, "up", stats.templates);
    member_out_string(json, "problem", stats.templates_why[0] == '\0' ? NULL : stats.templates_why);
    json_out_close(json, '}');
}

void resource_meta_capabilities(struct api_call *call)
{
    static const char *const networks[] = { "none", "host", NULL };
    static const char *const features[] = {
        "run",          "runCode",  "richResults", "files",   "fetchFiles", "trackFiles",
        "base64Output", "archives", "snapshots",   "streams", "async",      "executions",
        "idempotency",  "batch",    "interactive", "detach",  NULL
    };
    struct sandbox *sandbox = call->api->sandbox;
    struct boxes_abilities abilities;
    struct json_out json;

    document_begin(call, &json);
    json_out_open(&json, '{');
    write_languages(&json, sandbox);
    /* Behind the languages, which are asked of boxes: then it is known what boxes are like here. */
    sandbox_abilities(sandbox, &abilities);
    write_engines(&json, call->api->sandbox);
    write_walls(&json, &abilities);
    write_list(&json, "networkModes", networks);
    write_templates(&json, sandbox);
    write_limits(&json, "defaults", sandbox_defaults(sandbox));
    write_limits(&json, "maxima", sandbox_maxima(sandbox));
    write_capacity(&json, sandbox_capacity(sandbox));
    write_list(&json, "features", features);
    json_out_close(&json, '}');
    document_finish(call);
}

/* ---- statistics ---- */

/* Of all kinds; "none": the sandbox had to do nothing. */
static void write_outcomes(struct json_out *json, struct sandbox *sandbox)
{
    struct tally_view tally;
    uint64_t errors = 0;

    tally_read(sandbox, &tally);
    json_out_key(json, "outcomes");
    json_out_open(json, '{');
    for (size_t fault = 0; fault < TALLY_FAULTS; fault++) {
        const char *name = run_fault_text((enum run_fault)fault);
        uint64_t count = 0;

        for (size_t kind = 0; kind < TALLY_KINDS; kind++) {
            count += tally.ends[kind][fault];
        }
        member_out_count(json, name != NULL ? name : "none", count);
    }
    for (size_t kind = 0; kind < TALLY_KINDS; kind++) {
        errors += tally.errors[kind];
    }
    member_out_count(json, "error", errors);
    json_out_close(json, '}');
}

static void write_step(void *context, const struct steps_row *row)
{
    struct json_out *json = context;

    json_out_key(json, row->name);
    json_out_open(json, '{');
    member_out_count(json, "count", row->count);
    member_out_ms(json, "p50Ms", steps_quantile_s(row, 0.5) * MS_PER_S);
    member_out_ms(json, "p90Ms", steps_quantile_s(row, 0.9) * MS_PER_S);
    member_out_ms(json, "p99Ms", steps_quantile_s(row, 0.99) * MS_PER_S);
    json_out_close(json, '}');
}

void resource_meta_stats(struct api_call *call)
{
    struct sandbox_stats stats;
    struct json_out json;

    sandbox_stats(call->api->sandbox, &stats);
    resource_reply(call, 200, &json);
    json_out_open(&json, '{');
    member_out_count(&json, "boxes", stats.boxes);
    member_out_count(&json, "spares", stats.spares);
    member_out_count(&json, "spareHits", stats.spare_hits);
    member_out_count(&json, "spareMisses", stats.spare_misses);
    member_out_count(&json, "templates", stats.templates);
    member_out_count(&json, "forks", stats.forks);
    member_out_count(&json, "running", stats.running);
    member_out_count(&json, "queued", stats.queued);
    member_out_count(&json, "queueMax", stats.queue_max);
    member_out_count(&json, "runThreads", stats.run_threads);
    member_out_count(&json, "memoryMb", stats.memory_mb);
    json_out_key(&json, "serviceMs");
    if (stats.service_ns > 0) {
        json_out_number(&json, (double)stats.service_ns / CLOCK_NS_PER_MS);
    } else {
        json_out_null(&json);
    }
    member_out_count(&json, "executionsTotal", stats.executions_total);
    write_outcomes(&json, call->api->sandbox);
    json_out_key(&json, "steps");
    json_out_open(&json, '{');
    steps_each(sandbox_steps(call->api->sandbox), write_step, &json);
    json_out_close(&json, '}');
    json_out_close(&json, '}');
    resource_finish(call, &json);
}
