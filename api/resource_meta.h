/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_meta: what the server tells of itself.
 */
#ifndef KERND_API_RESOURCE_META_H
#define KERND_API_RESOURCE_META_H

#include "api/api.h"

void resource_meta_health(struct api_call *call);       /* GET /healthz */
void resource_meta_ready(struct api_call *call);        /* GET /readyz */
void resource_meta_version(struct api_call *call);      /* GET /v1/version */
void resource_meta_capabilities(struct api_call *call); /* GET /v1/capabilities */
void resource_meta_stats(struct api_call *call);        /* GET /v1/stats */

#endif
