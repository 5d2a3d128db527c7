/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: what is understood, what is refused, and what wins over what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/fd.h"
#include "server/cli.h"
#include "tests/unit/scratch.h"

static struct config config;
static struct err err;
static enum cli_command command;

static int fresh(void **state)
{
    config_init(&config);
    err = ERR_INIT;
    return scratch_fresh(state);
}

static int done(void **state)
{
    (void)state;
    config_done(&config);
    return 0;
}

/* Parses the arguments up to NULL. */
static int parse(const char *const *arguments)
{
    struct strv copy = { .count = 0 };
    int result;

    for (size_t i = 0; arguments[i] != NULL; i++) {
        strv_add(&copy, arguments[i]);
    }
    result = cli_parse((int)copy.count, strv_argv(&copy), &config, &command, &err);
    strv_done(&copy);
    return result;
}

#define PARSE(...) parse((const char *[]){ __VA_ARGS__, NULL })

static void test_commands(void **state)
{
    (void)state;
    assert_int_equal(PARSE("version"), 0);
    assert_int_equal(command, CLI_VERSION);
    assert_int_equal(PARSE("--version"), 0);
    assert_int_equal(command, CLI_VERSION);
    assert_int_equal(PARSE("version", "--syscalls"), 0);
    assert_int_equal(command, CLI_SYSCALLS);
    assert_int_equal(PARSE("help"), 0);
    assert_int_equal(command, CLI_HELP);
    assert_int_equal(PARSE("-h"), 0);
    assert_int_equal(command, CLI_HELP);
    assert_int_equal(PARSE("serve"), 0);
    assert_int_equal(command, CLI_SERVE);
    assert_int_equal(PARSE("serve", "--nonsense", "--help"), 0);
    assert_int_equal(command, CLI_HELP);
}

static void test_options_of_serve(void **state)
{
    (void)state;
    assert_int_equal(PARSE("serve", "--listen", "127.0.0.1:0", "--listen=unix:/x=y", "--state",
                           "/s", "--allow-root", "--hint=false", "--log-format", "json"),
                     0);
    assert_int_equal(config.listens.count, 2);
    assert_string_equal(config.listens.items[1], "unix:/x=y");
    assert_string_equal(config.state_dir, "/s");
    assert_true(config.allow_root && config.log_json && !config.hint);
}

static void check_refused(int result, const char *part)
{
    assert_int_equal(result, -1);
    assert_non_null(strstr(err.msg, part));
    assert_string_equal(err.remedy, "see: kernd help");
}

static void test_refusals(void **state)
{
    static const char *const nothing[] = { NULL };

    (void)state;
    check_refused(parse(nothing), "no command");
    check_refused(PARSE("server"), "unknown command server");
    check_refused(PARSE("serve", "--lisen", "x"), "unknown option --lisen");
    check_refused(PARSE("serve", "--state"), "--state needs a value");
    check_refused(PARSE("serve", "now"), "unexpected argument now");
    check_refused(PARSE("serve", "--"), "unexpected argument --");
    check_refused(PARSE("serve", "-l", "x"), "unexpected argument -l");
    check_refused(PARSE("version", "x"), "unexpected argument x");
    check_refused(PARSE("version", "--syscalls", "x"), "unexpected argument --syscalls");
    check_refused(PARSE("serve", "--workers", "many"), "workers must be a number");
    check_refused(PARSE("serve", "--config", "/nonexistent"), "/nonexistent");
}

static void test_options_win_over_the_file(void **state)
{
    char *path = alloc_printf("%s/kernd.conf", scratch_path);

    (void)state;
    scratch_file(scratch_fd, "kernd.conf",
                 "listen = 127.0.0.1:1\nlisten = 127.0.0.1:2\nstate = /file\nruntime = /file\n"
                 "allow_host = from.file\n");
    assert_int_equal(PARSE("serve", "--state", "/option", "--listen", "127.0.0.1:3", "--listen",
                           "127.0.0.1:4", "--config", path),
                     0);
    assert_string_equal(config.state_dir, "/option");
    assert_string_equal(config.runtime_dir, "/file");
    assert_int_equal(config.listens.count, 2);
    assert_string_equal(config.listens.items[0], "127.0.0.1:3");
    assert_string_equal(config.hosts.items[0], "from.file");
    free(path);
}

static void test_help_names_every_option(void **state)
{
    static const char *const names[] = { "--listen ",    "--state ",     "--runtime ",
                                         "--config ",    "--engine ",    "--user ",
                                         "--allow-root", "--log-level ", "--log-format " };
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    assert_non_null(out);
    cli_help(out);
    assert_int_equal(fclose(out), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_non_null(strstr(text, names[i]));
    }
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_commands),
        TEST(test_options_of_serve),
        TEST(test_refusals),
        TEST(test_options_win_over_the_file),
        TEST(test_help_names_every_option),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
