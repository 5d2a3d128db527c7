/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock: monotonic time for deadlines, wall time for records. Any thread.
 *
 * A deadline is an absolute CLOCK_MONOTONIC time in nanoseconds passed down as a value;
 * CLOCK_NEVER has no end.
 */
#ifndef KERND_BASE_CLOCK_H
#define KERND_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLOCK_NEVER INT64_MAX
#define CLOCK_NS_PER_MS INT64_C(1000000)
#define CLOCK_NS_PER_S INT64_C(1000000000)

int64_t clock_mono_ns(void);
int64_t clock_wall_ms(void); /* milliseconds since 1970, UTC */

/* now + seconds, saturating at CLOCK_NEVER. */
int64_t clock_deadline_after_s(double seconds);
int64_t clock_deadline_after_ms(int64_t ms);

int64_t clock_earlier(int64_t deadline_a, int64_t deadline_b);
bool clock_passed(int64_t deadline);

/*
 * For poll(2): milliseconds until the deadline rounded up, 0 if passed, -1 for CLOCK_NEVER, at most
 * cap_ms (>= 0; -1: no cap).
 */
int clock_poll_ms(int64_t deadline, int cap_ms);

double clock_ms_between(int64_t from_ns, int64_t to_ns);

#define CLOCK_TEXT_SIZE 25
/* "2026-11-29T18:37:41.123Z" (RFC 3339, UTC) into out. Returns out. */
char *clock_format_utc(int64_t wall_ms, char out[static CLOCK_TEXT_SIZE]);

#define CLOCK_HTTP_SIZE 30
/* "Mon, 30 Jun 2025 23:59:59 GMT" (RFC 9110, section 5.6.7), in English whatever the locale; years
 * 1970 to 9999. Returns out. */
char *clock_format_http(int64_t wall_ms, char out[static CLOCK_HTTP_SIZE]);

#endif
