/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alarm: one thread that calls functions at their time. Any thread sets and clears.
 *
 * The functions run on the alarm's thread, one after another, and must be quick.
 */
#ifndef KERND_BASE_ALARM_H
#define KERND_BASE_ALARM_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

struct alarm;

/* Embedded by the caller; zeroed before its first use. */
struct alarm_entry {
    void (*ring)(struct alarm_entry *entry);
    int64_t deadline; /* the alarm's own from here */
    struct alarm_entry *next;
    bool set;
};

/* NULL with err when the thread can't be made. */
struct alarm *alarm_new(struct err *err);
/* Nothing rings any more; entries still set are forgotten. NULL is fine. */
void alarm_free(struct alarm *alarm);

/* Rings once at the deadline (clock.h), unless cleared. Setting a set entry moves it. */
void alarm_set(struct alarm *alarm, struct alarm_entry *entry, int64_t deadline);

/*
 * True: it will not ring. False: it was not set, or has rung; a ring under way on another thread is
 * waited for, so that after this the entry may be freed. Must not be called from ring itself.
 */
bool alarm_clear(struct alarm *alarm, struct alarm_entry *entry);

#endif
