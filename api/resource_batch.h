/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_batch: POST /v1/batch: many runs for one call.
 */
#ifndef KERND_API_RESOURCE_BATCH_H
#define KERND_API_RESOURCE_BATCH_H

#include "api/api.h"

void resource_batch(struct api_call *call);

#endif
