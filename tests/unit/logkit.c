/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/logkit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static int saved_stderr = -1;
static int captured = -1;

void logkit_start(void)
{
    CLEANUP_FD int writer = -1;

    saved_stderr = dup(STDERR_FILENO);
    assert_int_equal(fd_pipe(&captured, &writer), 0);
    assert_true(dup2(writer, STDERR_FILENO) >= 0);
}

char *logkit_end(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT(100000);
    struct err err = ERR_INIT;

    assert_true(dup2(saved_stderr, STDERR_FILENO) >= 0);
    fd_clear(&saved_stderr);
    assert_int_equal(fd_read_to_end(captured, &text, &err), 0);
    fd_clear(&captured);
    return buf_take(&text, NULL);
}
