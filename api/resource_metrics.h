/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_metrics: GET /metrics. A handler; see route.c.
 */
#ifndef KERND_API_RESOURCE_METRICS_H
#define KERND_API_RESOURCE_METRICS_H

#include "api/api.h"

void resource_metrics(struct api_call *call);

#endif
