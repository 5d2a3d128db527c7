/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a client sends as a target and in headers. First line: the target; second: the query;
 * third: a header value. What is accepted keeps its promises.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/decode.h"
#include "api/header.h"
#include "api/route.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition) {
        abort();
    }
}

static void check_path(const char *target)
{
    struct decode_path path;
    struct err err = ERR_INIT;
    size_t slashes = 0;

    if (decode_path(target, &path, &err) < 0) {
        require(err.code != ERR_NONE);
        return;
    }
    require(strlen(path.text) == path.size && path.size <= strlen(target));
    for (const char *at = path.text; *at != '\0'; at++) {
        slashes += *at == '/' ? 1 : 0;
    }
    require(slashes == (path.count == 0 ? 0 : path.count - 1));
    require(strstr(path.text, "//") == NULL && path.text[0] != '/');
    require(!text_equal(path.text, "..") && !text_starts_with(path.text, "../") &&
            strstr(path.text, "/../") == NULL && !text_ends_with(path.text, "/.."));
}

static void check_route(const char *target)
{
    static const char *const methods[] = { "GET", "HEAD", "POST", "DELETE", "OPTIONS" };

    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        char allow[64] = "";
        struct err err = ERR_INIT;
        const struct api_route *route =
            api_route_find(methods[i], target, allow, sizeof(allow), &err);

        require((route == NULL) == (err.code != ERR_NONE));
        require((err.code == ERR_METHOD_NOT_ALLOWED) == (route == NULL && allow[0] != '\0'));
    }
}

static void check_query(const char *raw)
{
    static const char *const known[] = { "a", "path", "limit", NULL };
    const struct decode_range range = { .min = 1, .max = 10 };
    struct decode_query query;
    uint64_t limit = 5;
    bool flag = false;

    if (decode_query(raw, known, &query, NULL) < 0) {
        return;
    }
    require(query.count <= 3);
    for (size_t i = 0; i < query.count; i++) {
        require(text_utf8_valid(query.parameters[i].value, strlen(query.parameters[i].value)));
    }
    (void)decode_query_count(&query, "limit", &range, &limit, NULL);
    (void)decode_query_bool(&query, "a", &flag, NULL);
    require(limit >= 1 && limit <= 10);
}

static void check_header(const char *value)
{
    static const char *const offered[] = { "application/json", "text/event-stream", NULL };
    struct header_preference preference;
    uint64_t from = 0;
    uint64_t length = 0;
    int accepted = header_accept(value, offered);

    require(accepted >= -1 && accepted < 2);
    header_prefer(value, &preference);
    if (header_range(value, 1000, &from, &length) == HEADER_RANGE_PART) {
        require(length > 0 && from < 1000 && from + length <= 1000);
    }
    (void)header_has_etag(value, "\"x\"", true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = alloc_copy(data, size);
    char *query = text + strcspn(text, "\n");
    char *header = NULL;

    query += *query == '\n' ? 1 : 0;
    header = query + strcspn(query, "\n");
    header += *header == '\n' ? 1 : 0;
    check_header(header);
    text[strcspn(text, "\n")] = '\0';
    query[strcspn(query, "\n")] = '\0';
    check_path(text);
    check_route(text);
    check_query(query);
    return 0;
}
