/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_file: the files of a session. Handlers; see route.c.
 */
#ifndef KERND_API_RESOURCE_FILE_H
#define KERND_API_RESOURCE_FILE_H

#include "api/api.h"

void resource_file_list(struct api_call *call);
void resource_file_get(struct api_call *call);
void resource_file_put(struct api_call *call);
void resource_file_delete(struct api_call *call);
void resource_file_move(struct api_call *call);

#endif
