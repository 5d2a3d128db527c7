/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_snapshot: /v1/snapshots: the files of sessions, kept. Handlers; see route.c.
 */
#ifndef KERND_API_RESOURCE_SNAPSHOT_H
#define KERND_API_RESOURCE_SNAPSHOT_H

#include "api/api.h"

void resource_snapshot_list(struct api_call *call);
void resource_snapshot_get(struct api_call *call);
void resource_snapshot_delete(struct api_call *call);
void resource_snapshot_content(struct api_call *call);
void resource_snapshot_make(struct api_call *call);
void resource_snapshot_make_import(struct api_call *call);

#endif
