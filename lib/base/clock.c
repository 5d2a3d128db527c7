/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read the clocks and count with deadlines.
 * Owns: nothing; the only file that calls gmtime_r.
 * Threads: any.
 * May include: libc.
 */
#include "lib/base/clock.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

#define MS_PER_DAY INT64_C(86400000)

int64_t clock_mono_ns(void)
{
    struct timespec now = { 0 };

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

int64_t clock_wall_ms(void)
{
    struct timespec now = { 0 };

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / CLOCK_NS_PER_MS;
}

static int64_t after_ns(int64_t ns)
{
    int64_t deadline = 0;

    return __builtin_add_overflow(clock_mono_ns(), ns, &deadline) ? CLOCK_NEVER : deadline;
}

int64_t clock_deadline_after_s(double seconds)
{
    /* 9.2e9 s is the last round number whose nanoseconds fit in 63 bits. */
    if (seconds >= 9.2e9) {
        return CLOCK_NEVER;
    }
    /* Written so that NaN takes this way too: no time at all rather than no end. */
    if (!(seconds > 0)) {
        return clock_mono_ns();
    }
    return after_ns((int64_t)(seconds * 1e9));
}

int64_t clock_deadline_after_ms(int64_t ms)
{
    if (ms >= INT64_MAX / CLOCK_NS_PER_MS) {
        return CLOCK_NEVER;
    }
    return after_ns(ms <= 0 ? 0 : ms * CLOCK_NS_PER_MS);
}

int64_t clock_earlier(int64_t deadline_a, int64_t deadline_b)
{
    return deadline_a < deadline_b ? deadline_a : deadline_b;
}

bool clock_passed(int64_t deadline)
{
    return deadline != CLOCK_NEVER && clock_mono_ns() >= deadline;
}

int clock_poll_ms(int64_t deadline, int cap_ms)
{
    int64_t now = clock_mono_ns();
    int64_t cap = cap_ms < 0 ? INT_MAX : cap_ms;
    int64_t ms = 0;

    if (deadline == CLOCK_NEVER) {
        return cap_ms < 0 ? -1 : cap_ms;
    }
    if (deadline <= now) {
        return 0;
    }
    /* Up, so that a wake-up never finds the deadline still ahead; deadline - now can't overflow:
     * both are positive. */
    ms = (deadline - now - 1) / CLOCK_NS_PER_MS + 1;
    return (int)(ms < cap ? ms : cap);
}

double clock_ms_between(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) / 1e6;
}

/* So many digits, which is 20 times as fast as printf(3), and what stands behind them. */
static char *put_digits(char *to, unsigned value, size_t places, char behind)
{
    for (size_t i = places; i > 0; i--) {
        to[i - 1] = (char)('0' + (char)(value % 10));
        value /= 10;
    }
    to[places] = behind;
    return to + places + 1;
}

char *clock_format_utc(int64_t wall_ms, char out[static CLOCK_TEXT_SIZE])
{
    /* RFC 3339 has four digits for the year: from 0000-01-01 to 9999-12-31. */
    const int64_t first = INT64_C(-62167219200000);
    const int64_t last = INT64_C(253402300799999);
    int64_t ms = wall_ms < first ? first : wall_ms > last ? last : wall_ms;
    int64_t part = (ms % 1000 + 1000) % 1000;
    time_t seconds = (time_t)((ms - part) / 1000);
    struct tm utc = { 0 };
    char *at = out;

    (void)gmtime_r(&seconds, &utc);
    at = put_digits(at, (unsigned)(utc.tm_year + 1900), 4, '-');
    at = put_digits(at, (unsigned)(utc.tm_mon + 1), 2, '-');
    at = put_digits(at, (unsigned)utc.tm_mday, 2, 'T');
    at = put_digits(at, (unsigned)utc.tm_hour, 2, ':');
    at = put_digits(at, (unsigned)utc.tm_min, 2, ':');
    at = put_digits(at, (unsigned)utc.tm_sec, 2, '.');
    at = put_digits(at, (unsigned)part, 3, 'Z');
    *at = '\0';
    return out;
}

char *clock_format_http(int64_t wall_ms, char out[static CLOCK_HTTP_SIZE])
{
    static const char days[7][4] = { "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed" };
    static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    char utc[CLOCK_TEXT_SIZE]; /* 2026-11-29T18:37:41.123Z */
    int month;

    (void)clock_format_utc(wall_ms, utc);
    month = (utc[5] - '0') * 10 + utc[6] - '1';
    (void)snprintf(out, CLOCK_HTTP_SIZE, "%s, %.2s %s %.4s %.8s GMT",
                   days[wall_ms / MS_PER_DAY % 7], /* 1970 began on a Thursday */
                   utc + 8, months[month], utc, utc + 11);
    return out;
}
