/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the table of the fields of environments.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox, json-c.
 */
#include "api/environment_in.h"

#include <stdlib.h>

#include "api/engine_in.h"
#include "api/field.h"
#include "api/json_in.h"
#include "api/options_in.h"
#include "api/run_in.h"
#include "api/session_in.h"
#include "api/tag_in.h"
#include "lib/base/cleanup.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

void environment_in_done(struct environment_in *in)
{
    free(in->name);
    free(in->engine);
    free(in->setup);
    strv_done(&in->preload);
    *in = (struct environment_in){ .name = NULL };
}

static int read_name(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    return tag_in_id(value, pointer, &((struct options_in *)target)->id, err);
}

static int read_setup(void *target, struct json_object *value, const char *pointer, struct err *err)
{
    struct options_in *in = target;

    return session_in_read_line(value, pointer, &in->session.setup, err);
}

static const struct field build_fields[] = {
    { .name = "name", .type = FIELD_OTHER, .read = read_name },
    { .name = "engine",
      .type = FIELD_CHOICE,
      .choices = engine_in_names,
      .choose = engine_in_choose },
    { .name = "image", .type = FIELD_OTHER, .read = engine_in_read_image },
    { .name = "setup", .type = FIELD_OTHER, .read = read_setup },
    { .name = "preload", .type = FIELD_OTHER, .read = options_in_read_preload },
};
/* How long and how large the build may get is no part of what it makes. */
static const struct field_table build_table = { build_fields, COUNT_OF(build_fields),
                                                &run_in_limit_table };

/* An environment is what its setup made of the files of the server's own engine and image. */
static int refuse_image(const struct options_in *in, struct err *err)
{
    return in->run.choice.image == NULL
               ? 0
               : err_field(err, ERR_NOT_SUPPORTED_HERE, "/image",
                           "environments are made with the server's own files, of no other image");
}

static void take(struct options_in *in, struct environment_in *ret_in)
{
    *ret_in = (struct environment_in){ .name = CLEANUP_TAKE(in->id),
                                       .engine = CLEANUP_TAKE(in->run.choice.engine),
                                       .setup = CLEANUP_TAKE(in->session.setup),
                                       .preload = in->run.preload,
                                       .limits = in->run.limits };
    in->run.preload = (struct strv){ 0 };
}

int environment_in_make(const char *body, size_t size, const struct run_in_base *base,
                        struct environment_in *ret_in, struct err *err)
{
    CLEANUP_JSON struct json_object *object = json_in_parse(body, size, err);
    struct options_in in;
    int result = -1;

    if (object == NULL) {
        return -1;
    }
    options_in_init(&in, base);
    if (field_read(&build_table, object, &in, err) == 0 && refuse_image(&in, err) == 0 &&
        options_in_check(&in, err) == 0) {
        take(&in, ret_in);
        result = 0;
    }
    options_in_done(&in);
    return result;
}
