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

/*
 * One object: where an execution stands; when it is done and its document is there, all of the
 * result that is kept.
 */
void execution_out_view(struct json_out *json, const struct execution_view *view);

#endif
