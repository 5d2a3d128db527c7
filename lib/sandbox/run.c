/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run: life of requests and results, and their words.
 * Owns: the memory inside both.
 * Threads: any, one at a time per object.
 * May include: lib/base.
 */
#include "lib/sandbox/run.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/sandbox/environments_use.h"
#include "lib/sandbox/session.h"

static const char *const language_texts[RUN_LANGUAGE_MAX] = {
    [RUN_PYTHON] = "python",
    [RUN_BASH] = "bash",
    [RUN_NODE] = "node",
};

const char *run_kind_text(enum run_kind kind)
{
    switch (kind) {
    case RUN_COMMAND:
        return "run";
    case RUN_CODE:
        return "runCode";
    case RUN_SETUP:
        return "setup";
    case RUN_CELL:
        return "cell";
    case RUN_PULL:
        return "pull";
    }
    return "";
}

int run_kind_parse(const char *text, enum run_kind *ret_kind)
{
    for (int i = RUN_COMMAND; run_kind_text((enum run_kind)i)[0] != '\0'; i++) {
        if (text_equal(text, run_kind_text((enum run_kind)i))) {
            *ret_kind = (enum run_kind)i;
            return 0;
        }
    }
    return -1;
}

const char *run_language_text(enum run_language language)
{
    return language < RUN_LANGUAGE_MAX ? language_texts[language] : "";
}

int run_language_parse(const char *text, enum run_language *ret_language)
{
    for (int i = 0; i < RUN_LANGUAGE_MAX; i++) {
        if (text_equal(text, language_texts[i])) {
            *ret_language = (enum run_language)i;
            return 0;
        }
    }
    return -1;
}

const char *run_fault_text(enum run_fault fault)
{
    switch (fault) {
    case RUN_FAULT_NONE:
        return NULL;
    case RUN_FAULT_TIMEOUT:
        return "timeout";
    case RUN_FAULT_OOM:
        return "oom";
    case RUN_FAULT_ESCAPE_BLOCKED:
        return "escape_blocked";
    case RUN_FAULT_KILLED:
        return "killed";
    case RUN_FAULT_STARTUP_FAILED:
        return "startup_failed";
    case RUN_FAULT_OUTPUT_LIMIT:
        return "output_limit";
    case RUN_FAULT_DISK_FULL:
        return "disk_full";
    case RUN_FAULT_CANCELLED:
        return "cancelled";
    case RUN_FAULT_LOST:
        return "lost";
    }
    return NULL;
}

int run_fault_parse(const char *text, enum run_fault *ret_fault)
{
    if (text[0] == '\0') {
        *ret_fault = RUN_FAULT_NONE;
        return 0;
    }
    for (int i = RUN_FAULT_NONE + 1; run_fault_text((enum run_fault)i) != NULL; i++) {
        if (text_equal(text, run_fault_text((enum run_fault)i))) {
            *ret_fault = (enum run_fault)i;
            return 0;
        }
    }
    return -1;
}

void run_mount_add(struct run_mount **mounts, size_t *count, const char *source, const char *target,
                   bool writable)
{
    *mounts = alloc_resize(*mounts, *count + 1, sizeof(**mounts));
    (*mounts)[*count] = (struct run_mount){ .source = alloc_text(source),
                                            .target = alloc_text(target),
                                            .writable = writable };
    *count += 1;
}

void run_mounts_free(struct run_mount *mounts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(mounts[i].source);
        free(mounts[i].target);
    }
    free(mounts);
}

struct run_request *run_request_new(void)
{
    struct run_request *request = alloc_zero(1, sizeof(*request));

    request->track_files = true;
    return request;
}

static void free_files(struct run_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(files[i].path);
        free(files[i].data);
    }
    free(files);
}

static void free_secrets(struct run_file *secrets, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (secrets[i].data != NULL) {
            explicit_bzero(secrets[i].data, secrets[i].size);
        }
    }
    free_files(secrets, count);
}

void run_request_done(struct run_request *request)
{
    choice_done(&request->choice);
    strv_done(&request->command);
    strv_done(&request->env);
    strv_done(&request->fetch);
    free_files(request->files, request->file_count);
    free_secrets(request->secrets, request->secret_count);
    run_mounts_free(request->mounts, request->mount_count);
    free(request->code);
    free(request->stdin_data);
    free(request->cwd);
    free(request->workspace);
    free(request->id);
    free(request->cell_session);
    free(request->cell_kernel);
    free(request->environment);
    free(request->builds);
    strv_done(&request->preload);
    environments_use_end(request->environment_use);
    session_release(request->session, true);
}

void run_request_free(struct run_request *request)
{
    if (request != NULL) {
        run_request_done(request);
        free(request);
    }
}

void run_result_init(struct run_result *result)
{
    *result = (struct run_result){
        .usage = { .wall_ms = -1,
                   .queue_ms = -1,
                   .start_ms = -1,
                   .cpu_user_ms = -1,
                   .cpu_system_ms = -1,
                   .peak_memory_bytes = -1,
                   .peak_pids = -1,
                   .source = "cold" },
        .enforced = { .memory = "none", .pids = "none", .cpu = "none", .disk = "none" },
    };
}

void run_result_done(struct run_result *result)
{
    buf_done(&result->stdout_data);
    buf_done(&result->stderr_data);
    buf_done(&result->late_stdout);
    buf_done(&result->late_stderr);
    for (size_t i = 0; i < result->result_count; i++) {
        buf_done(&result->results[i]);
    }
    free(result->results);
    for (size_t i = 0; i < result->change_count; i++) {
        free(result->changes[i].path);
    }
    free(result->changes);
    for (size_t i = 0; i < result->fetched_count; i++) {
        free(result->fetched[i].path);
        free(result->fetched[i].data);
    }
    free(result->fetched);
    *result = (struct run_result){ 0 };
}
