/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_in: the bodies of run and runCode become a run_request. Pure; any thread.
 */
#ifndef KERND_API_RUN_IN_H
#define KERND_API_RUN_IN_H

#include <stddef.h>

#include "lib/base/err.h"
#include "lib/sandbox/limits.h"
#include "lib/sandbox/run.h"

#define RUN_IN_ARGUMENT_MAX \
    131071 /* bytes of one argument: MAX_ARG_STRLEN of Linux, less its NUL */
#define RUN_IN_ARGUMENTS_MAX ((size_t)1536 * 1024) /* of all; Linux has 2 MiB for argv and env */

#define RUN_IN_FETCH_MAX 1000 /* files in one answer */

/*
 * A fresh request for the caller to give away, limits not in the body taken from defaults. NULL
 * with err: BAD_JSON, UNKNOWN_FIELD, BAD_VALUE.
 */
struct run_request *run_in_decode(enum run_kind kind, const char *body, size_t size,
                                  const struct limits *defaults, struct err *err);

#endif
