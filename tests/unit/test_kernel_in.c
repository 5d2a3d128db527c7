/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/kernel_in.h"

static int open_body(const char *body, struct kernels_options *options, char **id, struct err *err)
{
    *err = ERR_INIT;
    *id = NULL;
    return kernel_in_open(body, strlen(body), options, id, err);
}

static void kernels_have_defaults(void **state)
{
    struct kernels_options options;
    struct err err;
    char *id;

    (void)state;
    assert_int_equal(open_body("", &options, &id, &err), 0);
    assert_null(id);
    assert_int_equal(options.language, RUN_PYTHON);
    assert_true(options.timeout_s <= 0);
    assert_true(options.idle_timeout_s >= KERNELS_IDLE_TIMEOUT_S);
    assert_true(options.ttl_s >= KERNELS_TTL_S);
}

static void kernels_with_everything(void **state)
{
    struct kernels_options options;
    struct err err;
    char *id;

    (void)state;
    assert_int_equal(open_body("{\"id\":\"k\",\"language\":\"node\",\"timeoutS\":2,"
                               "\"idleTimeoutS\":null,\"ttlS\":null}",
                               &options, &id, &err),
                     0);
    assert_string_equal(id, "k");
    free(id);
    assert_int_equal(options.language, RUN_NODE);
    assert_true(options.timeout_s > 1.9 && options.timeout_s < 2.1);
    assert_true(options.idle_timeout_s <= 0);
    assert_true(options.ttl_s <= 0);
}

static void kernels_are_refused(void **state)
{
    static const struct {
        const char *body;
        enum err_code code;
        const char *pointer;
    } samples[] = {
        { "{\"language\":\"perl\"}", ERR_BAD_VALUE, "/language" },
        { "{\"timeoutS\":0}", ERR_BAD_VALUE, "/timeoutS" },
        { "{\"ttlS\":\"5\"}", ERR_BAD_VALUE, "/ttlS" },
        { "{\"id\":\"a/b\"}", ERR_BAD_VALUE, "/id" },
        { "{\"memoryMb\":5}", ERR_UNKNOWN_FIELD, "/memoryMb" },
        { "[]", ERR_BAD_JSON, "" },
    };
    struct kernels_options options;
    struct err err;
    char *id;

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        assert_int_equal(open_body(samples[i].body, &options, &id, &err), -1);
        assert_int_equal(err.code, samples[i].code);
        assert_string_equal(err.pointer, samples[i].pointer);
        assert_null(id);
    }
}

static void cells(void **state)
{
    const char *body = "{\"code\":\"1\",\"timeoutS\":1.5,\"onTimeout\":\"kill\",\"stdin\":\"x\","
                       "\"maxOutputBytes\":7,\"stdoutEncoding\":\"base64\",\"id\":\"c\","
                       "\"queueTimeoutS\":3,\"onDisconnect\":\"continue\"}";
    struct err err = ERR_INIT;
    struct run_request *request = kernel_in_cell(body, strlen(body), &err);

    (void)state;
    assert_non_null(request);
    assert_int_equal(request->kind, RUN_CELL);
    assert_string_equal(request->code, "1");
    assert_true(request->kill_at_end);
    assert_int_equal(request->stdin_size, 1);
    assert_int_equal(request->limits.max_output_bytes, 7);
    assert_true(request->limits.timeout_s > 1.4 && request->limits.timeout_s < 1.6);
    assert_true(request->stdout_base64);
    assert_string_equal(request->id, "c");
    assert_true(request->queue_timeout_s > 2.9);
    assert_int_equal(request->on_disconnect, RUN_DISCONNECT_CONTINUE);
    run_request_free(request);
}

static void cells_are_refused(void **state)
{
    static const struct {
        const char *body;
        enum err_code code;
        const char *pointer;
    } samples[] = {
        { "{}", ERR_BAD_VALUE, "/code" },
        { "{\"code\":1}", ERR_BAD_VALUE, "/code" },
        { "{\"code\":\"1\\u0000\"}", ERR_BAD_JSON, "/code" },
        { "{\"code\":\"1\",\"language\":\"bash\"}", ERR_UNKNOWN_FIELD, "/language" },
        { "{\"code\":\"1\",\"onTimeout\":\"no\"}", ERR_BAD_VALUE, "/onTimeout" },
        { "{\"code\":\"1\",\"env\":{}}", ERR_UNKNOWN_FIELD, "/env" },
        { "", ERR_BAD_JSON, "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct err err = ERR_INIT;

        assert_null(kernel_in_cell(samples[i].body, strlen(samples[i].body), &err));
        assert_int_equal(err.code, samples[i].code);
        assert_string_equal(err.pointer, samples[i].pointer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_have_defaults), cmocka_unit_test(kernels_with_everything),
        cmocka_unit_test(kernels_are_refused),   cmocka_unit_test(cells),
        cmocka_unit_test(cells_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
