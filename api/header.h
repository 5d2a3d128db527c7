/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header: the values of request headers that steer a reply (RFC 9110, RFC 7240). Pure; any thread.
 */
#ifndef KERND_API_HEADER_H
#define KERND_API_HEADER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Accept: the index of the media type in offered (lower case, ended by NULL) that the client wants
 * most; among equals the first one offered. -1: none of them. An absent (NULL) or unreadable header
 * takes anything. Elements that are malformed are skipped (RFC 9110, section 12.5.1).
 */
int header_accept(const char *value, const char *const *offered);

/* Accept-Encoding: may the answer be compressed by gzip (RFC 9110, section 12.5.3)? NULL: no. */
bool header_takes_gzip(const char *value);

struct header_preference {
    bool respond_async;
    bool wait_given;
    uint64_t wait_s;
};

/* Prefer: what is not understood is ignored, as RFC 7240 section 2 wants it. NULL: no preference.
 */
void header_prefer(const char *value, struct header_preference *ret_preference);

enum header_range {
    HEADER_RANGE_WHOLE, /* absent, or a form that may be ignored: several ranges, other units */
    HEADER_RANGE_PART,  /* 206 */
    HEADER_RANGE_NOT_SATISFIABLE /* 416 */
};

/* Range, for content of this size (RFC 9110, section 14.2). The outputs are set for PART only. */
enum header_range header_range(const char *value, uint64_t size, uint64_t *ret_from,
                               uint64_t *ret_length);

/*
 * If-Match, If-None-Match: is etag (with its quotes) in the list, or is the list "*"? weak: compare
 * without the W/ (If-None-Match), else a weak one never matches (RFC 9110, section 8.8.3.2).
 */
bool header_has_etag(const char *list, const char *etag, bool weak);

#endif
