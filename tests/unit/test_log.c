/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "tests/unit/logkit.h"

/* What follows the time, checked for its shape. */
static const char *after_time(const char *line, const char *before, const char *after)
{
    size_t skip = strlen(before) + strlen("2026-11-29T18:37:41.123Z");

    assert_memory_equal(line, before, strlen(before));
    assert_int_equal(line[skip - 1], 'Z');
    assert_memory_equal(line + skip, after, strlen(after));
    return line + skip + strlen(after);
}

static void assert_value(bool json, const char *value, const char *expected)
{
    CLEANUP_FREE char *line = NULL;
    CLEANUP_FREE char *want = NULL;

    log_setup(LOG_INFO, json);
    logkit_start();
    log_line(LOG_INFO, "event", "key", value, NULL);
    line = logkit_end();
    assert_true(asprintf(&want,
                         json ? "\",\"level\":\"info\",\"event\":\"event\",\"key\":%s}\n"
                              : " level=info event=event key=%s\n",
                         expected) > 0);
    assert_string_equal(after_time(line, json ? "{\"time\":\"" : "time=", ""), want);
}

static void plain_values_have_no_quotes(void **state)
{
    (void)state;
    assert_value(false, "http://127.0.0.1:5376/", "http://127.0.0.1:5376/");
    assert_value(false, "", "\"\"");
    assert_value(false, "two words", "\"two words\"");
    assert_value(false, "a=b", "\"a=b\"");
    assert_value(false, "say \"hi\"", "\"say \\\"hi\\\"\"");
    assert_value(false, "back\\slash", "\"back\\\\slash\"");
}

static void a_value_can_not_forge_a_line(void **state)
{
    (void)state;
    assert_value(false, "x\ntime=0 level=error", "\"x\\ntime=0 level=error\"");
    assert_value(false, "a\rb\tc", "\"a\\rb\\tc\"");
    assert_value(false, "\x1B[31mred", "\"\\x1b[31mred\"");
    assert_value(false, "\x7F", "\"\\x7f\"");
    /* U+009B, which terminals take for ESC [. */
    assert_value(false,
                 "\xC2\x9B"
                 "31m",
                 "\"\\xc2\\x9b31m\"");
}

static void bytes_that_are_not_utf8_are_escaped(void **state)
{
    (void)state;
    assert_value(false, "caf\xC3\xA9", "\"caf\xC3\xA9\"");
    assert_value(false, "caf\xE9", "\"caf\\xe9\"");
    assert_value(false, "\xE2\x82", "\"\\xe2\\x82\"");
    assert_value(false, "\xED\xA0\x80", "\"\\xed\\xa0\\x80\"");
}

static void json_values(void **state)
{
    (void)state;
    assert_value(true, "plain", "\"plain\"");
    assert_value(true, "a \"b\" \\", "\"a \\\"b\\\" \\\\\"");
    assert_value(true, "a\nb\r\t", "\"a\\nb\\r\\t\"");
    assert_value(true, "\x01\x7F", "\"\\u0001\\u007f\"");
    assert_value(true, "\xC2\x9B", "\"\\u009b\"");
    assert_value(true, "\xC3\xA9\xFF", "\"\xC3\xA9\\ufffd\"");
}

static void long_values_are_cut_between_characters(void **state)
{
    char *value = calloc(1, 5001);
    CLEANUP_FREE char *expected = calloc(1, 3000);

    (void)state;
    for (size_t i = 0; i < 2500; i++) {
        memcpy(value + 2 * i, "\xC3\xA9", 2);
    }
    expected[0] = '"';
    memcpy(expected + 1, value, 2048);
    memcpy(expected + 2049, "...\"", 4);
    assert_value(false, value, expected);
    assert_value(true, value, expected);
    free(value);
}

static void missing_values_are_left_out(void **state)
{
    CLEANUP_FREE char *line = NULL;

    (void)state;
    log_setup(LOG_INFO, false);
    logkit_start();
    log_line(LOG_WARNING, "e", "a", (const char *)NULL, "b", "2", NULL);
    line = logkit_end();
    assert_string_equal(after_time(line, "time=", " level=warning event=e b=2"), "\n");
}

static void numbers_are_numbers(void **state)
{
    char *lines[2];

    (void)state;
    for (int json = 0; json < 2; json++) {
        log_setup(LOG_INFO, json == 1);
        logkit_start();
        log_line(LOG_INFO, "e", LOG_NUMBER "ms", "0.250", "id", "12", LOG_NUMBER "none", NULL,
                 NULL);
        lines[json] = logkit_end();
    }
    assert_non_null(strstr(lines[0], " event=e ms=0.250 id=12\n"));
    assert_non_null(strstr(lines[1], ",\"event\":\"e\",\"ms\":0.250,\"id\":\"12\"}\n"));
    free(lines[0]);
    free(lines[1]);
}

static void a_full_line_stays_whole(void **state)
{
    char value[2000];
    CLEANUP_FREE char *line = NULL;

    (void)state;
    memset(value, '"', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    log_setup(LOG_INFO, true);
    logkit_start();
    log_line(LOG_INFO, "e", "a", value, "b", value, "c", value, "d", value, "e", value, "f", "x",
             NULL);
    line = logkit_end();
    assert_true(strlen(line) <= 16 * 1024 + 4);
    assert_non_null(strstr(line, "\",\"f\":\"x\"}\n"));
    assert_null(strstr(line, ",\"e\":"));
}

static void the_level_decides(void **state)
{
    CLEANUP_FREE char *text = NULL;

    (void)state;
    log_setup(LOG_WARNING, false);
    assert_true(log_enabled(LOG_ERROR));
    assert_true(log_enabled(LOG_WARNING));
    assert_false(log_enabled(LOG_INFO));
    logkit_start();
    log_line(LOG_INFO, "hidden", NULL);
    log_line(LOG_DEBUG, "hidden", NULL);
    text = logkit_end();
    assert_string_equal(text, "");
}

static void level_names(void **state)
{
    enum log_level level = LOG_ERROR;

    (void)state;
    assert_int_equal(log_level_parse("debug", &level), 0);
    assert_int_equal(level, LOG_DEBUG);
    assert_int_equal(log_level_parse("error", &level), 0);
    assert_int_equal(level, LOG_ERROR);
    assert_int_equal(log_level_parse("Debug", &level), -1);
    assert_int_equal(log_level_parse("", &level), -1);
    assert_int_equal(log_level_parse(NULL, &level), -1);
    assert_int_equal(level, LOG_ERROR);
}

static void errno_survives_a_closed_stderr(void **state)
{
    (void)state;
    log_setup(LOG_INFO, false);
    logkit_start();
    assert_int_equal(close(STDERR_FILENO), 0);
    errno = ENOSPC;
    log_line(LOG_ERROR, "nobody reads this", NULL);
    assert_int_equal(errno, ENOSPC);
    free(logkit_end());
}

static void *log_many(void *argument)
{
    for (int i = 0; i < 100; i++) {
        log_line(LOG_INFO, "line", "from", argument, NULL);
    }
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
    pthread_t threads[4];
    char names[4][8];
    CLEANUP_FREE char *text = NULL;
    char *rest = NULL;
    int lines = 0;

    (void)state;
    log_setup(LOG_INFO, false);
    logkit_start();
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "thread%u", (unsigned)i);
        assert_int_equal(pthread_create(&threads[i], NULL, log_many, names[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    text = logkit_end();
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *end = after_time(line, "time=", " level=info event=line from=thread");

        assert_int_equal(strlen(end), 1);
        lines++;
    }
    assert_int_equal(lines, 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_values_have_no_quotes),
        cmocka_unit_test(a_value_can_not_forge_a_line),
        cmocka_unit_test(bytes_that_are_not_utf8_are_escaped),
        cmocka_unit_test(json_values),
        cmocka_unit_test(long_values_are_cut_between_characters),
        cmocka_unit_test(missing_values_are_left_out),
        cmocka_unit_test(numbers_are_numbers),
        cmocka_unit_test(a_full_line_stays_whole),
        cmocka_unit_test(the_level_decides),
        cmocka_unit_test(level_names),
        cmocka_unit_test(errno_survives_a_closed_stderr),
        cmocka_unit_test(lines_of_threads_do_not_mix),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
