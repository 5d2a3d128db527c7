/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write what is told of one item of a batch.
 * Owns: the names and the order of its fields.
 * Threads: any; an item belongs to one at a time.
 * May include: lib/base, lib/sandbox.
 */
#include "api/batch_internal.h"
#include "api/execution_out.h"
#include "api/problem.h"

static void open_line(struct batch_item *item, int status, struct json_out *json)
{
    json_out_init(json, &item->line);
    json_out_open(json, '{');
    json_out_key(json, "index");
    json_out_count(json, item->index);
    json_out_key(json, "status");
    json_out_whole(json, status);
}

void batch_line_problem(struct batch_item *item, const struct err *err)
{
    struct json_out json;

    open_line(item, problem_of(err->code)->status, &json);
    json_out_key(&json, "problem");
    json_out_open(&json, '{');
    problem_write_members(&json, err);
    json_out_close(&json, '}');
    json_out_close(&json, '}');
}

void batch_line_result(struct batch_item *item, const struct execution *execution)
{
    struct err err = ERR_INIT;
    const struct run_result *result = execution_result(execution, &err);
    struct json_out json;

    if (result == NULL) {
        batch_line_problem(item, &err);
        return;
    }
    open_line(item, 200, &json);
    json_out_key(&json, "result");
    execution_out_kept(&json, execution, result);
    json_out_close(&json, '}');
}

void batch_line_past(struct batch_item *item, const struct execution_view *view)
{
    struct json_out json;

    open_line(item, 200, &json);
    json_out_key(&json, "result");
    execution_out_past(&json, view);
    json_out_close(&json, '}');
}
