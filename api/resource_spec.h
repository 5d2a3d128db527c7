/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_spec: GET /openapi.yaml and /openapi.json.
 */
#ifndef KERND_API_RESOURCE_SPEC_H
#define KERND_API_RESOURCE_SPEC_H

#include "api/api.h"

void resource_spec_yaml(struct api_call *call);
void resource_spec_json(struct api_call *call);

#endif
