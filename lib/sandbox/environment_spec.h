/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment_spec: all that the content of an environment depends on, and the id made of it. Pure;
 * any thread.
 */
#ifndef KERND_SANDBOX_ENVIRONMENT_SPEC_H
#define KERND_SANDBOX_ENVIRONMENT_SPEC_H

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/strv.h"

#define ENVIRONMENT_SPEC_ID_SIZE 65
/* Setup and module names at their largest fit. */
#define ENVIRONMENT_SPEC_MAX ((size_t)256 * 1024)

/* Texts are owned, and may be NULL where there is none; only the setup may hold line ends. */
struct environment_spec {
    char *engine;
    char *image;
    char *python; /* versions of the interpreters that it was made with */
    char *node;
    struct strv preload; /* names of python modules */
    char *setup;         /* see setup_command */
};

void environment_spec_done(struct environment_spec *spec);

/* Appends the stored form: the same for the same content. 0, or -1 BAD_VALUE above the maximum. */
int environment_spec_encode(const struct environment_spec *spec, struct buf *out, struct err *err);

/* Reads what environment_spec_encode wrote. 0, or -1 INTERNAL. */
int environment_spec_decode(const char *text, struct environment_spec *ret_spec, struct err *err);

/* "env_" and 40 hex digits of the stored form's SHA-256. */
void environment_spec_id(const struct buf *encoded, char out[static ENVIRONMENT_SPEC_ID_SIZE]);

#endif
