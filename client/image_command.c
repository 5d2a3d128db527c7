/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: list images, have the server fetch one.
 * Owns: nothing.
 * Threads: main.
 * May include: client, api/json_out.h, lib/base.
 */
#include "client/image_command.h"

#include <unistd.h>

#include "client/ask.h"
#include "client/columns.h"
#include "client/compose.h"
#include "client/show.h"
#include "client/style.h"
#include "client/watch.h"
#include "lib/base/cleanup.h"
#include "lib/base/id.h"
#include "lib/base/text.h"

static int list(struct ask *ask)
{
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;
    CLEANUP_BUF struct buf out = BUF_INIT(ASK_BODY_MAX);
    struct columns columns = { .width = 3 };

    if (ask_show(ask, "GET", "/v1/images", NULL, &tree) < 0) {
        return -1;
    }
    if (tree == NULL) {
        return 0;
    }
    columns_add(&columns, "IMAGE");
    columns_add(&columns, "SIZE");
    columns_add(&columns, "AGE");
    for (size_t i = 0; i < json_view_count(tree, "items"); i++) {
        struct json_object *item = json_view_item(tree, "items", i);

        columns_add(&columns, json_view_text(item, "name"));
        columns_add_bytes(&columns, json_view_whole(item, "bytes", -1));
        columns_add_age(&columns, json_view_text(item, "since"));
    }
    columns_write(&columns, &out, 0, style_on(STDOUT_FILENO, STYLE_BOLD),
                  style_on(STDOUT_FILENO, STYLE_PLAIN));
    return ask_print(ask, out.data, out.size);
}

/* What kern says of its progress comes on standard error, as it says it. */
static int pull(struct ask *ask, const char *name)
{
    CLEANUP_BUF struct buf body = BUF_INIT(COMPOSE_MAX);
    struct show show = { .ask = NULL };
    char id[ID_SIZE];
    struct watch watch = { .ask = ask,
                           .target = "/v1/images/pull",
                           .body = &body,
                           .execution = id_make("exe", id),
                           .show = ask->json ? NULL : &show };
    struct json_out json;
    int result;

    json_out_init(&json, &body);
    json_out_open(&json, '{');
    compose_text(&json, "image", name);
    compose_text(&json, "id", id);
    json_out_close(&json, '}');
    show_begin(&show, ask);
    result = watch_run(&watch);
    show_done(&show);
    return result;
}

int image_command(const struct flags *options)
{
    const char *what = options->operands.count > 0 ? flags_operand(options, 0) : "list";
    const char *name = options->operands.count > 1 ? flags_operand(options, 1) : NULL;
    struct ask ask;
    int result = ask_begin(&ask, options);

    if (result < 0) {
        return ask_end(&ask, -1);
    }
    if (text_equal(what, "list") && name == NULL) {
        result = list(&ask);
    } else if (text_equal(what, "pull") && name != NULL) {
        result = pull(&ask, name);
    } else {
        result = ask_fail(&ask, "kernd image list, or kernd image pull NAME",
                          "this can't be done with images");
    }
    return ask_end(&ask, result);
}
