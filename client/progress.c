/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: tell of a long transfer while it lasts.
 * Owns: a line of the terminal.
 * Threads: main.
 * May include: client, lib/base.
 */
#include "client/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "lib/base/clock.h"

#define QUIET_NS (CLOCK_NS_PER_S / 2)
#define EVERY_NS (CLOCK_NS_PER_S / 10)
#define MIB 1048576.0

void progress_begin(struct progress *progress, const char *name, uint64_t total)
{
    const int64_t now = clock_mono_ns();

    *progress = (struct progress){
        .name = isatty(STDERR_FILENO) == 1 ? name : NULL, .total = total, .began = now, .told = now
    };
}

void progress_moved(struct progress *progress, uint64_t done)
{
    const int64_t now = clock_mono_ns();
    double seconds;

    if (progress->name == NULL || now - progress->began < QUIET_NS ||
        now - progress->told < EVERY_NS) {
        return;
    }
    seconds = (double)(now - progress->began) / (double)CLOCK_NS_PER_S;
    (void)fprintf(stderr, "\r\033[K%.40s  %3.0f%%  %.1f of %.1f MiB  %.1f MiB/s", progress->name,
                  progress->total == 0 ? 100.0 : 100.0 * (double)done / (double)progress->total,
                  (double)done / MIB, (double)progress->total / MIB, (double)done / MIB / seconds);
    (void)fflush(stderr);
    progress->told = now;
    progress->shown = true;
}

void progress_end(struct progress *progress)
{
    if (progress->shown) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
    }
}
