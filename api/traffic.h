/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traffic: what went over HTTP since the start, by route and status. Counters without locks, for
 * any thread; whoever reads sees them one after another while others count on.
 */
#ifndef KERND_API_TRAFFIC_H
#define KERND_API_TRAFFIC_H

#include "api/api.h"

struct metrics_out;
struct traffic;

struct traffic *traffic_new(void);
void traffic_free(struct traffic *traffic);

void traffic_connections(struct traffic *traffic, int more);
void traffic_begin(struct traffic *traffic);
void traffic_end(struct traffic *traffic, const struct api_exchange *exchange);

void traffic_write(const struct traffic *traffic, struct metrics_out *out);

#endif
