/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_token: handlers of further tokens, for full callers alone (the route table says so).
 */
#ifndef KERND_API_RESOURCE_TOKEN_H
#define KERND_API_RESOURCE_TOKEN_H

#include "api/api.h"

void resource_token_make(struct api_call *call);
void resource_token_list(struct api_call *call);
void resource_token_revoke(struct api_call *call);

#endif
