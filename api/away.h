/* SPDX-License-Identifier: Apache-2.0 */
/*
 * away: the rest of a call on the lane of copies and archives, for work that takes longer than the
 * quick lane has time for.
 */
#ifndef KERND_API_AWAY_H
#define KERND_API_AWAY_H

#include "api/api.h"

/* work is called with the call, once, on a thread of that lane; or the call is answered: it is
 * full, or the server is shutting down. */
void away_run(struct api_call *call, void (*work)(struct api_call *call));

#endif
