/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any set of headers: what the guard lets through has one meaning. The input is a request line and
 * fields, one a line.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "server/http_guard.h"
#include "server/token.h"

#define FIELDS (HTTP_GUARD_HEADERS_MAX + 4)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* Cuts the text at the first of these characters; returns what is behind, "" if none is there. */
static char *cut(char *text, const char *characters)
{
    char *end = text + strcspn(text, characters);

    if (*end == '\0') {
        return end;
    }
    *end = '\0';
    return end + 1;
}

static size_t count_of(const struct http_guard_head *head, const char *name)
{
    size_t count = 0;

    (void)http_guard_only(head, name, &count);
    return count;
}

static void check_form(const struct http_guard_head *head)
{
    struct http_guard_framing framing;
    struct err err = ERR_INIT;

    if (http_guard_form(head, &framing, &err) < 0) {
        require(err.code == ERR_BAD_REQUEST || err.code == ERR_BAD_HEADER);
        return;
    }
    require(err.code == ERR_NONE && head->target[0] == '/');
    require(count_of(head, "Content-Length") + count_of(head, "Transfer-Encoding") <= 1);
    require(framing.has_length == (count_of(head, "Content-Length") == 1));
    require(framing.chunked == (count_of(head, "Transfer-Encoding") == 1));
    require(!(framing.has_length && framing.chunked));
    for (size_t i = 0; i < head->header_count; i++) {
        require(strpbrk(head->headers[i].name, " :\t") == NULL);
        /* Nothing that only looks like it (a folded line does) says where the body ends. */
        require(strncasecmp(head->headers[i].name, "Content-Length", 14) != 0 ||
                head->headers[i].name[14] == '\0');
    }
}

static void check_source(const struct http_guard_head *head)
{
    const struct http_guard_place place = { .tcp = true, .port = 5376, .address = "127.0.0.1" };
    const char *host = http_guard_only(head, "Host", NULL);

    if (http_guard_source(head, &place, NULL) < 0) {
        return;
    }
    require(count_of(head, "Host") == 1 && count_of(head, "Origin") <= 1);
    require(strncasecmp(host, "localhost", 9) == 0 || strncmp(host, "127.0.0.1", 9) == 0 ||
            strncmp(host, "[::1]", 5) == 0);
    host += host[0] == '[' ? 5 : 9;
    require(host[0] == '\0' || host[0] == ':');
}

static void check_rest(const struct http_guard_head *head)
{
    static const struct token token = { .text = "0123456789abcdef0123456789abcdef", .length = 32 };
    struct api_identity identity;
    char id[HTTP_GUARD_ID_SIZE];

    (void)http_guard_media_type(head, API_BODY_JSON, true, NULL);
    (void)http_guard_media_type(head, API_BODY_FILE, true, NULL);
    require(strlen(http_guard_request_id(head, id)) < sizeof(id));
    if (token_check(&token, NULL, head, false, &identity, NULL) == 0) {
        require(count_of(head, "Authorization") + count_of(head, "X-API-Key") == 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = alloc_copy(data, size);
    struct api_header headers[FIELDS];
    struct http_guard_head head = { .method = text, .headers = headers };
    char *fields = cut(text, "\n");
    char *target = cut(text, " ");

    head.version = cut(target, " ");
    head.target = target;
    while (*fields != '\0' && head.header_count < FIELDS) {
        char *next = cut(fields, "\n");
        char *value = cut(fields, ":");

        headers[head.header_count].name = fields;
        headers[head.header_count++].value = value + strspn(value, " ");
        fields = next;
    }
    check_form(&head);
    check_source(&head);
    check_rest(&head);
    free(text);
    return 0;
}
