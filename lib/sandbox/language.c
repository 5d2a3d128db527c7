/* SPDX-License-Identifier: Apache-2.0 */
/*
 * language: asks a box which interpreters it has.
 * Owns: nothing.
 * Threads: any; a starter of lib/box/boxes does it.
 * May include: lib/base, lib/box.
 */
#include "lib/sandbox/language.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/box/box.h"
#include "lib/box/boxes.h"

#define PROBE_S 10
#define PROBE_OUTPUT 4096
#define PROBE_MEMORY (UINT64_C(256) << 20)
#define PROBE_PIDS 64

static const char *const interpreters[RUN_LANGUAGE_MAX] = {
    [RUN_PYTHON] = "python3",
    [RUN_BASH] = "bash",
    [RUN_NODE] = "node",
};

void language_parse_version(const char *printed, char *out, size_t size)
{
    size_t start = strcspn(printed, "0123456789");
    size_t length = strcspn(printed + start, " (\n");

    (void)snprintf(out, size, "%.*s", (int)length, printed + start);
}

struct probe {
    struct boxes *boxes;
    const char *workspace;
    enum run_language language;
    char *out;
    size_t size;
    bool started;
};

/* On a thread that may start boxes. */
static void run_probe(void *context)
{
    struct probe *probe = context;
    CLEANUP_STRV struct strv argv = { 0 };
    CLEANUP_BUF struct buf printed = BUF_INIT(PROBE_OUTPUT);
    const struct strv env = { 0 };
    struct box_spec spec = { .workspace = probe->workspace,
                             .limits = { .memory_bytes = PROBE_MEMORY, .pids = PROBE_PIDS },
                             .deadline = clock_deadline_after_s(PROBE_S) };
    struct box_program program = { .argv = &argv, .env = &env };
    struct box_io io = { .max_output = PROBE_OUTPUT,
                         .capture_stdout = &printed,
                         .deadline = clock_deadline_after_s(PROBE_S),
                         .peer_fd = -1 };
    struct box_outcome outcome;
    struct box *box;

    strv_add_all(&argv, interpreters[probe->language], "--version", NULL);
    if (box_start(probe->boxes, &spec, &box, NULL) < 0) {
        return;
    }
    probe->started = true;
    if (box_begin(box, &program, NULL) == 0) {
        (void)box_pump(box, &io);
    }
    box_end(box, &io, &outcome);
    if (outcome.started && outcome.has_status && outcome.wait_status == 0 && printed.size > 0) {
        language_parse_version(printed.data, probe->out, probe->size);
    }
}

int language_probe(struct boxes *boxes, const char *workspace, enum run_language language,
                   char *out, size_t size)
{
    struct probe probe = {
        .boxes = boxes, .workspace = workspace, .language = language, .out = out, .size = size
    };

    out[0] = '\0';
    return boxes_errand(boxes, run_probe, &probe, NULL) < 0 || !probe.started ? -1 : 0;
}
