/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits_out: the caps of a box as members of a JSON object: of a session, a result, and what the
 * server gives and allows. Not thread-safe, as json_out.
 */
#ifndef KERND_API_LIMITS_OUT_H
#define KERND_API_LIMITS_OUT_H

#include "api/json_out.h"
#include "lib/sandbox/limits.h"

/* Into the object that is open. No cap (0) is null. */
void limits_out_members(struct json_out *json, const struct limits *limits);

#endif
