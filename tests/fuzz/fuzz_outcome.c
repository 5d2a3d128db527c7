/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: everything that is judged about a box from what comes out of it: kernd-init's
 * reports, a launcher's words, a START message, smaps. What must hold for each input is asserted.
 */
#include <assert.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/box/outcome.h"
#include "lib/box/remedy.h"
#include "lib/box/smaps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reports in two pieces mean what they mean in one; nothing is concluded that was not said. */
static void check_reports(const uint8_t *data, size_t size)
{
    struct initlink_report whole = { 0 };
    struct initlink_report pieces = { 0 };
    const struct outcome_facts facts = { .stop = BOX_STOP_EXITED,
                                         .pumped = true,
                                         .peak_bytes = -1 };
    struct box_outcome outcome;
    size_t half = size / 2;
    size_t used = initlink_parse(&whole, data, size);
    size_t first = initlink_parse(&pieces, data, half);

    assert(used <= size && first <= half);
    (void)initlink_parse(&pieces, data + first, size - first);
    assert(whole.hello == pieces.hello && whole.has_started == pieces.has_started);
    assert(whole.has_exited == pieces.has_exited && whole.lost == pieces.lost);
    assert(!whole.has_exited || (whole.has_started && whole.hello));
    outcome_judge(&whole, &facts, &outcome);
    assert(!outcome.oom && !outcome.disk_full);
    assert(outcome.has_status == whole.has_exited);
    assert(!outcome.escape_blocked ||
           (WIFSIGNALED(outcome.wait_status) && WTERMSIG(outcome.wait_status) == SIGSYS));
    assert(memchr(outcome.evidence, '\0', sizeof(outcome.evidence)) != NULL);
}

static void check_start(const uint8_t *data, size_t size)
{
    struct init_wire_start start;
    struct init_wire_strings strings;

    if (init_wire_parse_start(data, size, &start, &strings)) {
        const char *end = (const char *)data + size;
        const char *at = strings.argv;

        assert(strings.cwd < strings.argv && strings.argv < end);
        for (uint32_t i = 0; i < start.argument_count; i++) {
            assert(at < end);
            at += strlen(at) + 1;
        }
        assert(at == strings.environment && at <= end);
    }
}

/* A launcher's words come out as one line of UTF-8, whatever they are. */
static void check_words(const char *text)
{
    const struct remedy_host host = { .userns_clone = 1, .max_user_namespaces = 1 };
    struct err err = ERR_INIT;

    assert(remedy_explain(text, "exit 1", &host, &err) == -1);
    assert(err.code == ERR_ENGINE_UNAVAILABLE || err.code == ERR_BOX_START_FAILED);
    assert(text_utf8_valid(err.msg, strlen(err.msg)));
    for (const char *at = err.msg; *at != '\0'; at++) {
        assert((unsigned char)*at >= ' ' && *at != 0x7f);
    }
}

static void check_smaps(char *text)
{
    const struct memfiles files = { .device = 1 };
    struct smaps smaps = { .files = &files };

    for (char *line = text, *next = NULL; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        smaps_line(&smaps, line);
    }
    smaps_finish(&smaps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = alloc_copy(data, size);

    check_reports(data, size);
    check_start(data, size);
    check_words(text);
    check_smaps(text);
    free(text);
    return 0;
}
