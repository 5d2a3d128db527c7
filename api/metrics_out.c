/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the text format of Prometheus.
 * Owns: nothing.
 * Threads: one at a time.
 * May include: lib/base.
 */
#include "api/metrics_out.h"

#include <math.h>

static void put(struct metrics_out *out, const char *text)
{
    out->failed |= buf_append_text(out->out, text) < 0;
}

void metrics_out_init(struct metrics_out *out, struct buf *buf)
{
    *out = (struct metrics_out){ .out = buf, .family = "" };
}

void metrics_out_family(struct metrics_out *out, const char *name, const char *type,
                        const char *help)
{
    out->family = name;
    out->failed |= buf_printf(out->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type) < 0;
}

/* Of a label's value: backslash, quote and line break are escaped, and only these. */
static void put_escaped(struct metrics_out *out, const char *value)
{
    for (; *value != '\0'; value++) {
        switch (*value) {
        case '\\':
            put(out, "\\\\");
            break;
        case '"':
            put(out, "\\\"");
            break;
        case '\n':
            put(out, "\\n");
            break;
        default:
            out->failed |= buf_append(out->out, value, 1) < 0;
        }
    }
}

static void put_label(struct metrics_out *out, const char *before, const char *name,
                      const char *value)
{
    put(out, before);
    put(out, name);
    put(out, "=\"");
    put_escaped(out, value);
    put(out, "\"");
}

static void put_number(struct metrics_out *out, double value)
{
    if (isinf(value) != 0) {
        put(out, "+Inf");
    } else {
        out->failed |= buf_printf(out->out, "%.15g", value) < 0;
    }
}

/* bound: of a bucket, or NULL. */
static void put_sample(struct metrics_out *out, const char *suffix, const char *const *labels,
                       const double *bound, double value)
{
    const char *before = "{";
    char text[32];

    put(out, out->family);
    put(out, suffix);
    for (size_t i = 0; labels != NULL && labels[i] != NULL; i += 2) {
        put_label(out, before, labels[i], labels[i + 1]);
        before = ",";
    }
    if (bound != NULL) {
        struct buf number = BUF_INIT(sizeof(text));
        struct metrics_out to = { .out = &number };

        put_number(&to, *bound);
        put_label(out, before, "le", number.data);
        buf_done(&number);
        before = ",";
    }
    put(out, *before == ',' ? "} " : " ");
    put_number(out, value);
    put(out, "\n");
}

void metrics_out_value(struct metrics_out *out, const char *const *labels, double value)
{
    put_sample(out, "", labels, NULL, value);
}

void metrics_out_histogram(struct metrics_out *out, const char *const *labels,
                           const struct metrics_out_histogram *histogram)
{
    const uint64_t total = histogram->count > 0 ? histogram->at_most[histogram->count - 1] : 0;

    for (size_t i = 0; i < histogram->count; i++) {
        put_sample(out, "_bucket", labels, &histogram->bounds[i], (double)histogram->at_most[i]);
    }
    put_sample(out, "_sum", labels, NULL, histogram->sum);
    put_sample(out, "_count", labels, NULL, (double)total);
}

void metrics_out_single(struct metrics_out *out, const char *name, const char *type,
                        const char *help, double value)
{
    metrics_out_family(out, name, type, help);
    metrics_out_value(out, NULL, value);
}
