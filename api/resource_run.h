/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_run: run and runCode, alone or over the files of a session: one fresh box, one answer.
 */
#ifndef KERND_API_RESOURCE_RUN_H
#define KERND_API_RESOURCE_RUN_H

#include "api/api.h"

void resource_run_command(struct api_call *call);
void resource_run_code(struct api_call *call);
void resource_run_session_command(struct api_call *call);
void resource_run_session_code(struct api_call *call);

#endif
