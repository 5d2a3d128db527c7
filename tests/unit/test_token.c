/* SPDX-License-Identifier: Apache-2.0 */
/* The token: its file, and what a request may show. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/token.h"
#include "tests/unit/scratch.h"

#define GOOD "0123456789abcdef0123456789abcdef"

static struct token token = { .text = GOOD, .length = sizeof(GOOD) - 1 };

/* ---- the file ---- */

static int load(struct token *ret_token, struct err *err)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/token", scratch_path);
    return token_load(path, ret_token, err);
}

static void test_made_once_and_kept(void **state)
{
    struct token first = { .length = 0 };
    struct token second = { .length = 0 };
    struct stat status;

    (void)state;
    assert_int_equal(load(&first, NULL), 0);
    assert_int_equal(first.length, 64);
    assert_int_equal(strspn(first.text, "0123456789abcdef"), 64);
    assert_int_equal(fstatat(scratch_fd, "token", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(load(&second, NULL), 0);
    assert_string_equal(first.text, second.text);
}

static void check_unusable(const char *content, mode_t mode)
{
    struct token ignored;
    struct err err = ERR_INIT;

    (void)unlinkat(scratch_fd, "token", 0);
    scratch_file(scratch_fd, "token", content);
    assert_int_equal(fchmodat(scratch_fd, "token", mode, 0), 0);
    assert_int_equal(load(&ignored, &err), -1);
    assert_int_equal(err.code, ERR_IO);
    assert_null(strstr(err.msg, "0123456789"));
}

static void test_files_that_are_refused(void **state)
{
    char longest[TOKEN_LENGTH_MAX + 2];

    (void)state;
    memset(longest, 'a', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    check_unusable(GOOD "\n", 0640);
    check_unusable(GOOD "\n", 0604);
    check_unusable("", 0600);
    check_unusable("0123456789\n", 0600);
    check_unusable(GOOD " " GOOD, 0600);
    check_unusable(GOOD "\n" GOOD "\n", 0600);
    check_unusable(longest, 0600);
}

static void test_not_a_plain_file(void **state)
{
    struct token ignored;
    struct err err = ERR_INIT;

    (void)state;
    scratch_file(scratch_fd, "elsewhere", GOOD "\n");
    assert_int_equal(symlinkat("elsewhere", scratch_fd, "token"), 0);
    assert_int_equal(load(&ignored, &err), -1);
    assert_int_equal(unlinkat(scratch_fd, "token", 0), 0);
    assert_int_equal(mkfifoat(scratch_fd, "token", 0600), 0);
    assert_int_equal(load(&ignored, &err), -1);
}

static void test_a_token_of_the_user(void **state)
{
    struct token own = { .length = 0 };

    (void)state;
    scratch_file(scratch_fd, "token", "My-own.token_of~32+characters/==\r\n");
    assert_int_equal(fchmodat(scratch_fd, "token", 0600, 0), 0);
    assert_int_equal(load(&own, NULL), 0);
    assert_string_equal(own.text, "My-own.token_of~32+characters/==");
}

/* ---- the request ---- */

static int check(const char *target, const char *name, const char *value, bool trusted)
{
    struct api_header field = { name, value };
    struct http_guard_head head = { .target = target,
                                    .headers = &field,
                                    .header_count = name != NULL ? 1 : 0 };
    struct err err = ERR_INIT;
    struct api_identity identity;
    int result = token_check(&token, NULL, &head, trusted, &identity, &err);

    assert_int_equal(err.code, result == 0 ? ERR_NONE : ERR_UNAUTHORIZED);
    assert_null(strstr(err.msg, "0123456789"));
    return result;
}

static void test_shown_well(void **state)
{
    (void)state;
    assert_int_equal(check("/", "Authorization", "Bearer " GOOD, false), 0);
    assert_int_equal(check("/", "authorization", "bearer   " GOOD, false), 0);
    assert_int_equal(check("/", "X-API-Key", GOOD, false), 0);
    assert_int_equal(check("/", "Authorization", "Bearer " GOOD, true), 0);
    assert_int_equal(check("/", NULL, NULL, true), 0);
    assert_int_equal(check("/?limit=3&mytoken=1", NULL, NULL, true), 0);
}

static void test_shown_badly(void **state)
{
    (void)state;
    assert_int_equal(check("/", NULL, NULL, false), -1);
    assert_int_equal(check("/", "Authorization", "Bearer " GOOD "0", false), -1);
    assert_int_equal(check("/", "Authorization", "Bearer 0123456789abcdef0123456789abcdeF", false),
                     -1);
    assert_int_equal(check("/", "Authorization", "Bearer ", false), -1);
    assert_int_equal(check("/", "Authorization", "Bearer", false), -1);
    assert_int_equal(check("/", "Authorization", GOOD, false), -1);
    assert_int_equal(check("/", "Authorization", "Basic " GOOD, false), -1);
    assert_int_equal(check("/", "X-API-Key", "", false), -1);
    /* Whoever is trusted anyway must not believe that a wrong token is right. */
    assert_int_equal(check("/", "X-API-Key", "wrong", true), -1);
    assert_int_equal(check("/", "Authorization", "Basic x", true), -1);
}

static void test_never_in_the_url(void **state)
{
    static const char *const targets[] = { "/?token=" GOOD, "/?a=b&access_token=" GOOD,
                                           "/?API_KEY=" GOOD, "/x?apikey=" };

    (void)state;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        assert_int_equal(check(targets[i], NULL, NULL, false), -1);
        assert_int_equal(check(targets[i], "X-API-Key", GOOD, false), -1);
        assert_int_equal(check(targets[i], NULL, NULL, true), -1);
    }
}

static void test_shown_twice(void **state)
{
    struct api_header fields[] = { { "Authorization", "Bearer " GOOD }, { "X-API-Key", GOOD } };
    struct http_guard_head head = { .target = "/", .headers = fields, .header_count = 2 };
    struct api_identity identity;

    (void)state;
    assert_int_equal(token_check(&token, NULL, &head, false, &identity, NULL), -1);
    fields[1] = fields[0];
    assert_int_equal(token_check(&token, NULL, &head, true, &identity, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_made_once_and_kept, scratch_fresh),
        cmocka_unit_test_setup(test_files_that_are_refused, scratch_fresh),
        cmocka_unit_test_setup(test_not_a_plain_file, scratch_fresh),
        cmocka_unit_test_setup(test_a_token_of_the_user, scratch_fresh),
        cmocka_unit_test(test_shown_well),
        cmocka_unit_test(test_shown_badly),
        cmocka_unit_test(test_never_in_the_url),
        cmocka_unit_test(test_shown_twice),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
