/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tag_in: chosen ids and labels in request bodies. Pure; any thread.
 */
#ifndef KERND_API_TAG_IN_H
#define KERND_API_TAG_IN_H

#include <json.h>

#include "lib/base/err.h"
#include "lib/base/strv.h"

/* An id or name that the caller chose, a fresh string. 0, or -1 BAD_VALUE. */
int tag_in_id(struct json_object *value, const char *pointer, char **ret_id, struct err *err);

/* {"key": "value"} as "key=value" in place of what is in labels. 0, or -1 BAD_VALUE. */
int tag_in_labels(struct json_object *value, const char *pointer, struct strv *labels,
                  struct err *err);

#endif
