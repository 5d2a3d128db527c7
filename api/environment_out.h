/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment_out: environments as JSON. Pure; any thread.
 */
#ifndef KERND_API_ENVIRONMENT_OUT_H
#define KERND_API_ENVIRONMENT_OUT_H

#include <stdbool.h>

#include "api/json_out.h"
#include "lib/sandbox/environments.h"

/* setup: also what it was built by, which may hold what is not everybody's. */
void environment_out_write(struct json_out *json, const struct environments_view *view, bool setup);
void environment_out_page(struct json_out *json, const struct environments_page *page, bool setup);

#endif
