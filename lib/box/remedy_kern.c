/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: tell from kern's words why a box did not start.
 * Owns: nothing.
 * Threads: any.
 * May include: base, remedy.
 */
#include "lib/box/remedy_kern.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"

/* How the line begins that says why: warnings and notes stand before it, hints behind. */
static const char *const reasons[] = { "error: ", "kern: sandbox setup failed", "kern: cannot",
                                       "kernd-init: " };

static bool is_reason(const char *line)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (text_starts_with(line, reasons[i])) {
            return true;
        }
    }
    return false;
}

/* The line that says why, NULL: none of kern's does. */
static const char *find_reason(const char *words)
{
    for (const char *line = words; line != NULL && *line != '\0';) {
        size_t size = strcspn(line, "\n");

        if (is_reason(line)) {
            return line;
        }
        line += size + (line[size] == '\n' ? 1 : 0);
    }
    return NULL;
}

char *remedy_kern_reason(const char *words)
{
    const char *line = find_reason(words);
    CLEANUP_FREE char *text = NULL;

    if (line == NULL) {
        return remedy_line(words);
    }
    text = alloc_printf("%.*s", (int)strcspn(line, "\n"), line);
    return remedy_line(text);
}

int remedy_kern_explain(const char *words, const char *exit_text, const struct remedy_host *host,
                        struct err *err)
{
    CLEANUP_FREE char *reason = remedy_kern_reason(words);
    const char *shown = reason[0] == '\0' ? "it said nothing" : reason;

    if (text_starts_with(reason, "error: image ") && strstr(reason, "--pull never") != NULL) {
        (void)err_field(err, ERR_IMAGE_NOT_FOUND, "/image", "the image is not on this host: %s",
                        shown);
        return err_remedy(err, "load it (POST /v1/images/load), or pull it (POST /v1/images/pull)");
    }
    if (text_starts_with(reason, "error: config:")) {
        return err_field(err, ERR_BAD_VALUE, "/profiles", "kern refuses: %s", shown);
    }
    if (text_starts_with(reason, "error: usage:")) {
        return err_set(err, ERR_BAD_VALUE, 0, "kern refuses: %s", shown);
    }
    if (remedy_namespaces_refused(reason)) {
        (void)err_set(err, ERR_ENGINE_UNAVAILABLE, 0, "no box can start here: %s", shown);
        remedy_namespaces(host, err);
        return -1;
    }
    (void)err_set(err, ERR_BOX_START_FAILED, 0, "kern ended (%s) before the box was up: %s",
                  exit_text[0] == '\0' ? "no status" : exit_text, shown);
    /* Then what speaks is a program of the image. */
    return words[0] == '\0' || find_reason(words) != NULL
               ? -1
               : err_remedy(err, "if the image has an entry point, that must end by executing what "
                                 "it is given (exec \"$@\")");
}
