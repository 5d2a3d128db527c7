/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: get lists page by page, and print them.
 * Owns: nothing.
 * Threads: main.
 * May include: client, api/json_view.h, lib/base.
 */
#include "client/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/json_out.h"
#include "client/style.h"
#include "lib/base/alloc.h"
#include "lib/base/text.h"

#define PAGE "1000"

struct list {
    struct ask *ask;
    const struct pages *pages;
    struct columns columns;
    struct json_out json; /* with --json */
    struct buf out;
    uint64_t left; /* rows that may still come */
};

static void add(struct list *list, struct json_object *item)
{
    const char *id = json_view_text(item, "id");

    if (list->ask->json) {
        CLEANUP_BUF struct buf text = BUF_INIT(ASK_BODY_MAX);

        json_view_print(item, &text);
        json_out_raw(&list->json, text.data, text.size);
    } else if (flags_has(list->ask->options, "quiet")) {
        (void)buf_printf(&list->out, "%s\n", id == NULL ? "" : id);
    } else {
        list->pages->add_row(&list->columns, item);
    }
}

/* One page. *ret_cursor: where the next begins, to be freed; NULL: it was the last. */
static int take_page(struct list *list, const char *target, const char *cursor, char **ret_cursor)
{
    CLEANUP_BUF struct buf whole = BUF_INIT(ASK_TARGET_MAX);
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;
    const char *next;

    (void)buf_append_text(&whole, target);
    ask_query(&whole, "limit", PAGE);
    ask_query(&whole, "cursor", cursor);
    *ret_cursor = NULL;
    if (ask_call(list->ask, "GET", whole.data, NULL, &tree) < 0) {
        return -1;
    }
    for (size_t i = 0; i < json_view_count(tree, "items") && list->left > 0; i++, list->left--) {
        add(list, json_view_item(tree, "items", i));
    }
    next = list->left > 0 ? json_view_text(tree, "nextCursor") : NULL;
    *ret_cursor = alloc_text(next);
    return 0;
}

static int take_pages(struct list *list, const char *target)
{
    char *cursor = NULL;
    int result;

    do {
        char *next = NULL;

        result = take_page(list, target, cursor, &next);
        free(cursor);
        cursor = next;
    } while (result == 0 && cursor != NULL);
    free(cursor);
    return result;
}

static void begin(struct list *list)
{
    if (list->ask->json) {
        json_out_init(&list->json, &list->out);
        json_out_open(&list->json, '{');
        json_out_key(&list->json, "items");
        json_out_open(&list->json, '[');
        return;
    }
    while (list->pages->headings[list->columns.width] != NULL) {
        columns_add(&list->columns, list->pages->headings[list->columns.width++]);
    }
}

static void end(struct list *list)
{
    if (list->ask->json) {
        json_out_close(&list->json, ']');
        json_out_close(&list->json, '}');
        (void)buf_append_text(&list->out, "\n");
    } else if (!flags_has(list->ask->options, "quiet")) {
        columns_write(&list->columns, &list->out, 0, style_on(STDOUT_FILENO, STYLE_BOLD),
                      style_on(STDOUT_FILENO, STYLE_PLAIN));
    }
}

int pages_list(struct ask *ask, const char *const *targets, const struct pages *pages)
{
    const char *limit = flags_value(ask->options, "limit");
    struct list list = { .ask = ask,
                         .pages = pages,
                         .out = BUF_INIT(ASK_BODY_MAX),
                         .left = pages->limit > 0 ? pages->limit : UINT64_MAX };
    int result = 0;

    if (limit != NULL && text_parse_u64(limit, &list.left) < 0) {
        return ask_fail(ask, "give a number", "--limit %.40s is no number", limit);
    }
    begin(&list);
    for (; result == 0 && *targets != NULL; targets++) {
        result = take_pages(&list, *targets);
    }
    end(&list);
    result = result == 0 ? ask_print(ask, list.out.data, list.out.size) : result;
    strv_done(&list.columns.cells);
    buf_done(&list.out);
    return result;
}

int pages_remove(struct ask *ask, const char *kind)
{
    for (size_t i = 0; i < ask->options->operands.count; i++) {
        CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
        CLEANUP_JSON_VIEW struct json_object *tree = NULL;

        ask_path(&target, "v1", kind, ask->options->operands.items[i], NULL);
        if (ask_show(ask, "DELETE", target.data, NULL, &tree) < 0) {
            return -1;
        }
    }
    return 0;
}
