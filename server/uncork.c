/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: take TCP_CORK off sockets that send a large file.
 * Owns: nothing.
 * Threads: event; the looks are the alarm's.
 * May include: lib/base.
 */
#include "server/uncork.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/container.h"

#define SIZE_MIN (UINT64_C(1) << 20)

static const unsigned look_after_ms[UNCORK_LOOKS] = { 2, 20, 200 };

static void look(struct alarm_entry *entry)
{
    const struct uncork_look *found = CONTAINER_OF(entry, struct uncork_look, entry);
    const int off = 0;

    (void)setsockopt(found->fd, IPPROTO_TCP, TCP_CORK, &off, sizeof(off));
}

void uncork_begin(struct uncork *uncork, struct alarm *alarm, int fd, uint64_t size)
{
    for (size_t i = 0; i < UNCORK_LOOKS && size >= SIZE_MIN; i++) {
        struct uncork_look *found = &uncork->looks[i];

        found->fd = fd;
        found->entry.ring = look;
        alarm_set(alarm, &found->entry, clock_deadline_after_ms(look_after_ms[i]));
    }
}

void uncork_end(struct uncork *uncork, struct alarm *alarm)
{
    for (size_t i = 0; i < UNCORK_LOOKS && uncork->looks[i].entry.ring != NULL; i++) {
        (void)alarm_clear(alarm, &uncork->looks[i].entry);
    }
}
