/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text: strings and UTF-8 (RFC 3629). Pure functions, any thread.
 */
#ifndef KERND_BASE_TEXT_H
#define KERND_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

bool text_equal(const char *a, const char *b); /* NULL equals only NULL */
bool text_starts_with(const char *text, const char *prefix);
bool text_ends_with(const char *text, const char *suffix);

/* Compares size bytes in time that depends on size alone (for tokens). */
bool text_equal_constant_time(const void *a, const void *b, size_t size);

/* Strict decimal: digits only, whole string, no sign, no overflow. 0 or -1. */
int text_parse_u64(const char *text, uint64_t *ret_value);

/*
 * Strict finite decimal number ("1", "0.5", "-2"): digits, at most one point with digits on both
 * sides, no exponent, at most 63 characters; the process stays in the C locale. 0 or -1.
 */
int text_parse_double(const char *text, double *ret_value);

/*
 * Length of the first character of data (size > 0), or of the maximal ill-formed part that stands
 * there (1 to 3 bytes; Unicode 15, table 3-7); *ret_valid says which.
 */
size_t text_utf8_step(const void *data, size_t size, bool *ret_valid);

/* Is every byte part of well-formed UTF-8 (no surrogates, no overlong forms)? */
bool text_utf8_valid(const void *data, size_t size);

/*
 * Appends data to out as valid UTF-8: each maximal ill-formed part becomes one U+FFFD (Unicode 15,
 * section 3.9, "substitution of maximal subparts"). 0, or -1 and out as it was when it would pass
 * out's maximum.
 */
int text_utf8_repair(struct buf *out, const void *data, size_t size);

/*
 * How many bytes at the end of data (0 to 3) are the start of a character that is not complete
 * yet: a streaming reader keeps them for the next piece. 0 when the end is complete or ill-formed.
 */
size_t text_utf8_partial_tail(const void *data, size_t size);

/*
 * Appends standard base64 with padding (RFC 4648 section 4). 0, or -1 and out as it was when it
 * would pass out's maximum.
 */
int text_base64_encode(struct buf *out, const void *data, size_t size);

/*
 * Strict decode: padding needed, no blanks, unused bits zero (RFC 4648 section 3.5). 0, or -1 and
 * out as it was on bad input or when it would pass out's maximum.
 */
int text_base64_decode(struct buf *out, const char *text, size_t size);

#endif
