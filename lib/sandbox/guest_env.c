/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_env: variables that follow from limits and installed packages.
 * Owns: nothing.
 * Threads: any, pure.
 * May include: lib/base, lib/sandbox.
 */
#include "lib/sandbox/guest_env.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/sandbox/run.h"
#include "lib/sandbox/setup.h"

#define PYTHONPATH "PYTHONPATH="
#define NODE_PATH "NODE_PATH="
#define MODULES "/node_modules"

/*
 * Who reads them: OpenMP programs; OpenBLAS, Intel's MKL, BLIS, Apple's vecLib and numexpr behind
 * numpy and pandas; numba; Python 3.13 (os.cpu_count); Go 1; rayon, polars and tokio of Rust;
 * Julia; libuv behind Node.js, whose pool does input and output and is never below its own default
 * of 4.
 */
static const char *const pools[] = {
    "OMP_NUM_THREADS",     "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",   "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS",  "NUMBA_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "PYTHON_CPU_COUNT",    "GOMAXPROCS",           "RAYON_NUM_THREADS", "POLARS_MAX_THREADS",
    "JULIA_NUM_THREADS",   "TOKIO_WORKER_THREADS",
};

static size_t key_size(const char *assignment)
{
    return strcspn(assignment, "=");
}

/* Compares the names of two assignments. */
static int compare_keys(const void *a, const void *b)
{
    const char *first = *(const char *const *)a;
    const char *second = *(const char *const *)b;
    size_t first_size = key_size(first);
    size_t second_size = key_size(second);
    size_t shorter = first_size < second_size ? first_size : second_size;
    int order = memcmp(first, second, shorter);

    return order != 0 ? order : (first_size > second_size) - (first_size < second_size);
}

void guest_env_inherit(struct strv *env, const struct strv *from)
{
    size_t count = env->count;
    CLEANUP_FREE const char **sorted = alloc_zero(count + 1, sizeof(*sorted));

    for (size_t i = 0; i < count; i++) {
        sorted[i] = env->items[i];
    }
    qsort(sorted, count, sizeof(*sorted), compare_keys);
    for (size_t i = 0; i < from->count; i++) {
        const char *wanted = from->items[i];

        if (bsearch(&wanted, sorted, count, sizeof(*sorted), compare_keys) == NULL) {
            strv_add(env, wanted);
        }
    }
}

static void add_pools(double cpus, struct strv *added)
{
    unsigned long threads = (unsigned long)cpus;

    threads += (double)threads < cpus ? 1 : 0;
    for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
        strv_addf(added, "%s=%lu", pools[i], threads);
    }
}

/* "NAME=<first>:<what the caller said>", or the first alone. */
static void add_path(const struct strv *env, const char *name, const char *first,
                     struct strv *added)
{
    const char *given = "";

    for (size_t i = 0; i < env->count; i++) {
        if (text_starts_with(env->items[i], name)) {
            given = env->items[i] + strlen(name);
        }
    }
    strv_addf(added, "%s%s%s%s", name, first, *given == '\0' ? "" : ":", given);
}

void guest_env_make(const struct run_request *request, bool deps, struct strv *env)
{
    CLEANUP_STRV struct strv pool_sizes = { 0 };

    if (deps && request->environment != NULL) {
        add_path(&request->env, PYTHONPATH, SETUP_DEPS ":" SETUP_LAYER, env);
        add_path(&request->env, NODE_PATH, SETUP_DEPS MODULES ":" SETUP_LAYER MODULES, env);
    } else if (deps) {
        add_path(&request->env, PYTHONPATH, SETUP_DEPS, env);
        add_path(&request->env, NODE_PATH, SETUP_DEPS MODULES, env);
    } else if (request->environment != NULL) {
        add_path(&request->env, PYTHONPATH, SETUP_LAYER, env);
        add_path(&request->env, NODE_PATH, SETUP_LAYER MODULES, env);
    }
    guest_env_inherit(env, &request->env);
    if (request->limits.cpus > 0) {
        add_pools(request->limits.cpus, &pool_sizes);
    }
    guest_env_inherit(env, &pool_sizes);
}

static bool contains(const struct strv *env, const char *assignment)
{
    for (size_t i = 0; i < env->count; i++) {
        if (text_equal(env->items[i], assignment)) {
            return true;
        }
    }
    return false;
}

static bool sets_key_of(const struct strv *env, const char *assignment)
{
    size_t key_size = strcspn(assignment, "=") + 1;

    for (size_t i = 0; i < env->count; i++) {
        if (strncmp(env->items[i], assignment, key_size) == 0) {
            return true;
        }
    }
    return false;
}

static bool read_at_start(const char *assignment)
{
    static const char *const beginnings[] = { "PYTHON",  "NODE",   "UV_",  "OPENSSL_", "SSL_",
                                              "LD_",     "LC_",    "LANG", "TZ",       "ICU_",
                                              "MALLOC_", "GLIBC_", "PATH=" };

    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
        if (text_starts_with(assignment, beginnings[i])) {
            return true;
        }
    }
    return false;
}

bool guest_env_change(const struct strv *from, const struct strv *to, struct strv *ret_change)
{
    for (size_t i = 0; i < from->count; i++) {
        if (!sets_key_of(to, from->items[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < to->count; i++) {
        if (contains(from, to->items[i])) {
            continue;
        }
        if (read_at_start(to->items[i])) {
            return false;
        }
        strv_add(ret_change, to->items[i]);
    }
    return true;
}
