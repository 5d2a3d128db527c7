/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/session_in.h"
#include "lib/base/alloc.h"

/* A literal and its length. */
#define TEXT(literal) literal, sizeof(literal) - 1

static const struct limits defaults = {
    .timeout_s = 30, .memory_mb = 512, .pids = 256, .max_output_bytes = 1000
};

static int create(const char *body, char **ret_id, struct options *ret_options, struct err *err)
{
    *err = ERR_INIT;
    *ret_id = NULL;
    return session_in_create(body, strlen(body), &(struct run_in_base){ .defaults = &defaults },
                             ret_id, ret_options, err);
}

static void everything_of_a_session(void **state)
{
    struct options options;
    struct err err;
    char *id;

    (void)state;
    assert_int_equal(
        create("{\"id\":\"a-1\",\"setup\":\"pip install x\",\"workspace\":\"/w\",\"mounts\":"
               "{\"/s\":\"/t\",\"/u\":[\"/v\",\"rw\"],\"/x\":[\"/y\",\"ro\"]},\"labels\":"
               "{\"k\":\"v=w\"},\"env\":{\"A\":\"1\"},\"timeoutS\":5,\"cpus\":2,\"network\":true,"
               "\"isolation\":\"boot\","
               "\"trackFiles\":false,\"depsReadonly\":true,\"requireLimits\":true,"
               "\"idleTimeoutS\":1.5,\"ttlS\":7,\"prewarm\":3,\"engine\":\"bubblewrap\","
               "\"securityProfile\":\"untrusted\",\"capDrop\":[\"ALL\"],\"profiles\":[],"
               "\"egressAllow\":[],\"enforceLimits\":true,\"image\":null,\"apparmor\":null}",
               &id, &options, &err),
        0);
    assert_string_equal(id, "a-1");
    assert_string_equal(options.setup, "pip install x");
    assert_string_equal(options.workspace, "/w");
    assert_string_equal(options.choice.engine, "bubblewrap");
    assert_int_equal(options.mount_count, 3);
    assert_string_equal(options.mounts[0].source, "/s");
    assert_string_equal(options.mounts[0].target, "/t");
    assert_false(options.mounts[0].writable);
    assert_true(options.mounts[1].writable);
    assert_false(options.mounts[2].writable);
    assert_string_equal(options.labels.items[0], "k=v=w");
    assert_string_equal(options.env.items[0], "A=1");
    assert_true(options.limits.timeout_s > 4.9 && options.limits.timeout_s < 5.1);
    assert_int_equal(options.limits.memory_mb, 512);
    assert_true(options.network && options.deps_readonly && options.require_limits);
    assert_true(options.boot);
    assert_false(options.track_files);
    assert_true(options.idle_timeout_s > 1.4 && options.ttl_s > 6.9);
    assert_true(options.prewarm_set);
    assert_int_equal(options.prewarm, 3);
    options_done(&options);
    free(id);
}

static void nothing_is_enough(void **state)
{
    struct options options;
    struct err err;
    char *id;

    (void)state;
    assert_int_equal(create("", &id, &options, &err), 0);
    assert_null(id);
    assert_int_equal(options.limits.pids, 256);
    assert_true(options.track_files);
    assert_false(options.prewarm_set || options.network || options.boot);
    options_done(&options);
    assert_int_equal(create("[]", &id, &options, &err), -1);
    assert_int_equal(err.code, ERR_BAD_JSON);
}

static void what_the_engine_can_not_do(void **state)
{
    static const char *const bodies[] = {
        "{\"image\":\"a\"}",
        "{\"profiles\":[\"vcpu:a\"]}",
        "{\"egressAllow\":[\"a.bc\"]}",
        "{\"apparmor\":\"a\"}",
        "{\"capDrop\":[]}",
        "{\"capDrop\":[\"MKNOD\"]}",
        "{\"enforceLimits\":false}",
        "{\"engine\":\"kern\"}",
    };
    struct options options;
    struct err err;
    char *id;

    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        assert_int_equal(create(bodies[i], &id, &options, &err), -1);
        assert_int_equal(err.code, ERR_NOT_SUPPORTED_HERE);
        assert_memory_equal(err.pointer + 1, bodies[i] + 2, strlen(err.pointer) - 1);
        assert_non_null(strstr(err.msg, "bubblewrap"));
    }
    /* A bad value is told first, wherever it stands. */
    assert_int_equal(create("{\"image\":\"a\",\"pids\":0}", &id, &options, &err), -1);
    assert_int_equal(err.code, ERR_BAD_VALUE);
    assert_int_equal(create("{\"egressAllow\":[\"a.bc\"],\"network\":true}", &id, &options, &err),
                     -1);
    assert_int_equal(err.code, ERR_BAD_VALUE);
}

/* What only kern can do gets it where it is there, unless another engine was named. */
static void where_kern_is_there(void **state)
{
    static const char all[] =
        "{\"image\":\"a\",\"profiles\":[\"vcpu:a\"],\"egressAllow\":[\"a.bc\",\"d.ef\"],"
        "\"apparmor\":\"p\",\"capDrop\":[\"MKNOD\"],\"enforceLimits\":false,"
        "\"securityProfile\":\"untrusted\"}";
    const struct run_in_base both = { .defaults = &defaults, .other_engine = "kern" };
    const struct run_in_base kern = { .defaults = &defaults, .engine = "kern" };
    struct options options;
    struct err err = ERR_INIT;
    char *id = NULL;

    (void)state;
    assert_int_equal(session_in_create(TEXT(all), &both, &id, &options, &err), 0);
    assert_string_equal(options.choice.engine, "kern");
    assert_string_equal(options.choice.image, "a");
    assert_string_equal(options.choice.profiles.items[0], "vcpu:a");
    assert_int_equal(options.choice.egress.count, 2);
    assert_string_equal(options.choice.apparmor, "p");
    assert_string_equal(options.choice.security_profile, "untrusted");
    assert_true(options.choice.some_caps);
    assert_string_equal(options.choice.cap_drop.items[0], "MKNOD");
    options_done(&options);
    assert_int_equal(session_in_create(TEXT("{\"capDrop\":[\"ALL\"]}"), &both, &id, &options, &err),
                     0);
    assert_null(options.choice.engine);
    assert_false(options.choice.some_caps);
    options_done(&options);
    assert_int_equal(session_in_create(TEXT("{\"engine\":\"bubblewrap\",\"image\":\"a\"}"), &both,
                                       &id, &options, &err),
                     -1);
    assert_string_equal(err.pointer, "/image");
    assert_int_equal(session_in_create(TEXT(all), &kern, &id, &options, &err), 0);
    options_done(&options);
    assert_int_equal(
        session_in_create(TEXT("{\"engine\":\"bubblewrap\"}"), &kern, &id, &options, &err), -1);
    assert_int_equal(err.code, ERR_NOT_SUPPORTED_HERE);
    assert_int_equal(session_in_create(TEXT("{\"image\":\"a\",\"preload\":[\"json\"]}"), &both, &id,
                                       &options, &err),
                     -1);
    assert_string_equal(err.pointer, "/preload");
}

static void narrow_callers(void **state)
{
    static const char *const bodies[] = { "{\"engine\":\"kern\"}", "{\"engine\":\"bubblewrap\"}",
                                          "{\"egressAllow\":[\"a.bc\"]}" };
    const struct run_in_base base = { .defaults = &defaults, .narrow = true };
    struct options options;
    struct err err;
    char *id = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        err = ERR_INIT;
        assert_int_equal(
            session_in_create(bodies[i], strlen(bodies[i]), &base, &id, &options, &err), -1);
        assert_int_equal(err.code, i < 2 ? ERR_FORBIDDEN : ERR_NETWORK_DENIED);
    }
    assert_int_equal(session_in_create(TEXT("{\"engine\":\"auto\"}"), &base, &id, &options, NULL),
                     0);
    options_done(&options);
}

static void patches(void **state)
{
    static const char body[] =
        "{\"labels\":{\"n\":\"1\"},\"timeoutS\":null,\"pids\":7,\"ttlS\":null,"
        "\"env\":{\"N\":\"2\"},\"trackFiles\":null}";
    struct run_in_base base = { .defaults = &defaults };
    struct options old;
    struct options new;
    struct err err;
    char *id;

    (void)state;
    assert_int_equal(create("{\"timeoutS\":5,\"cpus\":2,\"ttlS\":9,\"idleTimeoutS\":8,\"labels\":"
                            "{\"o\":\"1\"},\"env\":{\"O\":\"1\"},\"trackFiles\":false,\"mounts\":"
                            "{\"/s\":\"/t\"},\"setup\":\"x\",\"workspace\":\"/w\",\"prewarm\":2}",
                            &id, &old, &err),
                     0);
    old.choice.engine = alloc_text("bubblewrap");
    strv_add(&old.choice.profiles, "web");
    base.session = &old;
    assert_int_equal(session_in_patch(body, strlen(body), &base, &new, &err), 0);
    assert_string_equal(new.choice.engine, "bubblewrap");
    assert_int_equal(new.choice.profiles.count, 1);
    assert_true(new.limits.timeout_s > 29.9);
    assert_true(new.limits.cpus > 1.9 && new.idle_timeout_s > 7.9);
    assert_false(new.ttl_s > 0);
    assert_int_equal(new.limits.pids, 7);
    assert_int_equal(new.labels.count, 1);
    assert_string_equal(new.labels.items[0], "n=1");
    assert_int_equal(new.env.count, 1);
    assert_string_equal(new.env.items[0], "N=2");
    assert_true(new.track_files);
    assert_string_equal(new.setup, "x");
    assert_string_equal(new.workspace, "/w");
    assert_int_equal(new.mount_count, 1);
    assert_int_equal(new.prewarm, 2);
    options_done(&new);
    assert_int_equal(session_in_patch(TEXT("{\"env\":null,\"labels\":null}"), &base, &new, &err),
                     0);
    assert_int_equal(new.env.count + new.labels.count, 0);
    options_done(&new);
    assert_int_equal(session_in_patch(TEXT("{\"setup\":\"y\"}"), &base, &new, &err), -1);
    assert_int_equal(err.code, ERR_UNKNOWN_FIELD);
    options_done(&old);
}

static void calls_in_a_session(void **state)
{
    static const char body[] = "{\"command\":[\"x\"],\"env\":{\"B\":\"call\"},\"timeoutS\":null,"
                               "\"secrets\":{\"K\":\"v\"}}";
    struct run_in_base base = { .defaults = &defaults };
    struct run_request *request;
    struct options options;
    struct err err;
    char *id;

    (void)state;
    assert_int_equal(create("{\"timeoutS\":5,\"memoryMb\":64,\"env\":{\"A\":\"1\",\"B\":\"2\"},"
                            "\"network\":true,\"mounts\":{\"/s\":\"/t\"}}",
                            &id, &options, &err),
                     0);
    base.session = &options;
    request = run_in_decode(RUN_COMMAND, body, strlen(body), &base, &err);
    assert_non_null(request);
    assert_int_equal(request->env.count, 2);
    assert_string_equal(request->env.items[0], "B=call");
    assert_string_equal(request->env.items[1], "A=1");
    assert_true(request->limits.timeout_s > 29.9);
    assert_int_equal(request->limits.memory_mb, 64);
    assert_true(request->network);
    assert_int_equal(request->mount_count, 1);
    assert_int_equal(request->secret_count, 1);
    assert_string_equal(request->secrets[0].path, "K");
    run_request_free(request);
    request =
        run_in_decode(RUN_CODE, TEXT("{\"code\":\"\",\"env\":null,\"network\":null}"), &base, &err);
    assert_non_null(request);
    assert_int_equal(request->env.count, 0);
    assert_false(request->network);
    run_request_free(request);
    assert_null(
        run_in_decode(RUN_COMMAND, TEXT("{\"command\":[\"x\"],\"mounts\":{}}"), &base, &err));
    assert_int_equal(err.code, ERR_UNKNOWN_FIELD);
    options_done(&options);
}

static void small_bodies(void **state)
{
    struct session_in_move move;
    struct err err = ERR_INIT;
    char *text = NULL;

    (void)state;
    assert_int_equal(session_in_fork("", 0, &text, &err), 0);
    assert_null(text);
    assert_int_equal(session_in_fork(TEXT("{\"id\":\"x\"}"), &text, &err), 0);
    assert_string_equal(text, "x");
    free(text);
    text = NULL;
    assert_int_equal(session_in_setup(TEXT("{}"), &text, &err), -1);
    assert_string_equal(err.pointer, "/command");
    assert_int_equal(session_in_setup(TEXT("{\"command\":\" ls\"}"), &text, &err), 0);
    assert_string_equal(text, " ls");
    free(text);
    assert_int_equal(
        session_in_move(TEXT("{\"from\":\"a\",\"to\":\"b\",\"overwrite\":true}"), &move, &err), 0);
    assert_string_equal(move.from, "a");
    assert_string_equal(move.to, "b");
    assert_true(move.overwrite);
    session_in_move_done(&move);
    assert_int_equal(session_in_move(TEXT("{\"from\":\"a\"}"), &move, &err), -1);
    assert_string_equal(err.pointer, "/to");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_of_a_session),
        cmocka_unit_test(nothing_is_enough),
        cmocka_unit_test(what_the_engine_can_not_do),
        cmocka_unit_test(where_kern_is_there),
        cmocka_unit_test(narrow_callers),
        cmocka_unit_test(patches),
        cmocka_unit_test(calls_in_a_session),
        cmocka_unit_test(small_bodies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
