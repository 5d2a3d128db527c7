/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_session_make: POST /v1/sessions, and setup steps. Handlers; see route.c.
 */
#ifndef KERND_API_RESOURCE_SESSION_MAKE_H
#define KERND_API_RESOURCE_SESSION_MAKE_H

#include "api/api.h"

void resource_session_make(struct api_call *call);
void resource_session_make_setup(struct api_call *call);

#endif
