/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a client sends as the body of run (first byte even) or runCode, or, from 0x80 on, of a
 * kernel (even) or a cell: refused with a 4xx code, or a request whose texts hold what the library
 * relies on. What one parse accepts is one value.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/json_in.h"
#include "api/json_scan.h"
#include "api/kernel_in.h"
#include "api/problem.h"
#include "api/run_in.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/id.h"
#include "lib/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition) {
        abort();
    }
}

static void check_request(const struct run_request *request)
{
    require(request->kind == RUN_CODE || request->command.count > 0);
    require(request->kind == RUN_COMMAND || request->code != NULL);
    require(request->code == NULL || strlen(request->code) == request->code_size);
    require(request->limits.timeout_s > 0 && request->limits.memory_mb > 0 &&
            request->limits.pids > 0 && request->limits.max_output_bytes > 0);
    for (size_t i = 0; i < request->env.count; i++) {
        require(strchr(request->env.items[i], '=') != NULL);
    }
    for (size_t i = 0; i < request->file_count; i++) {
        require(request->files[i].path[0] != '\0');
    }
}

static void check_refusal(const struct err *err)
{
    struct api_reply reply;
    struct json_object *problem = NULL;

    require(err->code == ERR_BAD_JSON || err->code == ERR_UNKNOWN_FIELD ||
            err->code == ERR_BAD_VALUE || err->code == ERR_BAD_PATH ||
            err->code == ERR_NOT_SUPPORTED_HERE);
    api_reply_init(&reply);
    problem_reply(&reply, err, "/v1/run", "r");
    problem = json_in_parse(reply.body.data, reply.body.size, NULL);
    require(problem != NULL);
    (void)json_object_put(problem);
    api_reply_done(&reply);
}

static void open_kernel(const char *body, size_t size)
{
    struct kernels_options options;
    struct err err = ERR_INIT;
    CLEANUP_FREE char *id = NULL;

    if (kernel_in_open(body, size, &options, &id, &err) < 0) {
        check_refusal(&err);
        return;
    }
    require(id == NULL || id_valid(id));
    require(options.language < RUN_LANGUAGE_MAX);
    require(options.timeout_s >= 0 && options.idle_timeout_s >= 0 && options.ttl_s >= 0);
}

static void run_cell(const char *body, size_t size)
{
    struct err err = ERR_INIT;
    struct run_request *request = kernel_in_cell(body, size, &err);

    if (request == NULL) {
        check_refusal(&err);
        return;
    }
    require(request->kind == RUN_CELL && request->code != NULL);
    require(strlen(request->code) == request->code_size);
    require(request->id == NULL || id_valid(request->id));
    require(!request->interactive && !request->detach && request->env.count == 0);
    run_request_free(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct limits defaults = {
        .timeout_s = 30, .memory_mb = 512, .pids = 256, .max_output_bytes = 1000
    };
    CLEANUP_FREE char *body = NULL;
    struct run_request *request = NULL;
    struct err err = ERR_INIT;

    if (size == 0) {
        return 0;
    }
    body = alloc_copy(data + 1, size - 1);
    if (data[0] >= 0x80) {
        (data[0] % 2 == 0 ? open_kernel : run_cell)(body, size - 1);
        return 0;
    }
    request = run_in_decode(data[0] % 2 == 0 ? RUN_COMMAND : RUN_CODE, body, size - 1,
                            &(struct run_in_base){ .defaults = &defaults }, &err);
    if (request == NULL) {
        check_refusal(&err);
        return 0;
    }
    check_request(request);
    require(text_utf8_valid(body, size - 1));
    run_request_free(request);
    return 0;
}
