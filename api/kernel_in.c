/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the tables of the fields of kernels and cells.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox, json-c.
 */
#include "api/kernel_in.h"

#include "api/field.h"
#include "api/json_in.h"
#include "api/run_in.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
/* What a double holds exactly. */
#define LARGEST_WHOLE 9007199254740991.0

/* ---- kernels ---- */

/* What its fields read into; the request must come first (run_in.h). */
struct opening {
    struct run_request run;
    double idle_timeout_s;
    double ttl_s;
};

static const char *const languages[] = { "python", "bash", "node", NULL };

static void choose_language(void *target, size_t index)
{
    (void)run_language_parse(languages[index], &((struct opening *)target)->run.language);
}

#define OPENING(member) .offset = offsetof(struct opening, member)

static const struct field open_fields[] = {
    { .name = "language", .type = FIELD_CHOICE, .choices = languages, .choose = choose_language },
    { .name = "timeoutS",
      .type = FIELD_NUMBER,
      OPENING(run.limits.timeout_s),
      .min = 0.001,
      .max = 1e9 },
    { .name = "idleTimeoutS",
      .type = FIELD_NUMBER,
      OPENING(idle_timeout_s),
      .min = 0.001,
      .max = 1e9 },
    { .name = "ttlS", .type = FIELD_NUMBER, OPENING(ttl_s), .min = 0.001, .max = 1e9 },
    { .name = "id", .type = FIELD_OTHER, .read = run_in_read_id },
};
static const struct field_table open_table = { open_fields, COUNT_OF(open_fields), NULL };

int kernel_in_open(const char *body, size_t size, struct kernels_options *ret_options,
                   char **ret_id, struct err *err)
{
    CLEANUP_JSON struct json_object *object =
        size == 0 ? json_in_parse("{}", 2, err) : json_in_parse(body, size, err);
    /* A null takes a timer away, and gives the session's time limit. */
    const struct opening nothing = { .ttl_s = 0 };
    struct opening opening = { .idle_timeout_s = KERNELS_IDLE_TIMEOUT_S, .ttl_s = KERNELS_TTL_S };

    if (object == NULL) {
        return -1;
    }
    if (field_read_over(&open_table, object, &opening, &nothing, err) < 0) {
        run_request_done(&opening.run);
        return -1;
    }
    *ret_id = CLEANUP_TAKE(opening.run.id);
    *ret_options = (struct kernels_options){ .language = opening.run.language,
                                             .timeout_s = opening.run.limits.timeout_s,
                                             .idle_timeout_s = opening.idle_timeout_s,
                                             .ttl_s = opening.ttl_s };
    run_request_done(&opening.run);
    return 0;
}

/* ---- cells ---- */

static const char *const ends[] = { "interrupt", "kill", NULL };

static void choose_end(void *target, size_t index)
{
    ((struct run_request *)target)->kill_at_end = index == 1;
}

static const char *const encodings[] = { "utf-8", "base64", NULL };

static void choose_encoding(void *target, size_t index)
{
    ((struct run_request *)target)->stdout_base64 = index == 1;
}

static const char *const disconnects[] = { "cancel", "continue", NULL };

static void choose_disconnect(void *target, size_t index)
{
    ((struct run_request *)target)->on_disconnect =
        index == 0 ? RUN_DISCONNECT_CANCEL : RUN_DISCONNECT_CONTINUE;
}

#define CELL(member) .offset = offsetof(struct run_request, member)

static const struct field cell_fields[] = {
    { .name = "code", .type = FIELD_OTHER, .required = true, .read = run_in_read_code },
    { .name = "timeoutS", .type = FIELD_NUMBER, CELL(limits.timeout_s), .min = 0.001, .max = 1e9 },
    { .name = "onTimeout", .type = FIELD_CHOICE, .choices = ends, .choose = choose_end },
    { .name = "stdin", .type = FIELD_OTHER, .read = run_in_read_stdin },
    { .name = "maxOutputBytes",
      .type = FIELD_WHOLE,
      CELL(limits.max_output_bytes),
      .min = 1,
      .max = LARGEST_WHOLE },
    { .name = "stdoutEncoding",
      .type = FIELD_CHOICE,
      .choices = encodings,
      .choose = choose_encoding },
    { .name = "id", .type = FIELD_OTHER, .read = run_in_read_id },
    { .name = "queueTimeoutS",
      .type = FIELD_NUMBER,
      CELL(queue_timeout_s),
      .min = 0.001,
      .max = 1e9 },
    { .name = "onDisconnect",
      .type = FIELD_CHOICE,
      .choices = disconnects,
      .choose = choose_disconnect },
};
static const struct field_table cell_table = { cell_fields, COUNT_OF(cell_fields), NULL };

struct run_request *kernel_in_cell(const char *body, size_t size, struct err *err)
{
    CLEANUP_JSON struct json_object *object = json_in_parse(body, size, err);
    struct run_request *request;

    if (object == NULL) {
        return NULL;
    }
    request = run_request_new();
    request->kind = RUN_CELL;
    if (field_read(&cell_table, object, request, err) < 0) {
        run_request_free(request);
        return NULL;
    }
    return request;
}
