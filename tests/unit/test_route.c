/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/route.h"

static const struct api_route *find(const char *method, const char *target, char allow[static 128],
                                    struct err *err)
{
    allow[0] = '\0';
    *err = ERR_INIT;
    return api_route_find(method, target, allow, 128, err);
}

static void rows_are_found(void **state)
{
    char allow[128];
    struct err err;
    const struct api_route *route = find("POST", "/v1/runCode", allow, &err);

    (void)state;
    assert_non_null(route);
    assert_string_equal(api_route_pattern(route), "/v1/runCode");
    assert_int_equal(api_route_body(route), API_BODY_JSON);
    assert_int_equal(api_route_body_max(route), 16 << 20);
    assert_false(api_route_open(route));
    assert_ptr_equal(find("POST", "/v1/run%43ode", allow, &err), route);
    route = find("GET", "/healthz", allow, &err);
    assert_true(api_route_open(route));
    assert_int_equal(api_route_body(route), API_BODY_NONE);
    assert_ptr_equal(find("HEAD", "/healthz", allow, &err), route);
    assert_non_null(find("OPTIONS", "/v1/run", allow, &err));
}

static void what_has_no_row_is_told(void **state)
{
    static const struct {
        const char *method;
        const char *target;
        enum err_code code;
        const char *allow;
    } samples[] = {
        { "GET", "/v1/run", ERR_METHOD_NOT_ALLOWED, "POST, OPTIONS" },
        { "DELETE", "/v1/version", ERR_METHOD_NOT_ALLOWED, "GET, HEAD, OPTIONS" },
        { "HEAD", "/v1/run", ERR_METHOD_NOT_ALLOWED, "POST, OPTIONS" },
        { "BREW", "/v1/run", ERR_METHOD_NOT_ALLOWED, "POST, OPTIONS" },
        { "GET", "/nothing", ERR_ROUTE_NOT_FOUND, "" },
        { "OPTIONS", "/nothing", ERR_ROUTE_NOT_FOUND, "" },
        { "POST", "/v1/runcode", ERR_ROUTE_NOT_FOUND, "" },
        { "POST", "/v1/run/", ERR_ROUTE_NOT_FOUND, "" },
        { "POST", "/v1/run/x", ERR_ROUTE_NOT_FOUND, "" },
        { "POST", "/v1", ERR_ROUTE_NOT_FOUND, "" },
        { "POST", "/v1%2Frun", ERR_BAD_PATH, "" },
        { "POST", "/v1/%2e%2e/v1/run", ERR_BAD_PATH, "" },
        { "OPTIONS", "*", ERR_BAD_PATH, "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        char allow[128];
        struct err err;

        assert_null(find(samples[i].method, samples[i].target, allow, &err));
        assert_int_equal(err.code, samples[i].code);
        assert_string_equal(allow, samples[i].allow);
    }
}

static void check_match(const char *pattern, const char *target, bool wanted)
{
    struct decode_path path;

    assert_int_equal(decode_path(target, &path, NULL), 0);
    assert_int_equal(route_matches(pattern, &path), wanted);
}

static void patterns_match(void **state)
{
    (void)state;
    check_match("/", "/", true);
    check_match("/", "/x", false);
    check_match("/s/{id}", "/s/x", true);
    check_match("/s/{id}", "/s/caf%C3%A9", true);
    check_match("/s/{id}", "/s", false);
    check_match("/s/{id}", "/s/x/y", false);
    check_match("/s/{id}", "/s/x%0Ay", false);
    check_match("/s/{id}", "/s/%FF", false);
    check_match("/s/{id}/files/{path...}", "/s/x/files", false);
    check_match("/s/{id}/files/{path...}", "/s/x/files/a/%FF/%0A/b", true);
    check_match("/s/{id}/files/{path...}", "/s/x/file/a", false);
    check_match("/s/{id}/files:move", "/s/x/files:move", true);
    check_match("/p/{path...}", "/p/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20", true);
    check_match("/1/2/3", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20", false);
}

static void parameters_are_found(void **state)
{
    static const char pattern[] = "/s/{id}/files/{path...}";
    struct decode_path path;
    const char *text = NULL;
    size_t size = 0;

    (void)state;
    assert_int_equal(decode_path("/s/x%31/files/a/b%20c/d", &path, NULL), 0);
    text = route_parameter(pattern, "id", &path, &size);
    assert_int_equal(size, 2);
    assert_memory_equal(text, "x1", 2);
    text = route_parameter(pattern, "path", &path, &size);
    assert_int_equal(size, 7);
    assert_string_equal(text, "a/b c/d");
    assert_null(route_parameter(pattern, "i", &path, &size));
    assert_null(route_parameter(pattern, "files", &path, &size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_found),
        cmocka_unit_test(what_has_no_row_is_told),
        cmocka_unit_test(patterns_match),
        cmocka_unit_test(parameters_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
