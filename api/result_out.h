/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_out: the result of an execution as JSON. Pure; any thread.
 */
#ifndef KERND_API_RESULT_OUT_H
#define KERND_API_RESULT_OUT_H

#include <stdbool.h>

#include "api/json_out.h"
#include "lib/base/err.h"
#include "lib/sandbox/run.h"

/* What is written; all borrowed. */
struct result_out {
    const char *id;
    const char *session_id; /* NULL: none */
    const char *kernel_id;  /* NULL: none */
    const struct run_request *request;
    const struct run_result *result;
    const struct err *failure; /* why the server could not do it; NULL: it did */
    /*
     * For the record: at most the first MiB of each stream ("cutStreams" tells where the rest is),
     * 8 MiB of rich results and a MiB of fetched files.
     */
    bool kept;
};

/* Writes one object, the result of a finished execution. What is unknown is null. */
void result_out_write(struct json_out *json, const struct result_out *what);

/* The same without what earlier events told: stdout, stderr, results, files. */
void result_out_write_end(struct json_out *json, const struct result_out *what);

#endif
