/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment_spec: five lines, and the setup behind them.
 * Owns: the memory inside a spec.
 * Threads: any, one at a time per value.
 * May include: lib/base.
 */
#include "lib/sandbox/environment_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/hash.h"

#define ID_DIGITS 40

void environment_spec_done(struct environment_spec *spec)
{
    free(spec->engine);
    free(spec->image);
    free(spec->python);
    free(spec->node);
    free(spec->setup);
    strv_done(&spec->preload);
    *spec = (struct environment_spec){ .engine = NULL };
}

static int put_line(struct buf *out, const char *text)
{
    return buf_printf(out, "%s\n", text == NULL ? "" : text);
}

static int put_names(struct buf *out, const struct strv *names)
{
    for (size_t i = 0; i < names->count; i++) {
        if (buf_printf(out, "%s%s", i == 0 ? "" : ",", names->items[i]) < 0) {
            return -1;
        }
    }
    return put_line(out, NULL);
}

int environment_spec_encode(const struct environment_spec *spec, struct buf *out, struct err *err)
{
    if (put_line(out, spec->engine) < 0 || put_line(out, spec->image) < 0 ||
        put_line(out, spec->python) < 0 || put_line(out, spec->node) < 0 ||
        put_names(out, &spec->preload) < 0 ||
        buf_append_text(out, spec->setup == NULL ? "" : spec->setup) < 0) {
        return err_set(err, ERR_BAD_VALUE, 0, "the environment is described by more than %zu bytes",
                       out->max);
    }
    return 0;
}

/* The line at *text, which moves behind it; NULL when it is empty or there is none. */
static char *take_line(const char **text)
{
    size_t size = strcspn(*text, "\n");
    char *line = size > 0 ? alloc_copy(*text, size) : NULL;

    *text += size + ((*text)[size] == '\n' ? 1 : 0);
    return line;
}

static void take_names(const char **text, struct strv *names)
{
    CLEANUP_FREE char *line = take_line(text);
    const char *at = line == NULL ? "" : line;

    while (*at != '\0') {
        size_t size = strcspn(at, ",");

        strv_addf(names, "%.*s", (int)size, at);
        at += size + (at[size] == ',' ? 1 : 0);
    }
}

int environment_spec_decode(const char *text, struct environment_spec *ret_spec, struct err *err)
{
    struct environment_spec spec = { .engine = take_line(&text) };

    if (spec.engine == NULL) {
        return err_set(err, ERR_INTERNAL, 0, "a stored environment can't be read");
    }
    spec.image = take_line(&text);
    spec.python = take_line(&text);
    spec.node = take_line(&text);
    take_names(&text, &spec.preload);
    spec.setup = *text == '\0' ? NULL : alloc_text(text);
    *ret_spec = spec;
    return 0;
}

void environment_spec_id(const struct buf *encoded, char out[static ENVIRONMENT_SPEC_ID_SIZE])
{
    char digest[HASH_HEX_SIZE];

    hash_sha256_hex(encoded->data, encoded->size, digest);
    (void)snprintf(out, ENVIRONMENT_SPEC_ID_SIZE, "env_%.*s", ID_DIGITS, digest);
}
