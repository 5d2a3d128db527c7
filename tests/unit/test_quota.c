/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/quota.h"
#include "lib/base/pool.h"
#include "lib/base/text.h"

static const char *header(const struct api_reply *reply, const char *name)
{
    for (size_t i = 0; i + 1 < reply->headers.count; i += 2) {
        if (text_equal(reply->headers.items[i], name)) {
            return reply->headers.items[i + 1];
        }
    }
    return NULL;
}

static void check(const struct pool_share *share, const char *policy, const char *left)
{
    struct api_reply reply;

    api_reply_init(&reply);
    quota_write(share, &reply);
    assert_string_equal(header(&reply, "RateLimit-Policy"), policy);
    assert_string_equal(header(&reply, "RateLimit"), left);
    api_reply_done(&reply);
}

static void what_is_allowed_and_what_is_left(void **state)
{
    (void)state;
    check(
        &(struct pool_share){
            .running = 3, .running_max = 14, .queued = 2, .queued_max = 192, .room = 190 },
        "\"running\";q=14;qu=\"concurrent-requests\", "
        "\"waiting\";q=192;qu=\"concurrent-requests\"",
        "\"running\";r=11, \"waiting\";r=190");
}

static void nothing_left_is_zero(void **state)
{
    (void)state;
    /* Detached programs aside, no caller has more than it may; should it be so, it is not wrapped.
     */
    check(&(struct pool_share){ .running = 5, .running_max = 4, .queued_max = 1 },
          "\"running\";q=4;qu=\"concurrent-requests\", "
          "\"waiting\";q=1;qu=\"concurrent-requests\"",
          "\"running\";r=0, \"waiting\";r=0");
}

static void other_calls_are_told_nothing(void **state)
{
    struct api_call call = { .queues = false };

    (void)state;
    api_reply_init(&call.reply);
    quota_tell(&call);
    assert_int_equal(call.reply.headers.count, 0);
    api_reply_done(&call.reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_allowed_and_what_is_left),
        cmocka_unit_test(nothing_left_is_zero),
        cmocka_unit_test(other_calls_are_told_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
