/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota: tells callers what they may have under way at the same time, and how much of it is left.
 * The headers are those of the IETF draft "RateLimit header fields for HTTP"
 * (draft-ietf-httpapi-ratelimit-headers-10), whose unit "concurrent-requests" is what a fair queue
 * counts: nothing here is per time.
 */
#ifndef KERND_API_QUOTA_H
#define KERND_API_QUOTA_H

#include "api/api.h"

struct pool_share;

/* Adds the two headers to the reply. Pure. */
void quota_write(const struct pool_share *share, struct api_reply *reply);

/* The same with what this call's caller has now, if the call is one that waits in the queue. */
void quota_tell(struct api_call *call);

#endif
