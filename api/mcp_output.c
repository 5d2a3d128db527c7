/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: show what an execution wrote and gave within the bounds that clients have.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox.
 */
#include "api/mcp_output.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/text.h"

/* Bytes shown: all of a call stays below 50,000, where clients begin to cut by themselves. */
#define STDOUT_MAX ((size_t)20000)
#define STDERR_MAX ((size_t)10000)
#define RICH_MAX ((size_t)4000)
#define RICH_TOTAL_MAX ((size_t)12000)
#define TEXT_MAX ((size_t)64 << 10)
#define FILES_MAX 50
/* Bytes of base64. Model APIs take images up to 5 MB. */
#define IMAGE_MAX ((size_t)5000000)
#define IMAGES_TOTAL_MAX ((size_t)8 << 20)

/* What is gathered while a result is walked through. */
struct output {
    struct mcp_result *result;
    struct buf text;     /* the part for the model */
    size_t images;       /* shown */
    size_t images_bytes; /* of base64 */
    size_t images_left;
    size_t rich_bytes;
};

/* ---- clipped text ---- */

static size_t whole_start(const char *text, size_t size, size_t at)
{
    while (at < size && ((unsigned char)text[at] & 0xC0) == 0x80) {
        at++;
    }
    return at;
}

void mcp_output_clip(struct buf *out, const char *text, size_t size, size_t max)
{
    const size_t head = max / 2;
    size_t end;
    size_t start;

    if (size <= max) {
        (void)text_utf8_repair(out, text, size);
        return;
    }
    end = head - text_utf8_partial_tail(text, head);
    start = whole_start(text, size, size - (max - head));
    (void)text_utf8_repair(out, text, end);
    (void)buf_printf(out,
                     "\n[... %zu bytes left out: write long output to a file in /workspace, and "
                     "read parts of it with read_file ...]\n",
                     start - end);
    (void)text_utf8_repair(out, text + start, size - start);
}

/* A stream as a member, and in the text under its heading. */
static void add_stream(struct output *output, const char *name, const struct buf *data, size_t max)
{
    CLEANUP_BUF struct buf shown = BUF_INIT(TEXT_MAX);

    mcp_output_clip(&shown, data->data == NULL ? "" : data->data, data->size, max);
    json_out_key(&output->result->json, name);
    json_out_text(&output->result->json, shown.data == NULL ? "" : shown.data, shown.size);
    if (shown.size == 0 || shown.data == NULL) {
        return;
    }
    if (text_equal(name, "stderr")) {
        (void)buf_append_text(&output->text, "[stderr]\n");
    }
    (void)buf_append(&output->text, shown.data, shown.size);
    if (shown.data[shown.size - 1] != '\n') {
        (void)buf_append_text(&output->text, "\n");
    }
}

/* ---- rich results ---- */

static const struct bundle_part *find_part(const struct bundle *bundle, const char *mime)
{
    for (size_t i = 0; i < bundle->count; i++) {
        const struct bundle_part *part = &bundle->parts[i];

        if (part->mime_size == strlen(mime) && memcmp(part->mime, mime, part->mime_size) == 0) {
            return part;
        }
    }
    return NULL;
}

/* The first of these types that there is. */
static const struct bundle_part *choose_part(const struct bundle *bundle, const char *const *mimes,
                                             const char **ret_mime)
{
    for (; *mimes != NULL; mimes++) {
        const struct bundle_part *part = find_part(bundle, *mimes);

        if (part != NULL) {
            *ret_mime = *mimes;
            return part;
        }
    }
    return NULL;
}

/* Drivers may break base64 into lines. */
static bool is_image_text(const struct bundle_part *part, struct buf *base64)
{
    CLEANUP_BUF struct buf bytes = BUF_INIT(IMAGE_MAX);

    for (size_t i = 0; i < part->data_size; i++) {
        if (strchr("\r\n", part->data[i]) == NULL) {
            (void)buf_append(base64, part->data + i, 1);
        }
    }
    return base64->size > 0 && text_base64_decode(&bytes, base64->data, base64->size) == 0;
}

/* False: it has no image. */
static bool add_image(struct output *output, const struct bundle *bundle)
{
    static const char *const mimes[] = { "image/png", "image/jpeg", "image/webp", "image/gif",
                                         NULL };
    CLEANUP_BUF struct buf base64 = BUF_INIT(IMAGE_MAX);
    const char *mime = NULL;
    const struct bundle_part *part = choose_part(bundle, mimes, &mime);

    if (part == NULL) {
        return false;
    }
    if (part->data_size > IMAGE_MAX || output->images_bytes + part->data_size > IMAGES_TOTAL_MAX ||
        !is_image_text(part, &base64)) {
        output->images_left++;
        return true;
    }
    mcp_result_image(output->result, mime, base64.data, base64.size);
    output->images++;
    output->images_bytes += base64.size;
    return true;
}

/* The form that a model reads best; a table is shorter as plain text than as HTML. */
static void add_rich_text(struct output *output, const struct bundle *bundle)
{
    static const char *const mimes[] = {
        "text/markdown", "application/json", "text/plain", "text/html",
        "image/svg+xml", "text/latex",       NULL
    };
    const char *mime = NULL;
    const struct bundle_part *part = choose_part(bundle, mimes, &mime);
    size_t max = RICH_TOTAL_MAX - output->rich_bytes;

    if (part == NULL || max < RICH_MAX / 4) {
        return;
    }
    max = max < RICH_MAX ? max : RICH_MAX;
    output->rich_bytes += part->data_size < max ? part->data_size : max;
    json_out_open(&output->result->json, '{');
    json_out_key(&output->result->json, "mime_type");
    json_out_string(&output->result->json, mime);
    json_out_key(&output->result->json, "text");
    {
        CLEANUP_BUF struct buf shown = BUF_INIT(TEXT_MAX);

        mcp_output_clip(&shown, part->data, part->data_size, max);
        json_out_text(&output->result->json, shown.data == NULL ? "" : shown.data, shown.size);
        (void)buf_printf(&output->text, "[result %s]\n%s\n", mime,
                         shown.data == NULL ? "" : shown.data);
    }
    json_out_close(&output->result->json, '}');
}

static void add_results(struct output *output, const struct run_result *run)
{
    struct json_out *json = &output->result->json;
    struct bundle bundle;

    json_out_key(json, "results");
    json_out_open(json, '[');
    for (size_t i = 0; i < run->result_count; i++) {
        if (bundle_decode(run->results[i].data, run->results[i].size, &bundle, NULL) == 0 &&
            !add_image(output, &bundle)) {
            add_rich_text(output, &bundle);
        }
    }
    json_out_close(json, ']');
    json_out_key(json, "images");
    json_out_count(json, output->images);
    if (output->images_left > 0) {
        (void)buf_printf(&output->text,
                         "[%zu more image(s) left out: too large. Save them smaller, or to a file "
                         "in /workspace]\n",
                         output->images_left);
    }
}

/* ---- how it ended ---- */

static void add_files(struct output *output, const struct run_result *run)
{
    static const char *const changes[] = {
        [RUN_CREATED] = "created", [RUN_MODIFIED] = "modified", [RUN_DELETED] = "deleted"
    };
    struct json_out *json = &output->result->json;

    json_out_key(json, "files");
    json_out_open(json, '[');
    for (size_t i = 0; i < run->change_count && i < FILES_MAX; i++) {
        const struct run_change_row *row = &run->changes[i];

        json_out_open(json, '{');
        json_out_key(json, "path");
        json_out_string(json, row->path);
        json_out_key(json, "change");
        json_out_string(json, changes[row->change]);
        json_out_close(json, '}');
    }
    json_out_close(json, ']');
}

static void add_end(struct output *output, const struct run_result *run, bool ok)
{
    struct json_out *json = &output->result->json;
    const char *fault = run_fault_text(run->fault);

    json_out_key(json, "exit_code");
    if (run->has_exit_code) {
        json_out_whole(json, run->exit_code);
    } else {
        json_out_null(json);
    }
    json_out_key(json, "fault");
    json_out_string(json, fault);
    json_out_key(json, "fault_message");
    json_out_string(json, fault == NULL ? NULL : run->fault_message);
    if (fault != NULL) {
        (void)buf_printf(&output->text, "[stopped: %s: %s]\n", fault, run->fault_message);
    } else if (!ok && run->has_exit_code) {
        (void)buf_printf(&output->text, "[exit code %d]\n", run->exit_code);
    }
    if (run->truncated_stdout || run->truncated_stderr) {
        (void)buf_append_text(&output->text, "[the output was above the limit and was cut]\n");
    }
}

static void add_place(struct output *output, const struct execution *execution,
                      const struct run_result *run)
{
    struct json_out *json = &output->result->json;

    json_out_key(json, "state_kept");
    if (execution_kernel_id(execution) != NULL) {
        json_out_bool(json, run->state_kept);
    } else {
        json_out_bool(json, false);
    }
    json_out_key(json, "session_id");
    json_out_string(json, execution_session_id(execution));
    json_out_key(json, "execution_id");
    json_out_string(json, execution_id(execution));
    json_out_key(json, "wall_ms");
    json_out_ms(json, run->usage.wall_ms);
    if (execution_kernel_id(execution) != NULL && !run->state_kept) {
        (void)buf_append_text(&output->text,
                              "[the interpreter ended: its variables are lost, the next call "
                              "begins with a new one]\n");
    }
}

void mcp_output_fill(struct mcp_result *result, const struct execution *execution,
                     const struct run_result *run, const char *note)
{
    const bool ok = run->fault == RUN_FAULT_NONE && (!run->has_exit_code || run->exit_code == 0);
    struct output output = { .result = result, .text = BUF_INIT(TEXT_MAX) };

    mcp_result_init(result, ok);
    if (note[0] != '\0') {
        (void)buf_printf(&output.text, "[%s]\n", note);
    }
    add_stream(&output, "stdout", &run->stdout_data, STDOUT_MAX);
    add_stream(&output, "stderr", &run->stderr_data, STDERR_MAX);
    add_results(&output, run);
    add_end(&output, run, ok);
    add_files(&output, run);
    add_place(&output, execution, run);
    if (output.text.size == 0 && output.images == 0) {
        (void)buf_append_text(&output.text, "(no output)");
    }
    if (output.text.size > 0) {
        mcp_result_text(result, output.text.data, output.text.size);
    }
    buf_done(&output.text);
}
