/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: refuse malformed, smuggled and cross-site requests by their head alone.
 * Owns: nothing.
 * Threads: any; pure.
 * May include: api.h, lib/base.
 */
#include "server/http_guard.h"

#include <string.h>
#include <strings.h>

#include "lib/base/id.h"
#include "lib/base/text.h"

#define DIGITS "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define TOKEN_CHARACTERS DIGITS LETTERS "!#$%&'*+-.^_`|~"
#define LONGEST_METHOD 16
#define LONGEST_HOST 255

const char *http_guard_only(const struct http_guard_head *head, const char *name, size_t *ret_count)
{
    const char *value = NULL;
    size_t count = 0;

    for (size_t i = 0; i < head->header_count; i++) {
        if (strcasecmp(head->headers[i].name, name) == 0) {
            value = head->headers[i].value;
            count++;
        }
    }
    if (ret_count != NULL) {
        *ret_count = count;
    }
    return count == 1 ? value : NULL;
}

/* ---- request line and field syntax ---- */

static bool is_all_of(const char *text, const char *characters)
{
    return text[0] != '\0' && text[strspn(text, characters)] == '\0';
}

static bool has_control_byte(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;

        if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
            return true;
        }
    }
    return false;
}

static int check_request_line(const struct http_guard_head *head, struct err *err)
{
    const char *target = head->target;

    if (!is_all_of(head->method, LETTERS "-_") || strlen(head->method) > LONGEST_METHOD) {
        return err_set(err, ERR_BAD_REQUEST, 0, "the method is not a method");
    }
    if (target[0] != '/') {
        return err_set(err, ERR_BAD_REQUEST, 0, "the request target must start with a slash");
    }
    if (has_control_byte(target) || strpbrk(target, " \t#") != NULL) {
        return err_set(err, ERR_BAD_REQUEST, 0,
                       "the request target holds a blank, a '#' or a control byte");
    }
    if (!text_equal(head->version, "HTTP/1.1") && !text_equal(head->version, "HTTP/1.0")) {
        return err_set(err, ERR_BAD_REQUEST, 0, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    }
    return 0;
}

/*
 * libmicrohttpd 0.9.75 appends a folded line (RFC 9112, section 5.2) to the *name* of the field
 * before it: of "Content-Length: 25\r\n 0" it makes "Content-Length0: 25". A body whose frame is
 * lost like this would be read as the next request. So a name that goes on behind that of a frame
 * is refused, though it may be a name of its own: its strict levels read no differently, and where
 * name and value lie in memory tells them apart only until a fold falls on the end of its buffer,
 * which a client can bring about. Returns the frame's name, or NULL.
 */
static const char *folded_frame(const char *name)
{
    static const char *const frames[] = { "Content-Length", "Transfer-Encoding" };

    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        size_t length = strlen(frames[i]);

        if (strncasecmp(name, frames[i], length) == 0 && name[length] != '\0') {
            return frames[i];
        }
    }
    return NULL;
}

static int check_name(const char *name, size_t place, struct err *err)
{
    const char *frame = folded_frame(name);

    if (!is_all_of(name, TOKEN_CHARACTERS)) {
        return err_set(err, ERR_BAD_HEADER, 0, "header field %zu has a malformed name", place);
    }
    if (frame == NULL) {
        return 0;
    }
    (void)err_set(err, ERR_BAD_HEADER, 0,
                  "header field %zu is a folded %s, or has a name that begins like it", place,
                  frame);
    return err_remedy(err, "write each field on one line, and begin no other name with %s", frame);
}

static int check_fields(const struct http_guard_head *head, struct err *err)
{
    if (head->header_count > HTTP_GUARD_HEADERS_MAX) {
        return err_set(err, ERR_BAD_HEADER, 0, "more than %d header fields",
                       HTTP_GUARD_HEADERS_MAX);
    }
    for (size_t i = 0; i < head->header_count; i++) {
        if (check_name(head->headers[i].name, i + 1, err) < 0) {
            return -1;
        }
        if (has_control_byte(head->headers[i].value)) {
            return err_set(err, ERR_BAD_HEADER, 0, "header field %zu holds a control byte", i + 1);
        }
    }
    return 0;
}

/* ---- framing ---- */

static int check_length(const char *value, struct http_guard_framing *ret_framing, struct err *err)
{
    if (text_parse_u64(value, &ret_framing->length) < 0) {
        return err_set(err, ERR_BAD_HEADER, 0, "Content-Length is not a decimal number");
    }
    ret_framing->has_length = true;
    return 0;
}

static int check_framing(const struct http_guard_head *head, struct http_guard_framing *ret_framing,
                         struct err *err)
{
    size_t lengths = 0;
    size_t codings = 0;
    const char *length = http_guard_only(head, "Content-Length", &lengths);
    const char *coding = http_guard_only(head, "Transfer-Encoding", &codings);

    if (lengths > 1) {
        return err_set(err, ERR_BAD_HEADER, 0, "more than one Content-Length");
    }
    if (lengths > 0 && codings > 0) {
        return err_set(err, ERR_BAD_HEADER, 0, "Content-Length together with Transfer-Encoding");
    }
    if (codings > 1 || (coding != NULL && strcasecmp(coding, "chunked") != 0)) {
        return err_set(err, ERR_BAD_HEADER, 0, "the only Transfer-Encoding known here is chunked");
    }
    if (coding != NULL && text_equal(head->version, "HTTP/1.0")) {
        return err_set(err, ERR_BAD_HEADER, 0, "HTTP/1.0 has no Transfer-Encoding");
    }
    ret_framing->chunked = coding != NULL;
    return length == NULL ? 0 : check_length(length, ret_framing, err);
}

static int check_expectation(const struct http_guard_head *head,
                             struct http_guard_framing *ret_framing, struct err *err)
{
    size_t count = 0;
    const char *value = http_guard_only(head, "Expect", &count);

    if (count > 1 || (value != NULL && strcasecmp(value, "100-continue") != 0)) {
        return err_set(err, ERR_BAD_HEADER, 0, "the only expectation known here is 100-continue");
    }
    ret_framing->expects_continue = value != NULL;
    return 0;
}

/* ---- who is meant, and from where ---- */

/* Length of the name part of "name", "name:port", "[v6]" or "[v6]:port". */
static size_t name_length(const char *host)
{
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;

    return end != NULL ? (size_t)(end - host) + 1 : strcspn(host, ":");
}

static bool is_name(const char *host, size_t length, const char *name)
{
    return strlen(name) == length && strncasecmp(host, name, length) == 0;
}

/*
 * A browser leaves the port out only when it talks to port 80, so that a missing one can't come
 * from a page that reached this port.
 */
static bool is_right_port(const char *after_name, const struct http_guard_place *place)
{
    uint64_t port = 0;

    if (after_name[0] == '\0') {
        return true;
    }
    return after_name[0] == ':' && text_parse_u64(after_name + 1, &port) == 0 &&
           (!place->tcp || port == place->port);
}

static bool is_own_name(const char *host, size_t length, const struct http_guard_place *place)
{
    return is_name(host, length, "localhost") || is_name(host, length, "127.0.0.1") ||
           is_name(host, length, "[::1]") ||
           (place->address != NULL && is_name(host, length, place->address));
}

/* A configured name with a port stands for itself (a forwarded port, a proxy). */
static bool is_configured(const char *host, const struct http_guard_place *place)
{
    size_t length = name_length(host);

    for (size_t i = 0; place->hosts != NULL && i < place->hosts->count; i++) {
        const char *name = place->hosts->items[i];

        if (strcasecmp(host, name) == 0 ||
            (is_name(host, length, name) && is_right_port(host + length, place))) {
            return true;
        }
    }
    return false;
}

static int check_host(const struct http_guard_head *head, const struct http_guard_place *place,
                      struct err *err)
{
    size_t count = 0;
    const char *host = http_guard_only(head, "Host", &count);
    size_t length = host != NULL ? name_length(host) : 0;

    if (host == NULL) {
        return err_set(err, ERR_BAD_HEADER, 0,
                       count == 0 ? "no Host field" : "several Host fields");
    }
    if (strlen(host) <= LONGEST_HOST &&
        ((is_own_name(host, length, place) && is_right_port(host + length, place)) ||
         is_configured(host, place))) {
        return 0;
    }
    (void)err_set(err, ERR_HOST_DENIED, 0, "the Host field does not name this server");
    return err_remedy(err, "use the URL that kernd printed when it started, or allow the name "
                           "with allow_host in its configuration");
}

static int check_origin(const struct http_guard_head *head, struct err *err)
{
    size_t count = 0;
    const char *origin = http_guard_only(head, "Origin", &count);
    const char *host = http_guard_only(head, "Host", NULL);

    if (count == 0) {
        return 0;
    }
    if (origin != NULL && strncasecmp(origin, "http://", 7) == 0 &&
        strcasecmp(origin + 7, host) == 0) {
        return 0;
    }
    (void)err_set(err, ERR_ORIGIN_DENIED, 0, "the request comes from a page of another origin");
    return err_remedy(err, "call kernd from a program, not from a web page");
}

int http_guard_form(const struct http_guard_head *head, struct http_guard_framing *ret_framing,
                    struct err *err)
{
    struct http_guard_framing framing = { .chunked = false };

    if (check_request_line(head, err) < 0 || check_fields(head, err) < 0 ||
        check_framing(head, &framing, err) < 0 || check_expectation(head, &framing, err) < 0) {
        return -1;
    }
    *ret_framing = framing;
    return 0;
}

int http_guard_source(const struct http_guard_head *head, const struct http_guard_place *place,
                      struct err *err)
{
    return check_host(head, place, err) < 0 ? -1 : check_origin(head, err);
}

/* ---- media type ---- */

/* Is the type before any ';' this one? */
static bool is_type(const char *value, const char *type)
{
    size_t length = strcspn(value, "; \t");

    return strlen(type) == length && strncasecmp(value, type, length) == 0;
}

/* No parameter but charset=utf-8 (quoted or not); other parameters have no meaning and are let go.
 */
static bool is_utf8(const char *value)
{
    const char *charset = strcasestr(value, "charset=");

    if (charset == NULL) {
        return true;
    }
    charset += strlen("charset=");
    charset += charset[0] == '"' ? 1 : 0;
    return strncasecmp(charset, "utf-8", 5) == 0 && strchr("\"; \t", charset[5]) != NULL;
}

static int check_json_type(const char *value, struct err *err)
{
    if (value != NULL && is_type(value, "application/json") && is_utf8(value)) {
        return 0;
    }
    (void)err_set(err, ERR_UNSUPPORTED_MEDIA_TYPE, 0,
                  "the body of this request must be application/json");
    return err_remedy(err, "send the header Content-Type: application/json");
}

static int check_file_type(const char *value, struct err *err)
{
    static const char *const types[] = { "application/octet-stream", "application/x-tar",
                                         "application/tar",          "application/gzip",
                                         "application/x-gzip",       "application/tar+gzip",
                                         "application/zstd",         "application/x-xz",
                                         "application/x-bzip2" };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (value == NULL || is_type(value, types[i])) {
            return 0;
        }
    }
    (void)err_set(err, ERR_UNSUPPORTED_MEDIA_TYPE, 0,
                  "the body of this request is raw bytes, application/octet-stream");
    return err_remedy(err, "send the header Content-Type: application/octet-stream "
                           "(curl -T file does without it)");
}

int http_guard_media_type(const struct http_guard_head *head, enum api_body wanted, bool has_body,
                          struct err *err)
{
    size_t count = 0;
    size_t encodings = 0;
    const char *value = http_guard_only(head, "Content-Type", &count);

    (void)http_guard_only(head, "Content-Encoding", &encodings);
    if (encodings > 0) {
        return err_set(err, ERR_UNSUPPORTED_MEDIA_TYPE, 0, "a body must not be compressed");
    }
    if (count > 1) {
        return err_set(err, ERR_BAD_HEADER, 0, "more than one Content-Type");
    }
    if (wanted == API_BODY_NONE || (!has_body && count == 0)) {
        return 0;
    }
    return wanted == API_BODY_JSON ? check_json_type(value, err) : check_file_type(value, err);
}

const char *http_guard_trace(const struct http_guard_head *head)
{
    static const char form[] = "hh-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-hh";
    const char *value = http_guard_only(head, "traceparent", NULL);

    if (value == NULL || strlen(value) != strlen(form)) {
        return NULL;
    }
    for (size_t i = 0; form[i] != '\0'; i++) {
        bool fits = form[i] == '-' ? value[i] == '-' : strchr(DIGITS "abcdef", value[i]) != NULL;

        if (!fits) {
            return NULL;
        }
    }
    return value;
}

char *http_guard_request_id(const struct http_guard_head *head, char out[static HTTP_GUARD_ID_SIZE])
{
    const char *value = http_guard_only(head, "X-Request-Id", NULL);

    if (value != NULL && strlen(value) < HTTP_GUARD_ID_SIZE &&
        is_all_of(value, DIGITS LETTERS "._-")) {
        memcpy(out, value, strlen(value) + 1);
    } else {
        (void)id_make("req", out);
    }
    return out;
}
