/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session options come back from the store as they went in, and a broken row is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/sandbox/options.h"

static void fill(struct options *options)
{
    struct limits limits;

    limits_defaults(&limits);
    limits.timeout_s = 0.1;
    limits.cpus = 1.5;
    options_init(options, &limits);
    options->network = true;
    options->boot = true;
    options->track_files = false;
    options->idle_timeout_s = 60;
    options->prewarm = 0;
    options->prewarm_set = true;
    options->setup = strdup("pip install x\necho \"y\"");
    options->environment = strdup("env_1");
    options->choice.engine = strdup("kern");
    options->choice.image = strdup("a/b:1");
    options->choice.some_caps = true;
    strv_add_all(&options->choice.cap_drop, "MKNOD", NULL);
    strv_add_all(&options->choice.egress, "a.bc", "d.ef", NULL);
    strv_add_all(&options->choice.profiles, "vcpu:x", NULL);
    options->choice.apparmor = strdup("p");
    options->choice.security_profile = strdup("untrusted");
    strv_add_all(&options->preload, "json", "a.b", NULL);
    strv_add_all(&options->env, "A=line one\nline two 7\n", "B=", NULL);
    strv_add_all(&options->labels, "team=red", NULL);
    run_mount_add(&options->mounts, &options->mount_count, "/srv/data", "/data", false);
    run_mount_add(&options->mounts, &options->mount_count, "/srv/out", "/out", true);
}

static void all_fields_come_back(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT(OPTIONS_ENCODED_MAX);
    struct options first;
    struct options second;

    (void)state;
    fill(&first);
    assert_int_equal(options_encode(&first, &text, NULL), 0);
    assert_int_equal(options_decode(text.data, text.size, &second, NULL), 0);
    assert_true(second.limits.timeout_s == first.limits.timeout_s);
    assert_true(second.limits.cpus == first.limits.cpus);
    assert_int_equal(second.limits.memory_mb, first.limits.memory_mb);
    assert_true(second.network && second.boot);
    assert_false(second.track_files);
    assert_true(second.prewarm_set);
    assert_string_equal(second.setup, first.setup);
    assert_string_equal(second.environment, "env_1");
    assert_true(choice_equal(&second.choice, &first.choice));
    assert_true(strv_equal(&second.preload, &first.preload));
    assert_int_equal(second.env.count, 2);
    assert_string_equal(second.env.items[0], first.env.items[0]);
    assert_string_equal(second.labels.items[0], "team=red");
    assert_int_equal(second.mount_count, 2);
    assert_string_equal(second.mounts[1].target, "/out");
    assert_true(second.mounts[1].writable);
    assert_false(second.mounts[0].writable);
    assert_null(second.workspace);
    options_done(&first);
    options_done(&second);
}

static void an_environment_is_found_in_the_text(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT(OPTIONS_ENCODED_MAX);
    CLEANUP_FREE char *part = options_text_of_environment("env_1");
    CLEANUP_FREE char *other = options_text_of_environment("env_");
    struct options options;

    (void)state;
    fill(&options);
    assert_int_equal(options_encode(&options, &text, NULL), 0);
    assert_int_equal(buf_append(&text, "", 1), 0);
    assert_non_null(strstr(text.data, part));
    assert_null(strstr(text.data, other));
    options_done(&options);
}

static void a_cut_row_is_refused(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT(OPTIONS_ENCODED_MAX);
    struct options options;

    (void)state;
    fill(&options);
    assert_int_equal(options_encode(&options, &text, NULL), 0);
    options_done(&options);
    for (size_t size = 1; size < text.size; size++) {
        if (options_decode(text.data, size, &options, NULL) == 0) {
            options_done(&options); /* a cut between two entries reads as fewer entries */
            assert_int_equal(text.data[size - 1], '\n');
        }
    }
}

static void a_request_inherits(void **state)
{
    struct options options;
    struct run_request *request = run_request_new();

    (void)state;
    fill(&options);
    options_apply(&options, request);
    assert_true(request->network && request->boot);
    assert_false(request->track_files);
    assert_int_equal(request->env.count, 2);
    assert_int_equal(request->mount_count, 2);
    assert_string_equal(request->environment, "env_1");
    assert_int_equal(request->preload.count, 2);
    run_request_free(request);
    options_done(&options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_fields_come_back),
        cmocka_unit_test(an_environment_is_found_in_the_text),
        cmocka_unit_test(a_cut_row_is_refused),
        cmocka_unit_test(a_request_inherits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
