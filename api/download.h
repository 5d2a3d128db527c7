/* SPDX-License-Identifier: Apache-2.0 */
/*
 * download: answers with the bytes of a file, as the conditions and the range of the request want
 * it (RFC 9110, sections 13 and 14).
 */
#ifndef KERND_API_DOWNLOAD_H
#define KERND_API_DOWNLOAD_H

#include <stdint.h>

#include "api/api.h"

struct download {
    int file; /* open for reading; taken over */
    uint64_t size;
    const char *etag; /* with its quotes */
    const char *media_type;
    const char *name; /* for whoever saves it; any bytes */
};

/* 200, 206, 304, 412 or 416; finishes the call. */
void download_send(struct api_call *call, const struct download *download);

#endif
