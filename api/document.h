/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document: answers that are the same for everybody and change seldom: they have an ETag, and go
 * out compressed to a client that takes gzip. Nothing secret, and nothing that a caller chose, may
 * stand in one: the size of what is compressed together would tell of it (the BREACH attack).
 */
#ifndef KERND_API_DOCUMENT_H
#define KERND_API_DOCUMENT_H

#include "api/api.h"
#include "api/json_out.h"

/* Starts one that is JSON, for the caller to fill. */
void document_begin(struct api_call *call, struct json_out *ret_json);

/*
 * Finishes a call whose reply has its body and Content-Type: adds ETag, Cache-Control and Vary, and
 * answers 304 or compresses as the request says.
 */
void document_finish(struct api_call *call);

#endif
