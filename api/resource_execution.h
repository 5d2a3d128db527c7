/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_execution: /v1/executions: what runs and what ran. Handlers; see route.c.
 */
#ifndef KERND_API_RESOURCE_EXECUTION_H
#define KERND_API_RESOURCE_EXECUTION_H

#include "api/api.h"

void resource_execution_list(struct api_call *call);
void resource_execution_get(struct api_call *call);
void resource_execution_cancel(struct api_call *call);

void resource_execution_events(struct api_call *call);

void resource_execution_output_stdout(struct api_call *call);
void resource_execution_output_stderr(struct api_call *call);

void resource_execution_input_stdin(struct api_call *call);
void resource_execution_input_signal(struct api_call *call);

#endif
