/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_archive: all files of a session at once, out and in. Handlers; see route.c.
 */
#ifndef KERND_API_RESOURCE_ARCHIVE_H
#define KERND_API_RESOURCE_ARCHIVE_H

#include "api/api.h"

void resource_archive_get(struct api_call *call);
void resource_archive_put(struct api_call *call);
void resource_archive_restore(struct api_call *call);

#endif
