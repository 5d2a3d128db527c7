/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_guard: what a request's head must look like before anything is done for it.
 *
 * libmicrohttpd 0.9.75 accepts much that RFC 9112 forbids (two lengths, a length beside chunks,
 * unknown transfer codings, several Host fields, folded lines), and a browser may be talked into
 * sending requests here for a foreign page. What can't be seen from here is a NUL byte in a value,
 * which ends there for libmicrohttpd, too: what is refused and what is done follow one reading. No
 * browser sends one, and a proxy in front has to refuse it (RFC 9110, section 5.5).
 * Pure functions of the head; any thread.
 */
#ifndef KERND_SERVER_HTTP_GUARD_H
#define KERND_SERVER_HTTP_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "lib/base/err.h"
#include "lib/base/strv.h"

#define HTTP_GUARD_HEADERS_MAX 128
#define HTTP_GUARD_ID_SIZE 65 /* a request id of 64 characters and a NUL */

/* A head as received; nothing is decoded. */
struct http_guard_head {
    const char *method;
    const char *target; /* with the query */
    const char *version;
    const struct api_header *headers;
    size_t header_count;
};

/* Where the connection arrived. */
struct http_guard_place {
    bool tcp;                 /* false: a Unix socket, where names and ports mean nothing */
    uint16_t port;            /* of the listening socket */
    const char *address;      /* its literal as in a URL, "127.0.0.1" or "[::1]"; NULL: none */
    const struct strv *hosts; /* configured further names, "name" or "name:port"; may be NULL */
};

/* How the body is framed. */
struct http_guard_framing {
    bool chunked;
    bool has_length;
    uint64_t length;       /* 0 unless has_length */
    bool expects_continue; /* waits for "100 Continue" before it sends the body */
};

/*
 * Method, target and version are well formed; every field name is a token (RFC 9110 section 5.6.2)
 * and no value holds a control byte; at most one Content-Length, Transfer-Encoding absent or
 * exactly "chunked", never both, neither of them folded; Expect absent or "100-continue". 0, or -1
 * with BAD_REQUEST or BAD_HEADER: where such a request ends is in doubt, so its connection must be
 * closed.
 */
int http_guard_form(const struct http_guard_head *head, struct http_guard_framing *ret_framing,
                    struct err *err);

/*
 * Exactly one Host, that names this server (else a page could reach it by a name that it controls,
 * DNS rebinding), and no foreign Origin. 0, or -1 with BAD_HEADER, HOST_DENIED or ORIGIN_DENIED.
 */
int http_guard_source(const struct http_guard_head *head, const struct http_guard_place *place,
                      struct err *err);

/*
 * The Content-Type against what the route reads. JSON: application/json, with no charset but UTF-8;
 * a body must have it. No Content-Encoding. Files: octet-stream, tar, what compresses it, or none
 * at all (curl -T sends none; a foreign page can't PUT without a preflight). 0, or -1
 * UNSUPPORTED_MEDIA_TYPE.
 */
int http_guard_media_type(const struct http_guard_head *head, enum api_body wanted, bool has_body,
                          struct err *err);

/*
 * The client's X-Request-Id when there is exactly one and it is 1 to 64 of [A-Za-z0-9._-], else a
 * fresh one. Returns out.
 */
char *http_guard_request_id(const struct http_guard_head *head,
                            char out[static HTTP_GUARD_ID_SIZE]);

/* The W3C trace context of the client (traceparent, version 00) if it is well formed, else NULL. */
const char *http_guard_trace(const struct http_guard_head *head);

/* Value of the only field of that name (case-insensitive); NULL when there is none or several. */
const char *http_guard_only(const struct http_guard_head *head, const char *name,
                            size_t *ret_count);

#endif
