/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: refuse what a narrow token may not do.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox.
 */
#include "api/rights.h"

#include "api/resource.h"
#include "api/route.h"
#include "lib/sandbox/sandbox.h"

int rights_check_route(const struct api_call *call, struct err *err)
{
    if (call->scope == API_SCOPE_FULL || call->route->access != ROUTE_FULL) {
        return 0;
    }
    return err_set(err, ERR_FORBIDDEN, 0, "a token of scope \"run\" may not call this");
}

static int refuse_limit(const char *pointer, struct err *err)
{
    (void)err_field(err, ERR_FORBIDDEN, pointer,
                    "this token may not go beyond the server's default of %s", pointer + 1);
    return err_remedy(err, "lower the limit, or leave it out");
}

/* Is a cap wider than the default one? 0 is none at all. */
static bool is_wider(double wanted, double usual)
{
    return usual > 0 && (wanted <= 0 || wanted > usual);
}

static int check_limits(const struct limits *wanted, const struct limits *usual, struct err *err)
{
    if (is_wider(wanted->timeout_s, usual->timeout_s)) {
        return refuse_limit("/timeoutS", err);
    }
    if (is_wider((double)wanted->memory_mb, (double)usual->memory_mb)) {
        return refuse_limit("/memoryMb", err);
    }
    if (is_wider(wanted->cpus, usual->cpus)) {
        return refuse_limit("/cpus", err);
    }
    if (is_wider((double)wanted->pids, (double)usual->pids)) {
        return refuse_limit("/pids", err);
    }
    if (is_wider((double)wanted->disk_mb, (double)usual->disk_mb)) {
        return refuse_limit("/diskMb", err);
    }
    if (is_wider((double)wanted->max_output_bytes, (double)usual->max_output_bytes)) {
        return refuse_limit("/maxOutputBytes", err);
    }
    return 0;
}

/* What requests and sessions have alike. */
struct wanted {
    const struct limits *limits;
    bool network;
    bool mounts;
    const char *workspace;
};

static int check(const struct api_call *call, const struct wanted *wanted, struct err *err)
{
    if (call->scope == API_SCOPE_FULL) {
        return 0;
    }
    if (wanted->network) {
        return err_field(err, ERR_NETWORK_DENIED, "/network",
                         "this token may not give a box the network");
    }
    if (wanted->mounts) {
        return err_field(err, ERR_MOUNT_REFUSED, "/mounts",
                         "this token may not show a box directories of the host");
    }
    if (wanted->workspace != NULL) {
        return err_field(err, ERR_MOUNT_REFUSED, "/workspace",
                         "this token may not show a box directories of the host");
    }
    return check_limits(wanted->limits, sandbox_defaults(call->api->sandbox), err);
}

/* A cell has the limits of its kernel, but for those that it names. */
static int check_cell(const struct api_call *call, const struct limits *named, struct err *err)
{
    struct limits limits = *sandbox_defaults(call->api->sandbox);

    if (named->timeout_s > 0) {
        limits.timeout_s = named->timeout_s;
    }
    if (named->max_output_bytes > 0) {
        limits.max_output_bytes = named->max_output_bytes;
    }
    return check(call, &(struct wanted){ .limits = &limits }, err);
}

int rights_check_request(const struct api_call *call, const struct run_request *request,
                         struct err *err)
{
    if (request->kind == RUN_CELL) {
        return check_cell(call, &request->limits, err);
    }
    return check(call,
                 &(struct wanted){ .limits = &request->limits,
                                   .network = request->network,
                                   .mounts = request->mount_count > 0,
                                   .workspace = request->workspace },
                 err);
}

int rights_check_options(const struct api_call *call, const struct options *options,
                         struct err *err)
{
    if (options->setup != NULL && rights_check_setup(call, err) < 0) {
        return -1;
    }
    return check(call,
                 &(struct wanted){ .limits = &options->limits,
                                   .network = options->network,
                                   .mounts = options->mount_count > 0,
                                   .workspace = options->workspace },
                 err);
}

int rights_check_setup(const struct api_call *call, struct err *err)
{
    if (call->scope == API_SCOPE_FULL) {
        return 0;
    }
    return err_field(err, ERR_NETWORK_DENIED, "/setup",
                     "a setup step has the network, which this token may not use");
}
