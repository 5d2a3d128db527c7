/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: find files for a model, by name and by what is in them.
 * Owns: searches under way.
 * Threads: see mcp_search.h.
 * May include: lib/base, lib/sandbox.
 */
#include "api/mcp_search.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/mcp_exchange.h"
#include "api/mcp_file.h"
#include "api/mcp_result.h"
#include "api/mcp_session.h"
#include "api/resource.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/base/pool.h"
#include "lib/sandbox/sandbox.h"

#define LIST_DEFAULT 500
#define SEARCH_DEFAULT 100
#define TEXT_MAX ((size_t)40000)
#define LINE_MAX_SHOWN ((size_t)300)
#define SEARCHED_FILE_MAX ((size_t)4 << 20) /* larger ones are left out */
#define SEARCH_LIMIT_MS 20000
#define PAGE 1000
#define SNIFF_SIZE 8192

/* ---- both ---- */

static struct session_files_query query_of(const struct mcp_arguments *arguments, size_t limit)
{
    const struct mcp_arguments_text *path = &arguments->path;

    return (struct session_files_query){ .directory = path->data == NULL ? "" : path->data,
                                         .directory_size = path->size,
                                         .glob = arguments->glob,
                                         .recursive = !arguments->flat,
                                         .limit = limit };
}

/* ---- list ---- */

static void write_rows(struct mcp_result *result, const struct list *files)
{
    CLEANUP_BUF struct buf text = BUF_INIT(TEXT_MAX);
    size_t shown = 0;

    json_out_key(&result->json, "files");
    json_out_open(&result->json, '[');
    for (; shown < files->count; shown++) {
        const struct list_row *row = &files->rows[shown];
        const bool is_file = row->entry.type == ENTRY_FILE;

        if ((is_file ? buf_printf(&text, "%s (%" PRIu64 "B)\n", row->path, row->entry.size)
                     : buf_printf(&text, "%s (%s)\n", row->path,
                                  entry_type_text(row->entry.type))) < 0) {
            break;
        }
        json_out_open(&result->json, '{');
        json_out_key(&result->json, "path");
        json_out_string(&result->json, row->path);
        json_out_key(&result->json, "type");
        json_out_string(&result->json, entry_type_text(row->entry.type));
        json_out_key(&result->json, "size");
        json_out_count(&result->json, row->entry.size);
        json_out_close(&result->json, '}');
    }
    json_out_close(&result->json, ']');
    json_out_key(&result->json, "more");
    json_out_bool(&result->json, files->next != NULL || shown < files->count);
    mcp_result_text(result, text.size > 0 ? text.data : "(empty)", text.size > 0 ? text.size : 7);
    if (files->next != NULL || shown < files->count) {
        static const char note[] = "[there are more: name a path or a glob]";

        mcp_result_text(result, note, sizeof(note) - 1);
    }
}

void mcp_search_list(struct mcp_request *request, struct mcp_arguments *arguments)
{
    const struct session_files_query query =
        query_of(arguments, arguments->limit > 0 ? arguments->limit : LIST_DEFAULT);
    struct session_hold *hold = NULL;
    struct err err = ERR_INIT;
    struct mcp_result result;
    struct list files;

    if (mcp_session_hold(request, arguments, &hold, &err) < 0 ||
        session_files_list(hold, &query, &files, &err) < 0) {
        session_release(hold, false);
        mcp_arguments_free(arguments);
        mcp_result_fail(request, &err);
        return;
    }
    session_release(hold, false);
    mcp_arguments_free(arguments);
    mcp_result_init(&result, true);
    write_rows(&result, &files);
    session_files_list_done(&files);
    mcp_result_send(&result, request);
}

/* ---- search ---- */

struct search {
    struct pool_job job;
    struct mcp_request *request;
    struct mcp_arguments *arguments;
    struct session_hold *hold;
    int64_t deadline;
    uint64_t limit;
    uint64_t matches;
    size_t skipped; /* files that were too large, or not text */
    struct buf text;
    struct mcp_result result;
};

static void search_free(struct search *search)
{
    session_release(search->hold, false);
    mcp_arguments_free(search->arguments);
    buf_done(&search->text);
    free(search);
}

static char lower(char letter)
{
    if (letter >= 'A' && letter <= 'Z') {
        return (char)(letter - 'A' + 'a');
    }
    return letter;
}

static bool same_at(const char *text, const struct mcp_arguments_text *wanted)
{
    size_t at = 0;

    while (at < wanted->size && lower(text[at]) == lower(wanted->data[at])) {
        at++;
    }
    return at == wanted->size;
}

/* Upper case of ASCII is as good as lower case, where that was asked for. */
static const char *find(const char *from, const char *end, const struct mcp_arguments *arguments)
{
    const struct mcp_arguments_text *wanted = &arguments->old_text;

    if (!arguments->ignore_case) {
        return memmem(from, (size_t)(end - from), wanted->data, wanted->size);
    }
    for (; (size_t)(end - from) >= wanted->size; from++) {
        if (same_at(from, wanted)) {
            return from;
        }
    }
    return NULL;
}

static bool is_full(const struct search *search)
{
    return search->matches >= search->limit || search->text.size + LINE_MAX_SHOWN > TEXT_MAX;
}

static void add_match(struct search *search, const char *path, uint64_t number, const char *line,
                      size_t size)
{
    struct json_out *json = &search->result.json;

    size = size < LINE_MAX_SHOWN ? size : LINE_MAX_SHOWN;
    json_out_open(json, '{');
    json_out_key(json, "path");
    json_out_string(json, path);
    json_out_key(json, "line");
    json_out_count(json, number);
    json_out_key(json, "text");
    json_out_text(json, line, size);
    json_out_close(json, '}');
    (void)buf_printf(&search->text, "%s:%" PRIu64 ": %.*s\n", path, number, (int)size, line);
    search->matches++;
}

/* Each line that has the text, once. */
static void search_lines(struct search *search, const char *path, const struct buf *bytes)
{
    const char *end = bytes->data + bytes->size;
    const char *line = bytes->data;
    uint64_t number = 1;
    const char *match;

    while (line < end && !is_full(search) && (match = find(line, end, search->arguments)) != NULL) {
        const char *next = memchr(line, '\n', (size_t)(match - line));
        const char *stop;

        for (; next != NULL; next = memchr(line, '\n', (size_t)(match - line))) {
            line = next + 1;
            number++;
        }
        stop = memchr(match, '\n', (size_t)(end - match));
        add_match(search, path, number, line, (size_t)((stop == NULL ? end : stop) - line));
        line = stop == NULL ? end : stop + 1;
        number++;
    }
}

static void search_file(struct search *search, const struct list_row *row)
{
    const struct mcp_arguments_text path = { .data = row->path, .size = strlen(row->path) };
    CLEANUP_BUF struct buf bytes = BUF_INIT(SEARCHED_FILE_MAX);
    struct entry entry;

    if (row->entry.type != ENTRY_FILE || row->entry.size == 0) {
        return;
    }
    if (mcp_file_load(search->hold, &path, &bytes, &entry, NULL) < 0 || bytes.size == 0 ||
        memchr(bytes.data, '\0', bytes.size < SNIFF_SIZE ? bytes.size : SNIFF_SIZE) != NULL) {
        search->skipped++;
        return;
    }
    search_lines(search, row->path, &bytes);
}

/* 0 when all was looked at, 1 when it ended before, -1. */
static int search_pages(struct search *search, struct err *err)
{
    struct session_files_query query = query_of(search->arguments, PAGE);
    char *after = NULL;
    struct list files;
    bool more = true;

    while (more) {
        query.after = after;
        if (session_files_list(search->hold, &query, &files, err) < 0) {
            free(after);
            return -1;
        }
        for (size_t i = 0; i < files.count; i++) {
            if (is_full(search) || clock_passed(search->deadline) ||
                mcp_exchange_is_cancelled(search->request)) {
                session_files_list_done(&files);
                free(after);
                return 1;
            }
            search_file(search, &files.rows[i]);
        }
        free(after);
        after = alloc_text(files.next);
        more = after != NULL;
        session_files_list_done(&files);
    }
    return 0;
}

static void answer_search(struct search *search, bool more)
{
    struct mcp_result *result = &search->result;

    json_out_close(&result->json, ']');
    json_out_key(&result->json, "more");
    json_out_bool(&result->json, more);
    json_out_key(&result->json, "skipped_files");
    json_out_count(&result->json, search->skipped);
    if (search->matches == 0) {
        (void)buf_append_text(&search->text, "(no match)\n");
    }
    if (more) {
        (void)buf_append_text(&search->text, "[there may be more: name a path or a glob]\n");
    }
    if (search->skipped > 0) {
        (void)buf_printf(&search->text, "[%zu files left out: binary, or too large]\n",
                         search->skipped);
    }
    mcp_result_text(result, search->text.data, search->text.size);
    mcp_result_send(result, search->request);
    search_free(search);
}

static void run_search(struct pool_job *job)
{
    struct search *search = CONTAINER_OF(job, struct search, job);
    struct err err = ERR_INIT;
    int state;

    mcp_result_init(&search->result, true);
    json_out_key(&search->result.json, "matches");
    json_out_open(&search->result.json, '[');
    search->deadline = clock_deadline_after_ms(SEARCH_LIMIT_MS);
    state = search_pages(search, &err);
    if (state >= 0) {
        answer_search(search, state == 1);
        return;
    }
    buf_done(&search->result.content);
    buf_done(&search->result.structured);
    mcp_result_fail(search->request, &err);
    search_free(search);
}

static void drop_search(struct pool_job *job)
{
    struct search *search = CONTAINER_OF(job, struct search, job);
    struct err err = ERR_INIT;

    (void)err_set(&err, ERR_SHUTTING_DOWN, 0, "the server stops");
    mcp_result_fail(search->request, &err);
    search_free(search);
}

void mcp_search_text(struct mcp_request *request, struct mcp_arguments *arguments)
{
    struct search *search = alloc_zero(1, sizeof(*search));
    struct err err = ERR_INIT;

    search->job = (struct pool_job){ .run = run_search,
                                     .drop = drop_search,
                                     .caller = request->actor.caller };
    search->request = request;
    search->arguments = arguments;
    search->limit = arguments->limit > 0 ? arguments->limit : SEARCH_DEFAULT;
    search->text = BUF_INIT(TEXT_MAX + 1024);
    if (mcp_session_hold(request, arguments, &search->hold, &err) < 0 ||
        sandbox_work(request->api->sandbox, &search->job, &err) < 0) {
        mcp_result_fail(request, &err);
        search_free(search);
    }
}
