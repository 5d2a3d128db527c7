/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_in: the bodies of requests about kernels. Pure; any thread.
 *
 * Both functions: 0 or what is asked for, or -1 or NULL with BAD_JSON, UNKNOWN_FIELD, BAD_VALUE.
 */
#ifndef KERND_API_KERNEL_IN_H
#define KERND_API_KERNEL_IN_H

#include <stddef.h>

#include "lib/base/err.h"
#include "lib/sandbox/kernels.h"
#include "lib/sandbox/run.h"

/* A body may be empty. *ret_id: the caller's own id, to be freed, or NULL. */
int kernel_in_open(const char *body, size_t size, struct kernels_options *ret_options,
                   char **ret_id, struct err *err);

/* A fresh request of kind RUN_CELL; limits that are not named are 0. */
struct run_request *kernel_in_cell(const char *body, size_t size, struct err *err);

#endif
