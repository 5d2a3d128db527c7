/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make, find and revoke tokens.
 * Owns: what is in memory of the table of tokens.
 * Threads: any.
 * May include: lib.
 */
#include "lib/sandbox/tokens.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "lib/base/id.h"
#include "lib/base/text.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/store/rows_token.h"

#define PREFIX "kernd_" /* so that a token that was committed somewhere can be recognised */
#define RANDOM_BYTES 32
#define MS_PER_S 1000.0

struct kept {
    struct tokens_view view;
    char sha256[HASH_HEX_SIZE];
};

struct tokens {
    struct store *store;
    pthread_mutex_t lock; /* innermost: never held across a call of the store */
    struct kept *items;   /* the oldest first */
    size_t count;
};

static void keep(void *context, const struct rows_token *row)
{
    struct tokens *tokens = context;
    struct kept *kept;

    tokens->items = alloc_resize(tokens->items, tokens->count + 1, sizeof(*tokens->items));
    kept = &tokens->items[tokens->count++];
    *kept = (struct kept){ .view = { .full = text_equal(row->scope, "full"),
                                     .caller = row->caller,
                                     .created_ms = row->created_ms,
                                     .expires_ms = row->expires_ms } };
    (void)snprintf(kept->view.id, sizeof(kept->view.id), "%s", row->id);
    (void)snprintf(kept->view.name, sizeof(kept->view.name), "%s", row->name);
    (void)snprintf(kept->sha256, sizeof(kept->sha256), "%s", row->sha256);
}

struct tokens *tokens_open(struct store *store, struct err *err)
{
    struct tokens *tokens = alloc_zero(1, sizeof(*tokens));

    (void)pthread_mutex_init(&tokens->lock, NULL);
    tokens->store = store;
    if (rows_token_each(store, keep, tokens, err) < 0) {
        tokens_close(tokens);
        return NULL;
    }
    return tokens;
}

void tokens_close(struct tokens *tokens)
{
    if (tokens != NULL) {
        (void)pthread_mutex_destroy(&tokens->lock);
        free(tokens->items);
        free(tokens);
    }
}

/* ---- making ---- */

static int check_name(const char *name, struct err *err)
{
    const size_t size = strlen(name);

    if (size == 0 || size > TOKENS_NAME_MAX || !text_utf8_valid(name, size)) {
        return err_field(err, ERR_BAD_VALUE, "/name", "/name must have 1 to %d bytes of text",
                         TOKENS_NAME_MAX);
    }
    for (const char *at = name; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            return err_field(err, ERR_BAD_VALUE, "/name", "/name holds a control character");
        }
    }
    return 0;
}

static void fill_row(struct rows_token *row, const struct tokens_wish *wish,
                     char text[static TOKENS_TEXT_SIZE])
{
    unsigned char random[RANDOM_BYTES];

    *row = (struct rows_token){ .created_ms = clock_wall_ms() };
    row->expires_ms =
        wish->lifetime_s > 0 ? row->created_ms + (int64_t)(wish->lifetime_s * MS_PER_S) : 0;
    (void)id_make("tok", row->id);
    (void)snprintf(row->name, sizeof(row->name), "%s", wish->name != NULL ? wish->name : "");
    (void)snprintf(row->scope, sizeof(row->scope), "%s", wish->full ? "full" : "run");
    id_random(random, sizeof(random));
    (void)snprintf(text, TOKENS_TEXT_SIZE, PREFIX);
    id_hex(random, sizeof(random), text + strlen(PREFIX));
    explicit_bzero(random, sizeof(random));
    hash_sha256_hex(text, strlen(text), row->sha256);
    /* Processes are even keys, the main token is 1. */
    id_random(&row->caller, sizeof(row->caller));
    row->caller |= (UINT64_C(1) << 32) | 1;
}

int tokens_make(struct sandbox *sandbox, const struct tokens_wish *wish,
                struct tokens_view *ret_view, char ret_text[static TOKENS_TEXT_SIZE],
                struct err *err)
{
    struct tokens *tokens = sandbox->tokens;
    struct rows_token row;
    size_t count;

    if (wish->name != NULL && check_name(wish->name, err) < 0) {
        return -1;
    }
    (void)pthread_mutex_lock(&tokens->lock);
    count = tokens->count;
    (void)pthread_mutex_unlock(&tokens->lock);
    if (count >= TOKENS_COUNT_MAX) {
        (void)err_set(err, ERR_CONFLICT, 0, "there are %d tokens already", TOKENS_COUNT_MAX);
        return err_remedy(err, "revoke those that nobody needs: kernd token list, kernd token "
                               "revoke ID");
    }
    fill_row(&row, wish, ret_text);
    if (rows_token_insert(tokens->store, &row, err) < 0) {
        explicit_bzero(ret_text, TOKENS_TEXT_SIZE);
        return -1;
    }
    (void)pthread_mutex_lock(&tokens->lock);
    keep(tokens, &row);
    *ret_view = tokens->items[tokens->count - 1].view;
    (void)pthread_mutex_unlock(&tokens->lock);
    return 0;
}

/* ---- using ---- */

struct tokens_view *tokens_list(struct sandbox *sandbox, size_t *ret_count)
{
    struct tokens *tokens = sandbox->tokens;
    struct tokens_view *views;

    (void)pthread_mutex_lock(&tokens->lock);
    views = alloc_zero(tokens->count + 1, sizeof(*views));
    for (size_t i = 0; i < tokens->count; i++) {
        views[i] = tokens->items[i].view;
    }
    *ret_count = tokens->count;
    (void)pthread_mutex_unlock(&tokens->lock);
    return views;
}

static void forget(struct tokens *tokens, const char *id)
{
    size_t left = 0;

    (void)pthread_mutex_lock(&tokens->lock);
    for (size_t i = 0; i < tokens->count; i++) {
        if (!text_equal(tokens->items[i].view.id, id)) {
            tokens->items[left++] = tokens->items[i];
        }
    }
    tokens->count = left;
    (void)pthread_mutex_unlock(&tokens->lock);
}

int tokens_revoke(struct sandbox *sandbox, const char *id, struct err *err)
{
    if (rows_token_delete(sandbox->tokens->store, id, err) < 0) {
        return -1;
    }
    forget(sandbox->tokens, id);
    return 0;
}

bool tokens_find(struct sandbox *sandbox, const char *text, struct tokens_view *ret_view)
{
    struct tokens *tokens = sandbox->tokens;
    char sha256[HASH_HEX_SIZE];
    const struct kept *found = NULL;

    if (!text_starts_with(text, PREFIX) || strlen(text) != TOKENS_TEXT_SIZE - 1) {
        return false;
    }
    hash_sha256_hex(text, strlen(text), sha256);
    (void)pthread_mutex_lock(&tokens->lock);
    for (size_t i = 0; i < tokens->count && found == NULL; i++) {
        const struct kept *kept = &tokens->items[i];

        /* Where two hashes begin to differ tells nothing of the token: no constant time needed. */
        if (memcmp(kept->sha256, sha256, sizeof(sha256)) == 0) {
            found = kept;
        }
    }
    if (found != NULL) {
        *ret_view = found->view;
    }
    (void)pthread_mutex_unlock(&tokens->lock);
    return found != NULL && (ret_view->expires_ms == 0 || ret_view->expires_ms > clock_wall_ms());
}
