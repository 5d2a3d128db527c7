/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: every key takes what it should, refuses the rest, and says where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/config.h"

static struct config config;
static struct err err;

static int fresh(void **state)
{
    (void)state;
    config_init(&config);
    err = ERR_INIT;
    return 0;
}

static int done(void **state)
{
    (void)state;
    config_done(&config);
    return 0;
}

static int parse(const char *text)
{
    return config_parse(&config, "kernd.conf", text, &err);
}

static void test_defaults(void **state)
{
    (void)state;
    assert_string_equal(config.engine, "auto");
    assert_int_equal(config.log_level, LOG_INFO);
    assert_false(config.allow_root);
    assert_null(config.state_dir);
    assert_int_equal(config.listens.count, 0);
    assert_true(config.maxima.timeout_s == 0);
}

static void test_a_file(void **state)
{
    (void)state;
    assert_int_equal(parse("# a comment\n"
                           "\n"
                           "  listen = 127.0.0.1:0  \r\n"
                           "listen=unix:/tmp/a b=c\n"
                           "state = /var/lib/x\n"
                           "engine = bubblewrap\n"
                           "allow_root = true\n"
                           "log_level = debug\n"
                           "log_format = json\n"
                           "workers = 3\n"
                           "grace_s = 0.5\n"
                           "max_memory_mb = 2048\n"
                           "default_timeout_s = 10"),
                     0);
    assert_int_equal(config.listens.count, 2);
    assert_string_equal(config.listens.items[0], "127.0.0.1:0");
    assert_string_equal(config.listens.items[1], "unix:/tmp/a b=c");
    assert_string_equal(config.state_dir, "/var/lib/x");
    assert_string_equal(config.engine, "bubblewrap");
    assert_true(config.allow_root && config.log_json);
    assert_int_equal(config.log_level, LOG_DEBUG);
    assert_int_equal(config.workers, 3);
    assert_true(config.grace_s == 0.5 && config.defaults.timeout_s == 10);
    assert_int_equal(config.maxima.memory_mb, 2048);
}

static void test_complaints_name_the_line(void **state)
{
    (void)state;
    assert_int_equal(parse("state = /a\n\n# x\nlisten_on = 1\n"), -1);
    assert_int_equal(err.code, ERR_BAD_VALUE);
    assert_non_null(strstr(err.msg, "kernd.conf:4:"));
    assert_non_null(strstr(err.msg, "listen_on"));
    assert_int_equal(parse("no equals sign"), -1);
    assert_non_null(strstr(err.msg, "kernd.conf:1:"));
    assert_int_equal(parse("runtime = /a\nruntime = /b\n"), -1);
    assert_non_null(strstr(err.msg, "kernd.conf:2: runtime is given twice"));
}

static void test_bad_values(void **state)
{
    static const char *const bad[] = {
        "engine = docker",
        "allow_root = yes",
        "allow_root =",
        "log_level = verbose",
        "log_format = xml",
        "workers = 0",
        "workers = -1",
        "workers = 3.5",
        "workers = 1000000",
        "grace_s = soon",
        "grace_s = -1",
        "grace_s = nan",
        "state =",
        "listen =",
        "= x",
        "max_pids = 0",
        "max_cpus = inf",
        "default_cpus = 1e9",
        "connections = 1",
        "request_timeout_s = 0",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err = ERR_INIT;
        assert_int_equal(parse(bad[i]), -1);
        assert_int_equal(err.code, ERR_BAD_VALUE);
    }
}

static void test_keys_and_options_have_one_spelling(void **state)
{
    (void)state;
    assert_true(config_is_key("log_level") && config_is_key("log-level"));
    assert_false(config_is_key("log level") || config_is_key("log_levels") || config_is_key("log"));
    assert_true(config_is_switch("allow-root"));
    assert_false(config_is_switch("state") || config_is_switch("nothing"));
    assert_int_equal(config_set(&config, "log-level", "error", &err), 0);
    assert_int_equal(config.log_level, LOG_ERROR);
}

static void test_lists_can_be_replaced(void **state)
{
    (void)state;
    assert_int_equal(parse("listen = 127.0.0.1:1\nallow_host = a\n"), 0);
    config_clear_list(&config, "listen");
    config_clear_list(&config, "state");
    config_clear_list(&config, "nothing");
    assert_int_equal(config.listens.count, 0);
    assert_int_equal(config.hosts.count, 1);
}

static void test_a_file_that_cannot_be_read(void **state)
{
    (void)state;
    assert_int_equal(config_load(&config, "/nonexistent/kernd.conf", &err), -1);
    assert_int_equal(err.code, ERR_IO);
    assert_non_null(strstr(err.msg, "/nonexistent/kernd.conf"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_defaults),
        TEST(test_a_file),
        TEST(test_complaints_name_the_line),
        TEST(test_bad_values),
        TEST(test_keys_and_options_have_one_spelling),
        TEST(test_lists_can_be_replaced),
        TEST(test_a_file_that_cannot_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
