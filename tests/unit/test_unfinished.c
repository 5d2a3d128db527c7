/* SPDX-License-Identifier: Apache-2.0 */
/* Where a statement that is typed line by line ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/unfinished.h"

struct row {
    const char *language;
    const char *code;
    bool goes_on;
};

static void test_table(void **state)
{
    static const struct row rows[] = {
        { "python", "", false },
        { "python", "x = 1", false },
        { "python", "f(1,", true },
        { "python", "f(1,\n2)", false },
        { "python", "'(' # [", false },
        { "python", "'''a", true },
        { "python", "'''a\n'b'''", false },
        { "python", "'open", false },
        { "python", "if x:", true },
        { "python", "if x:\n  y", true },
        { "python", "if x:\n  y\n", false },
        { "python", "@f", true },
        { "python", "a @ b", false },
        { "python", "x = {1: 2}", false },
        { "python", "while True: pass", false },
        { "python", "1 + \\", true },
        { "python", "1 + \\\n2", false },
        { "bash", "echo 'a", true },
        { "bash", "echo if", false },
        { "bash", "if true", true },
        { "bash", "if true; then", true },
        { "bash", "if true; then x; fi", false },
        { "bash", "while x; do", true },
        { "bash", "while x; do if y; then z; fi; done", false },
        { "bash", "f() {", true },
        { "bash", "f() {\n  x\n}", false },
        { "bash", "echo a#b $(x", true },
        { "bash", "x # (", false },
        { "bash", "echo a#b", false },
        { "bash", "echo #", false },
        { "bash", "echo a\\", true },
        { "bash", "echo a\\\nb", false },
        { "node", "`a", true },
        { "node", "`a\n${b}`", false },
        { "node", "/* ( */ 1", false },
        { "node", "/* (", true },
        { "node", "[1, // ]", true },
        { "node", "() => {\n}", false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (unfinished_code(rows[i].language, rows[i].code) != rows[i].goes_on) {
            fail_msg("%s: %s", rows[i].language, rows[i].code);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_table) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
