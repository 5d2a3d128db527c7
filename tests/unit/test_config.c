/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: every key takes what it should, refuses the rest, and says where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/config.h"
#include "server/config_file.h"

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
    return config_file_parse(&config, "kernd.conf", text, &err);
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
    assert_int_equal(config.capacity.workers, 3);
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
    assert_int_equal(config_set(&config, "log-level", "error", "--log-level", &err), 0);
    assert_int_equal(config.log_level, LOG_ERROR);
}

static void test_a_layer_replaces_lists_of_the_one_before(void **state)
{
    (void)state;
    assert_int_equal(parse("listen = 127.0.0.1:1\nlisten = 127.0.0.1:2\nallow_host = a\n"), 0);
    assert_int_equal(config.listens.count, 2);
    config_layer(&config);
    assert_int_equal(config_set(&config, "listen", "127.0.0.1:3", "--listen", &err), 0);
    assert_int_equal(config_set(&config, "listen", "127.0.0.1:4", "--listen", &err), 0);
    assert_int_equal(config.listens.count, 2);
    assert_string_equal(config.listens.items[0], "127.0.0.1:3");
    assert_int_equal(config.hosts.count, 1);
}

static void test_comments_and_blanks(void **state)
{
    (void)state;
    assert_int_equal(parse("\xef\xbb\xbfstate = /a b ; where it lives\n"
                           "  ; nothing\n\t\n"
                           "  runtime=/r;1\n"
                           "\tlog_level : debug\n"),
                     0);
    assert_string_equal(config.state_dir, "/a b");
    assert_string_equal(config.runtime_dir, "/r;1");
    assert_int_equal(config.log_level, LOG_DEBUG);
}

static void test_complaints_are_precise(void **state)
{
    char text[512];

    (void)state;
    assert_int_equal(parse("log_levle = debug\n"), -1);
    assert_string_equal(err.msg,
                        "kernd.conf:1: there is no setting called log_levle: is log_level meant?");
    assert_int_equal(parse("\n[server]\nstate = /a\n"), -1);
    assert_string_equal(err.msg, "kernd.conf:3: state stands below [server], but there are no "
                                 "sections");
    /* The first line at fault is told, whatever is wrong with it. */
    assert_int_equal(parse("nothing\nworkers = x\n"), -1);
    assert_string_equal(err.msg, "kernd.conf:1: a line must be 'key = value'");
    assert_int_equal(parse("workers = x\nnothing\n"), -1);
    assert_non_null(strstr(err.msg, "kernd.conf:1: workers must be a number"));
    memset(text, 'x', sizeof(text));
    memcpy(text, "state = /", 9);
    text[198] = '\0';
    assert_int_equal(parse(text), 0);
    assert_int_equal(strlen(config.state_dir), 190);
    text[198] = 'x';
    text[199] = '\0';
    assert_int_equal(parse(text), -1);
    assert_string_equal(err.msg, "kernd.conf:1: a line must not be above 198 bytes");
}

static char *shown(void)
{
    struct config defaults;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    config_init(&defaults);
    config_show(&config, &defaults, out);
    config_done(&defaults);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void test_what_is_shown_is_a_file_again(void **state)
{
    char *text;
    char *again;

    (void)state;
    assert_int_equal(parse("\nlisten = 127.0.0.1:1\nlisten = 127.0.0.1:2\ngrace_s = 2.5\n"), 0);
    config_layer(&config);
    assert_int_equal(config_set(&config, "allow-root", "true", "--allow-root", &err), 0);
    text = shown();
    assert_non_null(strstr(text, "listen = 127.0.0.1:2"));
    assert_non_null(strstr(text, "; kernd.conf:3\n"));
    assert_non_null(strstr(text, "grace_s = 2.5 "));
    assert_non_null(strstr(text, "; --allow-root\n"));
    assert_non_null(strstr(text, "# state ="));
    assert_non_null(strstr(text, "log_level = info"));
    config_done(&config);
    config_init(&config);
    assert_int_equal(parse(text), 0);
    assert_int_equal(config.listens.count, 2);
    assert_true(config.allow_root && config.grace_s == 2.5);
    again = shown();
    assert_null(strstr(again, "; default"));
    free(again);
    free(text);
}

static void test_a_file_that_cannot_be_read(void **state)
{
    (void)state;
    assert_int_equal(config_file_load(&config, "/nonexistent/kernd.conf", &err), -1);
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
        TEST(test_a_layer_replaces_lists_of_the_one_before),
        TEST(test_comments_and_blanks),
        TEST(test_complaints_are_precise),
        TEST(test_what_is_shown_is_a_file_again),
        TEST(test_a_file_that_cannot_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
