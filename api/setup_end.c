/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: say why a setup failed.
 * Owns: nothing.
 * Threads: any.
 * May include: lib/base, lib/sandbox.
 */
#include "api/setup_end.h"

#include <string.h>

#include "api/problem.h"
#include "lib/base/buf.h"
#include "lib/sandbox/environments.h"

/* Of what the setup wrote last, as much as fits into the detail of a problem. */
#define LAST_WORDS 240

/* Where a text that is cut at `start` goes on: at a line, or at a word, or at a character. */
static size_t next_start(const char *data, size_t start, size_t end)
{
    const char *line = memchr(data + start - 1, '\n', end - start);
    const char *word = memchr(data + start - 1, ' ', end - start);

    if (line != NULL || word != NULL) {
        return (size_t)((line != NULL ? line : word) + 1 - data);
    }
    while (start < end && ((unsigned char)data[start] & 0xC0) == 0x80) {
        start++;
    }
    return start;
}

/* The end of a text, without blanks behind it, from the start of a line if one is near enough. */
static const char *last_words(const struct buf *text, size_t *ret_size)
{
    const char *data = text->data == NULL ? "" : text->data;
    size_t end = text->size;
    size_t start = 0;

    while (end > 0 && strchr(" \t\r\n", data[end - 1]) != NULL) {
        end--;
    }
    if (end > LAST_WORDS) {
        start = next_start(data, end - LAST_WORDS, end);
    }
    *ret_size = end - start;
    return data + start;
}

/* Did the setup of an environment succeed, and an import behind it fail? */
static bool is_of_preload(const struct execution *setup, const struct run_result *result,
                          const char *words, size_t size)
{
    const char *line = memrchr(words, '\n', size);
    const size_t before = line == NULL ? 0 : (size_t)(line + 1 - words);

    return execution_request(setup)->builds != NULL && result->exit_code == 1 &&
           memmem(words + before, size - before, ENVIRONMENTS_NOT_PRELOADED,
                  sizeof(ENVIRONMENTS_NOT_PRELOADED) - 1) != NULL;
}

static void describe_failure(const struct execution *setup, const struct run_result *result,
                             struct err *err)
{
    const struct buf *text =
        result->stderr_data.size > 0 ? &result->stderr_data : &result->stdout_data;
    size_t size = 0;
    const char *words = last_words(text, &size);

    if (result->fault != RUN_FAULT_NONE) {
        (void)err_set(err, ERR_SETUP_FAILED, 0, "the setup ended with the fault \"%s\": %.*s",
                      run_fault_text(result->fault), (int)size, words);
    } else if (is_of_preload(setup, result, words, size)) {
        (void)err_set(err, ERR_PRELOAD_FAILED, 0, "the import failed: %.*s", (int)size, words);
    } else {
        (void)err_set(err, ERR_SETUP_FAILED, 0, "the setup ended with exit code %d: %.*s",
                      result->exit_code, (int)size, words);
    }
}

int setup_end_judge(const struct execution *setup, enum wait_end end, struct err *err)
{
    const struct run_result *result = end == WAIT_DONE ? execution_result(setup, err) : NULL;

    if (result == NULL) {
        return -1;
    }
    if (result->fault == RUN_FAULT_NONE && result->has_exit_code && result->exit_code == 0) {
        return 0;
    }
    describe_failure(setup, result, err);
    return -1;
}

void setup_end_fail(struct api_call *call, const struct execution *setup, const struct err *err)
{
    api_reply_problem(&call->reply, err, call->target, call->request_id);
    api_reply_header(&call->reply, "X-Execution-Id", execution_id(setup));
    api_call_finish(call);
}
