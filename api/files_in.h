/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_in: files, secrets and lists of paths in request bodies. Pure; any thread.
 */
#ifndef KERND_API_FILES_IN_H
#define KERND_API_FILES_IN_H

#include <json.h>
#include <stddef.h>

#include "lib/base/err.h"

#define FILES_IN_FETCH_MAX 1000 /* files in one answer */
#define FILES_IN_SECRETS_MAX 100
#define FILES_IN_SECRETS_BYTES_MAX ((size_t)1 << 20) /* of all values */

/* For rows of field tables; the target begins with a struct run_request. 0, or -1 BAD_VALUE ... */
int files_in_read(void *target, struct json_object *value, const char *pointer, struct err *err);
int files_in_read_fetch(void *target, struct json_object *value, const char *pointer,
                        struct err *err);
/* Messages never hold a value. */
int files_in_read_secrets(void *target, struct json_object *value, const char *pointer,
                          struct err *err);

#endif
