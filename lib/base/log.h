/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: lines of key=value text (or JSON objects) on standard error. Any thread; one write(2) a
 * line.
 *
 * lib and api log at LOG_DEBUG only; server logs each failed exchange once. Never content, tokens,
 * code or environment values. Control bytes, quotes and bytes that are not UTF-8 are escaped.
 */
#ifndef KERND_BASE_LOG_H
#define KERND_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* Call before the first thread starts. */
void log_setup(enum log_level level, bool json);
bool log_enabled(enum log_level level);

/* 0 and the level for "error", "warning", "info", "debug"; else -1. */
int log_level_parse(const char *text, enum log_level *ret_level);

/* Its name, static. */
const char *log_level_name(enum log_level level);

/*
 * log_line(LOG_INFO, "listening", "url", url, "socket", path, NULL): an event name, then pairs of
 * key and text value (a NULL value is left out), ended by a NULL key. The text behind a key like
 * LOG_NUMBER "ms" is a decimal number, and in JSON stands as one.
 */
#define LOG_NUMBER "#"
void log_line(enum log_level level, const char *event, ...) __attribute__((sentinel));

#endif
