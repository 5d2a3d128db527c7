/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bodies of requests about sessions: the first byte says which, the rest is the body.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/session_in.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

static const struct limits defaults = {
    .timeout_s = 30, .memory_mb = 512, .pids = 256, .max_output_bytes = 1000
};

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* What was accepted can be stored and comes back the same. */
static void check_options(struct options *options)
{
    CLEANUP_BUF struct buf first = BUF_INIT(OPTIONS_ENCODED_MAX);
    CLEANUP_BUF struct buf second = BUF_INIT(OPTIONS_ENCODED_MAX);
    struct options back;

    if (options_encode(options, &first, NULL) == 0) {
        require(strlen(first.data) == first.size);
        require(options_decode(first.data, first.size, &back, NULL) == 0);
        require(options_encode(&back, &second, NULL) == 0);
        require(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
        options_done(&back);
    }
    options_done(options);
}

static void read_options(bool patch, const char *body, size_t size, struct err *err)
{
    struct run_in_base base = { .defaults = &defaults };
    CLEANUP_FREE char *id = NULL;
    struct options session;
    struct options options;

    options_init(&session, &defaults);
    strv_add(&session.env, "A=1");
    strv_add(&session.labels, "a=1");
    strv_add(&session.preload, "json");
    strv_add(&session.choice.profiles, "web");
    strv_add(&session.choice.cap_drop, "ALL");
    session.choice.engine = alloc_text("bubblewrap");
    session.environment = alloc_text("tools");
    session.workspace = alloc_text("/w");
    session.setup = alloc_text("true");
    run_mount_add(&session.mounts, &session.mount_count, "/s", "/t", true);
    base.session = patch ? &session : NULL;
    if ((patch ? session_in_patch(body, size, &base, &options, err)
               : session_in_create(body, size, &base, &id, &options, err)) == 0) {
        check_options(&options);
    } else {
        require(err->code != ERR_NONE && err->msg[0] != '\0');
    }
    options_done(&session);
}

static void read_small(unsigned kind, const char *body, size_t size, struct err *err)
{
    struct session_in_move move;
    CLEANUP_FREE char *text = NULL;

    switch (kind) {
    case 0:
        (void)session_in_fork(body, size, &text, err);
        break;
    case 1:
        (void)session_in_setup(body, size, &text, err);
        break;
    default:
        if (session_in_move(body, size, &move, err) == 0) {
            require(move.from != NULL && move.to != NULL);
            session_in_move_done(&move);
        }
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *body = NULL;
    struct err err = ERR_INIT;

    if (size == 0) {
        return 0;
    }
    body = alloc_copy(data + 1, size - 1);
    if (data[0] % 8 < 5) {
        read_options(data[0] % 2 != 0, body, size - 1, &err);
    } else {
        read_small(data[0] % 8U - 5, body, size - 1, &err);
    }
    return 0;
}
