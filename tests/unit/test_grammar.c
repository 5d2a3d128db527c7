/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/grammar.h"

static void check(const struct grammar_rule *rule, const char *const *good, const char *const *bad)
{
    for (; *good != NULL; good++) {
        if (!rule->fits(*good)) {
            fail_msg("%s is refused", *good);
        }
    }
    for (; *bad != NULL; bad++) {
        if (rule->fits(*bad)) {
            fail_msg("%s is taken", *bad);
        }
    }
    assert_true(strlen(rule->words) > 0);
}

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define TEN "aaaaaaaaaa"
#define SIXTY TEN TEN TEN TEN TEN TEN

static void capabilities(void **state)
{
    (void)state;
    check(&grammar_capability,
          LIST("ALL", "SYS_ADMIN", "CAP_NET_BIND_SERVICE", "MKNOD", "A_1B",
               "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF"),
          LIST("", "all", "--x", "A B", "A;B", "ALL\n", "ALL ", " ALL", "CAP_", "1A", "_A", "A_",
               "A__B", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG", "\xC3\x89", "CAP__A", "CAP_1"));
}

static void apparmor_names(void **state)
{
    (void)state;
    check(&grammar_apparmor,
          LIST("unconfined", "kern-box", ".", "..", "_x", SIXTY SIXTY "aaaaaaaa"),
          LIST("", "-x", "--x", "a b", "a;b", "a\n", "a/b", "a:b", "\xC3\xA9",
               SIXTY SIXTY "aaaaaaaaa"));
}

static void profiles(void **state)
{
    (void)state;
    check(&grammar_profile, LIST("vcpu:a", "vgpio:0.x_y-z", "vdisk:A"),
          LIST("", "vcpu:", "vcpu", "a", "vgpu:a", "vcpu:-a", "vcpu:.a", "vcpu:a b", "vcpu:a/b",
               "vcpu:a=b", "-vcpu:a", "vcpu:a\n", "vcpu:a\r", " vcpu:a"));
}

static void domains(void **state)
{
    (void)state;
    check(&grammar_domain, LIST("pypi.org", "a.b-c.example", "1.2.3.com", SIXTY "aaa.org", "A.CO"),
          LIST("", "localhost", "a.", ".a", "a..org", "a.org.", "-a.org", "a-.org", "a_b.org",
               "a b.org", "http://a.org", "a.org/x", "a.org:1", "*.org", "a.org,b.org", "127.0.0.1",
               "a.o", "a.xn--p1ai", "a.org\n", SIXTY "aaaa.org", "a." SIXTY "aaaa",
               SIXTY "." SIXTY "." SIXTY "." SIXTY "." TEN ".org"));
}

static void other_words(void **state)
{
    (void)state;
    check(&grammar_image, LIST("python:3.12-slim", "ghcr.io/a/b@sha256:00", "/a/b.tar"),
          LIST("", " ", "-x", "--rm", "a b", "a\n", "a;b", ":x"));
    check(&grammar_label_key, LIST("a", "team/x", "a.b-c_d", "A1", SIXTY "aaaa"),
          LIST("", "-a", "a-", "/a", "a=b", "a:b", "a b", "\xC3\xA9", SIXTY "aaaaa"));
}

static void modules(void **state)
{
    (void)state;
    check(&grammar_module, LIST("a", "_x", "a.b.c", "numpy.linalg", "x1", SIXTY "." SIXTY),
          LIST("", ".", ".a", "a.", "a..b", "1a", "a.1", "a-b", "a b", "a\n", "a;b", "\xC3\xA9",
               SIXTY SIXTY "aaaaaaaaa"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capabilities), cmocka_unit_test(apparmor_names),
        cmocka_unit_test(profiles),     cmocka_unit_test(domains),
        cmocka_unit_test(other_words),  cmocka_unit_test(modules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
