/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/retirement.h"

/* 2024-06-30T23:59:59Z and 2025-06-30T23:59:59Z. */
static const struct retirement table[] = {
    { "GET", "/old/{id}", INT64_C(1719791999), INT64_C(1751327999), "https://example.org/new" },
    { "POST", "/old/{id}", INT64_C(1719791999), 0, NULL },
    { .method = NULL },
};

static const char *header(const struct api_reply *reply, const char *name)
{
    for (size_t i = 0; i + 1 < reply->headers.count; i += 2) {
        if (strcmp(reply->headers.items[i], name) == 0) {
            return reply->headers.items[i + 1];
        }
    }
    return NULL;
}

static void all_that_is_known_is_told(void **state)
{
    struct api_reply reply;

    (void)state;
    api_reply_init(&reply);
    retirement_tell(table, "GET", "/old/{id}", &reply);
    assert_string_equal(header(&reply, "Deprecation"), "@1719791999");
    assert_string_equal(header(&reply, "Sunset"), "Mon, 30 Jun 2025 23:59:59 GMT");
    assert_string_equal(header(&reply, "Link"), "<https://example.org/new>; rel=\"deprecation\"");
    api_reply_done(&reply);
}

static void what_is_not_known_is_not(void **state)
{
    struct api_reply reply;

    (void)state;
    api_reply_init(&reply);
    retirement_tell(table, "POST", "/old/{id}", &reply);
    assert_string_equal(header(&reply, "Deprecation"), "@1719791999");
    assert_null(header(&reply, "Sunset"));
    assert_null(header(&reply, "Link"));
    api_reply_done(&reply);
}

static void other_routes_have_none(void **state)
{
    struct api_reply reply;

    (void)state;
    api_reply_init(&reply);
    retirement_tell(table, "PUT", "/old/{id}", &reply);
    retirement_tell(table, "GET", "/old", &reply);
    retirement_tell(retirement_table, "GET", "/v1/version", &reply);
    assert_int_equal(reply.headers.count, 0);
    api_reply_done(&reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_is_known_is_told),
        cmocka_unit_test(what_is_not_known_is_not),
        cmocka_unit_test(other_routes_have_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
