/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/resource.h"
#include "api/rights.h"
#include "api/route.h"
#include "lib/sandbox/sandbox_internal.h"

static struct sandbox sandbox = {
    .defaults = { .timeout_s = 30, .memory_mb = 512, .pids = 256, .max_output_bytes = 1000 }
};
static struct api api = { .sandbox = &sandbox };

static void assert_refused(const struct options *options, enum err_code code, const char *pointer)
{
    struct api_call call = { .api = &api, .scope = API_SCOPE_FULL };
    struct err err = ERR_INIT;

    assert_int_equal(rights_check_options(&call, options, &err), 0);
    call.scope = API_SCOPE_RUN;
    assert_int_equal(rights_check_options(&call, options, &err), -1);
    assert_int_equal(err.code, code);
    assert_string_equal(err.pointer, pointer);
}

static struct options usual(void)
{
    struct options options;

    options_init(&options, &sandbox.defaults);
    return options;
}

static void narrow_tokens(void **state)
{
    const struct api_call call = { .api = &api, .scope = API_SCOPE_RUN };
    char text[] = "/x";
    struct run_request request = { .limits = sandbox.defaults };
    struct options options = usual();

    (void)state;
    assert_int_equal(rights_check_options(&call, &options, NULL), 0);
    assert_int_equal(rights_check_request(&call, &request, NULL), 0);
    assert_int_equal(rights_check_setup(&call, NULL), -1);
    options.network = true;
    assert_refused(&options, ERR_NETWORK_DENIED, "/network");
    options = usual();
    options.setup = text;
    assert_refused(&options, ERR_NETWORK_DENIED, "/setup");
    options = usual();
    options.workspace = text;
    assert_refused(&options, ERR_MOUNT_REFUSED, "/workspace");
    options = usual();
    options.mount_count = 1;
    assert_refused(&options, ERR_MOUNT_REFUSED, "/mounts");
    request.network = true;
    assert_int_equal(rights_check_request(&call, &request, NULL), -1);
}

static void routes(void **state)
{
    const struct api_route row = { .access = ROUTE_FULL };
    const struct api_route any = { .access = ROUTE_TOKEN };
    struct api_call call = { .api = &api, .scope = API_SCOPE_RUN, .route = &row };
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(rights_check_route(&call, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    call.scope = API_SCOPE_FULL;
    assert_int_equal(rights_check_route(&call, NULL), 0);
    call.scope = API_SCOPE_RUN;
    call.route = &any;
    assert_int_equal(rights_check_route(&call, NULL), 0);
}

static void weaker_limits(void **state)
{
    struct options options = usual();

    (void)state;
    options.limits.timeout_s = 31;
    assert_refused(&options, ERR_FORBIDDEN, "/timeoutS");
    options = usual();
    options.limits.memory_mb = 0;
    assert_refused(&options, ERR_FORBIDDEN, "/memoryMb");
    options = usual();
    options.limits.pids = 257;
    assert_refused(&options, ERR_FORBIDDEN, "/pids");
    options = usual();
    options.limits.max_output_bytes = 1001;
    assert_refused(&options, ERR_FORBIDDEN, "/maxOutputBytes");
}

static void stricter_limits(void **state)
{
    const struct api_call call = { .api = &api, .scope = API_SCOPE_RUN };
    struct options options = usual();

    (void)state;
    options.limits = (struct limits){
        .timeout_s = 1, .memory_mb = 4, .cpus = 99, .pids = 1, .disk_mb = 99, .max_output_bytes = 1
    };
    assert_int_equal(rights_check_options(&call, &options, NULL), 0);
}

static void environments_are_for_all(void **state)
{
    struct api_call call = { .api = &api, .scope = API_SCOPE_FULL };
    struct options options = usual();
    char name[] = "data";

    (void)state;
    call.scope = API_SCOPE_RUN;
    options.environment = name;
    assert_int_equal(rights_check_options(&call, &options, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(narrow_tokens), cmocka_unit_test(routes),
                                        cmocka_unit_test(weaker_limits),
                                        cmocka_unit_test(stricter_limits),
                                        cmocka_unit_test(environments_are_for_all) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
