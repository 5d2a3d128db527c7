/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: what requests of the Model Context Protocol share.
 * Owns: the list of requests under way; the text of the tools.
 * Threads: any. Lock order: this list before an exchange.
 * May include: lib/base, lib/sandbox.
 */
#include "api/mcp_live.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "api/mcp_exchange.h"
#include "api/mcp_request.h"
#include "api/resource.h"
#include "lib/base/alloc.h"
#include "lib/base/container.h"
#include "lib/base/text.h"

#define TOOLS_MAX ((size_t)1 << 20)

extern const char asset_mcp_tools_json[];
extern const char asset_mcp_tools_json_end[];
extern const char asset_mcp_diagnostics_json[];
extern const char asset_mcp_diagnostics_json_end[];

struct mcp_live {
    pthread_mutex_t lock;
    struct mcp_live_entry *first;
    struct buf tools;
    bool test_tools; /* are among them */
};

/* Copies JSON without the blanks between its tokens. */
static void compact(struct buf *out, const char *text, const char *end)
{
    bool quoted = false;

    for (const char *at = text; at < end; at++) {
        if (quoted && *at == '\\') {
            (void)buf_append(out, at, 2);
            at++;
            continue;
        }
        quoted = quoted != (*at == '"');
        if (quoted || (*at != ' ' && *at != '\n')) {
            (void)buf_append(out, at, 1);
        }
    }
}

static void add_test_tools(struct mcp_live *live)
{
    buf_truncate(&live->tools, live->tools.size - 1);
    (void)buf_append_text(&live->tools, ",");
    compact(&live->tools, asset_mcp_diagnostics_json + 1, asset_mcp_diagnostics_json_end);
}

struct mcp_live *mcp_live_new(bool test_tools)
{
    struct mcp_live *live = alloc_zero(1, sizeof(*live));

    (void)pthread_mutex_init(&live->lock, NULL);
    live->tools = BUF_INIT(TOOLS_MAX);
    compact(&live->tools, asset_mcp_tools_json, asset_mcp_tools_json_end);
    live->test_tools = test_tools;
    if (test_tools) {
        add_test_tools(live);
    }
    return live;
}

void mcp_live_free(struct mcp_live *live)
{
    if (live != NULL) {
        buf_done(&live->tools);
        (void)pthread_mutex_destroy(&live->lock);
        free(live);
    }
}

bool mcp_live_has_test_tools(const struct mcp_live *live)
{
    return live->test_tools;
}

const struct buf *mcp_live_tools(const struct mcp_live *live)
{
    return &live->tools;
}

void mcp_live_add(struct mcp_live *live, struct mcp_request *request)
{
    struct mcp_live_entry *entry = &request->live;

    (void)pthread_mutex_lock(&live->lock);
    entry->next = live->first;
    entry->place = &live->first;
    if (entry->next != NULL) {
        entry->next->place = &entry->next;
    }
    live->first = entry;
    (void)pthread_mutex_unlock(&live->lock);
}

void mcp_live_remove(struct mcp_live *live, struct mcp_request *request)
{
    struct mcp_live_entry *entry = &request->live;

    (void)pthread_mutex_lock(&live->lock);
    if (entry->place != NULL) {
        *entry->place = entry->next;
        if (entry->next != NULL) {
            entry->next->place = entry->place;
        }
        entry->place = NULL;
    }
    (void)pthread_mutex_unlock(&live->lock);
}

static bool matches(const struct mcp_request *request, const struct mcp_live_key *key)
{
    return request->actor.caller == key->caller && text_equal(request->client, key->client) &&
           text_equal(request->message.id, key->id);
}

/* The next match, marked as cancelled, as what it runs; false: there is none (any more). */
static bool take_match(struct mcp_live *live, const struct mcp_live_key *key,
                       struct execution **ret_execution)
{
    bool found = false;

    (void)pthread_mutex_lock(&live->lock);
    for (struct mcp_live_entry *at = live->first; at != NULL && !found; at = at->next) {
        struct mcp_request *request = CONTAINER_OF(at, struct mcp_request, live);

        if (matches(request, key)) {
            found = mcp_exchange_mark(request, ret_execution);
        }
    }
    (void)pthread_mutex_unlock(&live->lock);
    return found;
}

void mcp_live_cancel(struct mcp_live *live, const struct mcp_live_key *key)
{
    struct execution *execution = NULL;

    /* Outside the lock: ending what waits in a queue answers its request within the call. */
    while (take_match(live, key, &execution)) {
        if (execution != NULL) {
            execution_cancel(execution, CANCEL_REQUESTED);
            execution_unref(execution);
        }
    }
}
