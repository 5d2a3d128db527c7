/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_session: /v1/sessions: files that persist between calls. Handlers; see route.c.
 */
#ifndef KERND_API_RESOURCE_SESSION_H
#define KERND_API_RESOURCE_SESSION_H

#include "api/api.h"

void resource_session_list(struct api_call *call);
void resource_session_get(struct api_call *call);
void resource_session_patch(struct api_call *call);
void resource_session_delete(struct api_call *call);
void resource_session_keepalive(struct api_call *call);
void resource_session_fork(struct api_call *call);

#endif
