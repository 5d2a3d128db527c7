/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution_out: executions as JSON: what callers are told, and what is kept of them. Pure; any
 * thread.
 */
#ifndef KERND_API_EXECUTION_OUT_H
#define KERND_API_EXECUTION_OUT_H

#include "api/json_out.h"
#include "lib/base/buf.h"
#include "lib/sandbox/execution.h"
#include "lib/sandbox/executions.h"

/* See sandbox_render. */
void execution_out_render(const struct execution *execution, struct buf *event_text,
                          struct buf *document);

/* One object: the whole result of an execution that is done, and has one. */
void execution_out_result(struct json_out *json, const struct execution *execution,
                          const struct run_result *result);

/* The same, as far as it is kept in the record. */
void execution_out_kept(struct json_out *json, const struct execution *execution,
                        const struct run_result *result);

/* One object: where an execution stands, as a list tells it. */
void execution_out_row(struct json_out *json, const struct execution_view *view);

/*
 * The same, and of one that is done the result as far as it is kept: without its document (it was
 * lost with the server, or has expired) the members are there, but null, empty and cut.
 */
void execution_out_view(struct json_out *json, const struct execution_view *view);

/*
 * One object: what the first answer to the same request was, as far as it is kept; else the view.
 */
void execution_out_past(struct json_out *json, const struct execution_view *view);

#endif
