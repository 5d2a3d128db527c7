/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_run: POST /v1/run and POST /v1/runCode: one fresh box, one answer.
 */
#ifndef KERND_API_RESOURCE_RUN_H
#define KERND_API_RESOURCE_RUN_H

#include "api/api.h"

void resource_run_command(struct api_call *call);
void resource_run_code(struct api_call *call);

#endif
