/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/sandbox/guest_env.h"
#include "lib/sandbox/run.h"

/* What is set, NULL: nothing. Fails when it is set twice. */
static const char *value_of(const struct strv *env, const char *name)
{
    const char *value = NULL;
    size_t size = strlen(name);

    for (size_t i = 0; i < env->count; i++) {
        if (text_starts_with(env->items[i], name) && env->items[i][size] == '=') {
            assert_null(value);
            value = env->items[i] + size + 1;
        }
    }
    return value;
}

static void own_values_win(void **state)
{
    CLEANUP_STRV struct strv env = { 0 };
    CLEANUP_STRV struct strv from = { 0 };

    (void)state;
    strv_add_all(&env, "B=own", "AB=1", "A=own", NULL);
    strv_add_all(&from, "A=theirs", "ABC=2", "B=theirs", "C=3", "A_=4", NULL);
    guest_env_inherit(&env, &from);
    assert_int_equal(env.count, 6);
    assert_string_equal(value_of(&env, "A"), "own");
    assert_string_equal(value_of(&env, "B"), "own");
    assert_string_equal(value_of(&env, "ABC"), "2");
    assert_string_equal(value_of(&env, "C"), "3");
    assert_string_equal(value_of(&env, "A_"), "4");
}

static void many_are_quick(void **state)
{
    CLEANUP_STRV struct strv env = { 0 };
    CLEANUP_STRV struct strv from = { 0 };

    (void)state;
    for (int i = 0; i < 30000; i++) {
        strv_addf(&env, "A%d=", i);
        strv_addf(&from, "A%d=", i * 2);
    }
    guest_env_inherit(&env, &from);
    assert_int_equal(env.count, 45000);
}

static void packages_are_found(void **state)
{
    struct run_request *request = run_request_new();
    CLEANUP_STRV struct strv plain = { 0 };
    CLEANUP_STRV struct strv env = { 0 };
    CLEANUP_STRV struct strv both = { 0 };

    (void)state;
    strv_add(&request->env, "X=1");
    guest_env_make(request, false, &plain);
    assert_int_equal(plain.count, 1);
    guest_env_make(request, true, &env);
    assert_string_equal(value_of(&env, "PYTHONPATH"), "/workspace/.deps");
    assert_string_equal(value_of(&env, "NODE_PATH"), "/workspace/.deps/node_modules");
    assert_string_equal(value_of(&env, "X"), "1");
    strv_add_all(&request->env, "PYTHONPATH=/mine:/b", "NODE_PATH=", NULL);
    guest_env_make(request, true, &both);
    assert_string_equal(value_of(&both, "PYTHONPATH"), "/workspace/.deps:/mine:/b");
    assert_string_equal(value_of(&both, "NODE_PATH"), "/workspace/.deps/node_modules");
    run_request_free(request);
}

static void packages_of_an_environment(void **state)
{
    struct run_request *request = run_request_new();
    CLEANUP_STRV struct strv alone = { 0 };
    CLEANUP_STRV struct strv both = { 0 };

    (void)state;
    request->environment = alloc_text("env_1");
    guest_env_make(request, false, &alone);
    assert_string_equal(value_of(&alone, "PYTHONPATH"), "/run/environment");
    assert_string_equal(value_of(&alone, "NODE_PATH"), "/run/environment/node_modules");
    strv_add(&request->env, "PYTHONPATH=/mine");
    guest_env_make(request, true, &both);
    assert_string_equal(value_of(&both, "PYTHONPATH"), "/workspace/.deps:/run/environment:/mine");
    assert_string_equal(value_of(&both, "NODE_PATH"),
                        "/workspace/.deps/node_modules:/run/environment/node_modules");
    run_request_free(request);
}

static void thread_pools_follow_the_cap(void **state)
{
    static const struct {
        double cpus;
        const char *threads;
    } samples[] = { { 0, NULL }, { 0.1, "1" }, { 1, "1" }, { 1.01, "2" }, { 8, "8" } };

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct run_request *request = run_request_new();
        CLEANUP_STRV struct strv env = { 0 };

        request->limits.cpus = samples[i].cpus;
        strv_add(&request->env, "MKL_NUM_THREADS=99");
        guest_env_make(request, false, &env);
        if (samples[i].threads == NULL) {
            assert_int_equal(env.count, 1);
        } else {
            assert_string_equal(value_of(&env, "OMP_NUM_THREADS"), samples[i].threads);
            assert_string_equal(value_of(&env, "GOMAXPROCS"), samples[i].threads);
            assert_string_equal(value_of(&env, "PYTHON_CPU_COUNT"), samples[i].threads);
            assert_string_equal(value_of(&env, "MKL_NUM_THREADS"), "99");
        }
        run_request_free(request);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_values_win),
        cmocka_unit_test(many_are_quick),
        cmocka_unit_test(packages_are_found),
        cmocka_unit_test(packages_of_an_environment),
        cmocka_unit_test(thread_pools_follow_the_cap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
