/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alarms ring once, in the order of their times, and not after they were cleared.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/base/alarm.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t rang = PTHREAD_COND_INITIALIZER;
static int order[8];
static int count;

struct bell {
    struct alarm_entry entry;
    int number;
};

static void ring(struct alarm_entry *entry)
{
    (void)pthread_mutex_lock(&lock);
    order[count++] = CONTAINER_OF(entry, struct bell, entry)->number;
    (void)pthread_cond_signal(&rang);
    (void)pthread_mutex_unlock(&lock);
}

static void wait_for(int wanted)
{
    (void)pthread_mutex_lock(&lock);
    while (count < wanted) {
        (void)pthread_cond_wait(&rang, &lock);
    }
    (void)pthread_mutex_unlock(&lock);
}

static void in_order_and_not_when_cleared(void **state)
{
    struct alarm *alarm = alarm_new(NULL);
    struct bell bells[3] = { { .number = 0 }, { .number = 1 }, { .number = 2 } };

    (void)state;
    assert_non_null(alarm);
    for (int i = 0; i < 3; i++) {
        bells[i].entry.ring = ring;
    }
    alarm_set(alarm, &bells[2].entry, clock_deadline_after_ms(60000));
    alarm_set(alarm, &bells[1].entry, clock_deadline_after_ms(40));
    alarm_set(alarm, &bells[0].entry, clock_deadline_after_ms(20));
    wait_for(2);
    assert_int_equal(order[0], 0);
    assert_int_equal(order[1], 1);
    assert_true(alarm_clear(alarm, &bells[2].entry));
    assert_false(alarm_clear(alarm, &bells[2].entry));
    assert_false(alarm_clear(alarm, &bells[0].entry));
    alarm_set(alarm, &bells[2].entry, clock_deadline_after_ms(60000));
    alarm_set(alarm, &bells[2].entry, clock_deadline_after_ms(0));
    wait_for(3);
    assert_int_equal(order[2], 2);
    alarm_free(alarm);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(in_order_and_not_when_cleared) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
