/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment_in: the body of POST /v1/environments. Pure; any thread.
 */
#ifndef KERND_API_ENVIRONMENT_IN_H
#define KERND_API_ENVIRONMENT_IN_H

#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/strv.h"
#include "lib/sandbox/limits.h"

struct run_in_base;

struct environment_in {
    char *name;   /* NULL: none */
    char *engine; /* NULL: the server's */
    char *setup;  /* NULL: none */
    struct strv preload;
    struct limits limits;
};
void environment_in_done(struct environment_in *in);

/* 0, or -1 BAD_JSON, UNKNOWN_FIELD, BAD_VALUE, NOT_SUPPORTED_HERE. */
int environment_in_make(const char *body, size_t size, const struct run_in_base *base,
                        struct environment_in *ret_in, struct err *err);

#endif
