/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"

static void zeroed_memory(void **state)
{
    static const char zeros[24] = { 0 };
    CLEANUP_FREE char *memory = alloc_zero(3, 8);
    CLEANUP_FREE char *nothing = alloc_zero(0, 0);

    (void)state;
    assert_memory_equal(memory, zeros, sizeof(zeros));
    assert_non_null(nothing);
}

static void resizing_keeps_the_content(void **state)
{
    char *memory = alloc_resize(NULL, 4, 1);

    (void)state;
    memcpy(memory, "abc", 4);
    memory = alloc_resize(memory, 1000, 16);
    assert_string_equal(memory, "abc");
    memory = alloc_resize(memory, 0, 16);
    assert_non_null(memory);
    free(memory);
}

static void copies(void **state)
{
    CLEANUP_FREE char *text = alloc_text("text");
    CLEANUP_FREE char *bytes = alloc_copy("a\0b", 3);
    CLEANUP_FREE char *empty = alloc_copy(NULL, 0);
    CLEANUP_FREE char *printed = alloc_printf("%s-%d", "n", 42);

    (void)state;
    assert_string_equal(text, "text");
    assert_null(alloc_text(NULL));
    assert_memory_equal(bytes, "a\0b", 4);
    assert_string_equal(empty, "");
    assert_string_equal(printed, "n-42");
}

static void overflow(void)
{
    /* Volatile, so that the compiler can't see and refuse it. */
    volatile size_t count = SIZE_MAX;

    free(alloc_resize(NULL, count, 2));
}

static void overflow_aborts(void **state)
{
    int status = 0;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        (void)close(STDERR_FILENO);
        overflow();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void taking_leaves_nothing_behind(void **state)
{
    CLEANUP_FREE char *text = alloc_text("x");
    CLEANUP_FD int fd = dup(STDOUT_FILENO);
    int kept_fd = fd;
    char *taken = CLEANUP_TAKE(text);
    int taken_fd = CLEANUP_TAKE_FD(fd);

    (void)state;
    assert_null(text);
    assert_string_equal(taken, "x");
    free(taken);
    assert_int_equal(fd, -1);
    assert_int_equal(taken_fd, kept_fd);
    assert_int_equal(close(taken_fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_memory),
        cmocka_unit_test(resizing_keeps_the_content),
        cmocka_unit_test(copies),
        cmocka_unit_test(overflow_aborts),
        cmocka_unit_test(taking_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
