/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_run: run and runCode, alone or over the files of a session: one fresh box, one answer.
 */
#ifndef KERND_API_RESOURCE_RUN_H
#define KERND_API_RESOURCE_RUN_H

#include "api/api.h"
#include "lib/sandbox/run.h"

void resource_run_command(struct api_call *call);
void resource_run_code(struct api_call *call);
void resource_run_session_command(struct api_call *call);
void resource_run_session_code(struct api_call *call);

/* Submits and answers with the result. Takes the request over, and the call. */
void resource_run_submit(struct api_call *call, struct run_request *request);

#endif
