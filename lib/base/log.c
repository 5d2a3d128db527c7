/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: one escaped line on standard error for each event.
 * Owns: the level and the form, set before threads start; read-only after.
 * Threads: any.
 * May include: libc.
 */
#include "lib/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"

#define LONGEST_LINE ((size_t)16 * 1024)
#define LONGEST_VALUE ((size_t)2 * 1024)

static const char *const level_names[] = { "error", "warning", "info", "debug" };
static enum log_level highest_level = LOG_INFO;
static bool write_json = false;

void log_setup(enum log_level level, bool json)
{
    highest_level = level;
    write_json = json;
}

bool log_enabled(enum log_level level)
{
    return level <= highest_level;
}

int log_level_parse(const char *text, enum log_level *ret_level)
{
    for (unsigned i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
        if (text_equal(text, level_names[i])) {
            *ret_level = (enum log_level)i;
            return 0;
        }
    }
    return -1;
}

const char *log_level_name(enum log_level level)
{
    return level_names[level];
}

/* A control character: below U+0020, DEL, or U+0080 to U+009F (which terminals obey as well). */
static bool is_control(const unsigned char *bytes, size_t length)
{
    return bytes[0] < 0x20 || bytes[0] == 0x7F ||
           (length == 2 && bytes[0] == 0xC2 && bytes[1] < 0xA0);
}

static void append_escaped(struct buf *out, const unsigned char *bytes, size_t length, bool valid)
{
    if (length == 1 && (bytes[0] == '"' || bytes[0] == '\\')) {
        (void)buf_printf(out, "\\%c", (char)bytes[0]);
    } else if (bytes[0] == '\n' || bytes[0] == '\t' || bytes[0] == '\r') {
        (void)buf_printf(out, "\\%c", bytes[0] == '\n' ? 'n' : bytes[0] == '\t' ? 't' : 'r');
    } else if (valid && !is_control(bytes, length)) {
        (void)buf_append(out, bytes, length);
    } else if (write_json) {
        (void)buf_printf(out, "\\u%04x", !valid ? 0xFFFDU : bytes[length - 1] + 0U);
    } else {
        for (size_t i = 0; i < length; i++) {
            (void)buf_printf(out, "\\x%02x", bytes[i] + 0U);
        }
    }
}

/* The value between quotes; a long one is cut between characters and marked. */
static void append_quoted(struct buf *out, const char *value)
{
    const unsigned char *bytes = (const unsigned char *)value;
    size_t size = strnlen(value, LONGEST_VALUE + 1);
    size_t at = 0;
    bool valid = false;

    (void)buf_append_text(out, "\"");
    while (at < size && at < LONGEST_VALUE) {
        size_t step = text_utf8_step(bytes + at, size - at, &valid);

        append_escaped(out, bytes + at, step, valid);
        at += step;
    }
    (void)buf_append_text(out, at < size ? "...\"" : "\"");
}

/* Text that needs no quotes in the key=value form. */
static bool is_plain(const char *value)
{
    static const char plain[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "-_.:/@+,%~[]";
    size_t length = strnlen(value, LONGEST_VALUE + 1);

    return length > 0 && length <= LONGEST_VALUE && value[strspn(value, plain)] == '\0';
}

/* Adds the whole pair, or nothing when the line is full. */
static void append_pair(struct buf *line, const char *key, const char *value)
{
    CLEANUP_BUF struct buf pair = BUF_INIT(LONGEST_LINE);
    const bool is_number = key[0] == LOG_NUMBER[0];

    if (value == NULL) {
        return;
    }
    key += is_number ? 1 : 0;
    if (line->size > 0) {
        (void)buf_append_text(&pair, write_json ? "," : " ");
    }
    if (write_json) {
        (void)buf_printf(&pair, "\"%s\":", key);
    } else {
        (void)buf_printf(&pair, "%s=", key);
    }
    if (write_json ? is_number : is_plain(value)) {
        (void)buf_append_text(&pair, value);
    } else {
        append_quoted(&pair, value);
    }
    (void)buf_append(line, pair.data, pair.size);
}

/* A log that can't be written has nobody to tell. */
static void write_line(const char *data, size_t size)
{
    ssize_t put = 0;

    do {
        put = write(STDERR_FILENO, data, size);
    } while (put < 0 && errno == EINTR);
}

void log_line(enum log_level level, const char *event, ...)
{
    CLEANUP_BUF struct buf line = BUF_INIT(LONGEST_LINE);
    CLEANUP_BUF struct buf framed = BUF_INIT(LONGEST_LINE + 4);
    char now[CLOCK_TEXT_SIZE];
    va_list pairs;
    const char *key = NULL;
    int saved = errno;

    if (!log_enabled(level)) {
        return;
    }
    append_pair(&line, "time", clock_format_utc(clock_wall_ms(), now));
    append_pair(&line, "level", level_names[level]);
    append_pair(&line, "event", event);
    va_start(pairs, event);
    while ((key = va_arg(pairs, const char *)) != NULL) {
        append_pair(&line, key, va_arg(pairs, const char *));
    }
    va_end(pairs);
    (void)buf_printf(&framed, write_json ? "{%s}\n" : "%s\n", line.data);
    write_line(framed.data, framed.size);
    errno = saved;
}
