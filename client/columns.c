/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: line up tables.
 * Owns: nothing.
 * Threads: main.
 * May include: client, lib/base.
 */
#include "client/columns.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/text.h"

#define WIDTH_MAX 16
#define MINUTE 60
#define HOUR 3600
#define DAY 86400

void columns_add(struct columns *columns, const char *cell)
{
    char *kept;

    strv_add(&columns->cells, cell == NULL || cell[0] == '\0' ? "-" : cell);
    kept = columns->cells.items[columns->cells.count - 1];
    for (; *kept != '\0'; kept++) {
        if ((unsigned char)*kept < ' ' || *kept == '\x7f') {
            *kept = '?';
        }
    }
}

void columns_add_whole(struct columns *columns, int64_t value)
{
    strv_addf(&columns->cells, "%lld", (long long)value);
}

void columns_add_bytes(struct columns *columns, int64_t bytes)
{
    static const char units[] = "BKMGT";
    double value = (double)bytes;
    size_t unit = 0;

    if (bytes < 0) {
        columns_add(columns, NULL);
        return;
    }
    while (value >= 1024 && units[unit + 1] != '\0') {
        value /= 1024;
        unit++;
    }
    strv_addf(&columns->cells, unit == 0 || value >= 100 ? "%.0f%c" : "%.1f%c", value, units[unit]);
}

void columns_add_age(struct columns *columns, const char *moment)
{
    struct tm parts = { .tm_year = 0 };
    long long seconds;

    if (moment == NULL || strptime(moment, "%Y-%m-%dT%H:%M:%S", &parts) == NULL) {
        columns_add(columns, NULL);
        return;
    }
    seconds = (long long)(clock_wall_ms() / 1000) - (long long)timegm(&parts);
    if (seconds < MINUTE) {
        strv_addf(&columns->cells, "%llds", seconds < 0 ? 0 : seconds);
    } else if (seconds < HOUR) {
        strv_addf(&columns->cells, "%lldm", seconds / MINUTE);
    } else if (seconds < DAY) {
        strv_addf(&columns->cells, "%lldh", seconds / HOUR);
    } else {
        strv_addf(&columns->cells, "%lldd", seconds / DAY);
    }
}

/* In characters, one column each. */
static size_t length_of(const char *cell)
{
    size_t count = 0;

    for (; *cell != '\0'; cell++) {
        count += ((unsigned char)*cell & 0xc0) != 0x80;
    }
    return count;
}

/* Cut behind so many characters. */
static void append_cut(struct buf *out, const char *line, size_t most)
{
    size_t size = 0;
    size_t count = 0;

    while (line[size] != '\0') {
        count += ((unsigned char)line[size] & 0xc0) != 0x80;
        if (most > 0 && count > most) {
            break;
        }
        size++;
    }
    (void)buf_append(out, line, size);
}

static void write_row(const struct columns *columns, size_t row, const size_t *widths,
                      struct buf *line)
{
    for (size_t i = 0; i < columns->width; i++) {
        const char *cell = columns->cells.items[row * columns->width + i];
        const bool last = i + 1 == columns->width;

        (void)buf_append_text(line, cell);
        for (size_t k = length_of(cell); !last && k < widths[i] + 2; k++) {
            (void)buf_append_text(line, " ");
        }
    }
}

void columns_write(struct columns *columns, struct buf *out, unsigned most, const char *bold,
                   const char *plain)
{
    size_t widths[WIDTH_MAX] = { 0 };

    for (size_t i = 0; i < columns->cells.count; i++) {
        const size_t length = length_of(columns->cells.items[i]);
        size_t *width = &widths[i % columns->width];

        *width = length > *width ? length : *width;
    }
    for (size_t row = 0; row < columns->cells.count / columns->width; row++) {
        CLEANUP_BUF struct buf line = BUF_INIT((size_t)64 << 10);

        write_row(columns, row, widths, &line);
        (void)buf_append_text(out, row == 0 ? bold : "");
        append_cut(out, line.data == NULL ? "" : line.data, most);
        (void)buf_append_text(out, row == 0 ? plain : "");
        (void)buf_append_text(out, "\n");
    }
    strv_done(&columns->cells);
}
