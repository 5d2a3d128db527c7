/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_out: kernels as JSON. Pure; any thread.
 */
#ifndef KERND_API_KERNEL_OUT_H
#define KERND_API_KERNEL_OUT_H

#include "api/json_out.h"
#include "lib/sandbox/kernels.h"

void kernel_out_write(struct json_out *json, const struct kernels_view *view);

/* {"items": [...]}, oldest first. */
void kernel_out_list(struct json_out *json, const struct kernels_list *list);

#endif
