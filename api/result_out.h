/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_out: the result of an execution as JSON. Pure; any thread.
 */
#ifndef KERND_API_RESULT_OUT_H
#define KERND_API_RESULT_OUT_H

#include "api/json_out.h"
#include "lib/sandbox/run.h"

/* Depth of JSON inside a result; deeper parts are left out. */
#define RESULT_OUT_DEPTH 128

/* Writes one object, the result of a finished execution. What is unknown is null. */
void result_out_write(struct json_out *json, const char *id, const struct run_request *request,
                      const struct run_result *result);

#endif
