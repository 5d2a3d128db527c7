/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_environment: /v1/environments: what sessions and calls start from. Handlers; see
 * route.c.
 */
#ifndef KERND_API_RESOURCE_ENVIRONMENT_H
#define KERND_API_RESOURCE_ENVIRONMENT_H

#include "api/api.h"

void resource_environment_make(struct api_call *call);
void resource_environment_list(struct api_call *call);
void resource_environment_get(struct api_call *call);
void resource_environment_log(struct api_call *call);
void resource_environment_delete(struct api_call *call);

#endif
