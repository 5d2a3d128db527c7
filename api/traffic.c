/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: count requests.
 * Owns: the counters.
 * Threads: any.
 * May include: lib/base.
 */
#include "api/traffic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/metrics_out.h"
#include "api/route.h"
#include "lib/base/alloc.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define NS_PER_S 1e9

/* All that this server answers with; another one (0) is counted as the last. */
static const int statuses[] = { 200, 201, 202, 204, 206, 304, 400, 401, 403, 404, 405, 406, 408,
                                409, 410, 412, 413, 414, 415, 416, 422, 429, 500, 503, 507, 0 };

/* Seconds: from a warm cell's half millisecond to the usual deadline of a call. */
static const double bounds[] = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,    0.1,
                                 0.25,   0.5,   1,      2.5,   5,    10,    HUGE_VAL };

struct row {
    atomic_ullong by_status[COUNT_OF(statuses)];
    atomic_ullong by_time[COUNT_OF(bounds)]; /* each in one bucket alone */
    atomic_ullong time_ns;
};

struct traffic {
    atomic_ullong begun;
    atomic_ullong ended;
    atomic_ullong received;
    atomic_ullong sent;
    atomic_llong connections;
    struct row rows[]; /* of route_count() routes, and one for what found none */
};

struct traffic *traffic_new(void)
{
    return alloc_zero(1, sizeof(struct traffic) + (route_count() + 1) * sizeof(struct row));
}

void traffic_free(struct traffic *traffic)
{
    free(traffic);
}

static void add(atomic_ullong *counter, uint64_t more)
{
    (void)atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

void traffic_connections(struct traffic *traffic, int more)
{
    (void)atomic_fetch_add_explicit(&traffic->connections, more, memory_order_relaxed);
}

void traffic_begin(struct traffic *traffic)
{
    add(&traffic->begun, 1);
}

void traffic_end(struct traffic *traffic, const struct api_exchange *exchange)
{
    struct row *row = &traffic->rows[route_index(exchange->route)];
    size_t status = 0;
    size_t bucket = 0;

    while (status < COUNT_OF(statuses) - 1 && statuses[status] != exchange->status) {
        status++;
    }
    while (bucket < COUNT_OF(bounds) - 1 &&
           (double)exchange->duration_ns > bounds[bucket] * NS_PER_S) {
        bucket++;
    }
    add(&row->by_status[status], 1);
    add(&row->by_time[bucket], 1);
    add(&row->time_ns, (uint64_t)exchange->duration_ns);
    add(&traffic->received, exchange->received);
    add(&traffic->sent, exchange->sent);
    add(&traffic->ended, 1);
}

/* ---- telling ---- */

static double get(const atomic_ullong *counter)
{
    return (double)atomic_load_explicit(counter, memory_order_relaxed);
}

static void write_requests(const struct traffic *traffic, struct metrics_out *out)
{
    metrics_out_family(out, "kernd_http_requests_total", "counter",
                       "Requests that were answered, by pattern of the route.");
    for (size_t i = 0; i <= route_count(); i++) {
        for (size_t s = 0; s < COUNT_OF(statuses); s++) {
            const double count = get(&traffic->rows[i].by_status[s]);
            char status[16];

            (void)snprintf(status, sizeof(status), "%d", statuses[s]);
            if (count > 0) {
                metrics_out_value(out,
                                  (const char *const[]){ "method", route_method(i), "route",
                                                         route_pattern(i), "status", status, NULL },
                                  count);
            }
        }
    }
}

static void write_times(const struct traffic *traffic, struct metrics_out *out)
{
    metrics_out_family(out, "kernd_http_request_duration_seconds", "histogram",
                       "From the request line to the last byte of the answer.");
    for (size_t i = 0; i <= route_count(); i++) {
        const struct row *row = &traffic->rows[i];
        uint64_t at_most[COUNT_OF(bounds)];
        uint64_t sum = 0;

        for (size_t b = 0; b < COUNT_OF(bounds); b++) {
            sum += atomic_load_explicit(&row->by_time[b], memory_order_relaxed);
            at_most[b] = sum;
        }
        if (sum > 0) {
            metrics_out_histogram(
                out,
                (const char *const[]){ "method", route_method(i), "route", route_pattern(i), NULL },
                &(struct metrics_out_histogram){ bounds, at_most, COUNT_OF(bounds),
                                                 get(&row->time_ns) / NS_PER_S });
        }
    }
}

void traffic_write(const struct traffic *traffic, struct metrics_out *out)
{
    const double ended = get(&traffic->ended);
    const double under_way = get(&traffic->begun) - ended;

    write_requests(traffic, out);
    write_times(traffic, out);
    metrics_out_single(out, "kernd_http_requests_in_flight", "gauge",
                       "Requests begun and not answered to their last byte.",
                       under_way > 0 ? under_way : 0);
    metrics_out_single(out, "kernd_http_connections", "gauge", "Clients that are connected.",
                       (double)atomic_load(&traffic->connections));
    metrics_out_single(out, "kernd_http_request_bytes_total", "counter", "Bytes of request bodies.",
                       get(&traffic->received));
    metrics_out_single(out, "kernd_http_response_bytes_total", "counter",
                       "Bytes of answers' bodies.", get(&traffic->sent));
}
