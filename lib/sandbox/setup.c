/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup: what a setup text means.
 * Owns: nothing.
 * Threads: any, pure.
 * May include: lib/base, lib/sandbox.
 */
#include "lib/sandbox/setup.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/sandbox/options.h"

#define PIP "pip install "
#define NPM "npm install "

/* The rest of the line is the caller's own shell text: it runs in his box, with his rights. */
#define PIP_LINE                                                        \
    "exec python3 -m pip install --target %s --no-cache-dir --upgrade " \
    "--disable-pip-version-check --no-warn-script-location --root-user-action=ignore "
#define NPM_LINE                                                           \
    "exec npm install --prefix %s --cache /tmp/.npm --no-audit --no-fund " \
    "--no-update-notifier "

void setup_command(const char *text, const char *directory, struct strv *argv)
{
    const char *line = text + strspn(text, " \t\r\n");
    CLEANUP_FREE char *shell = NULL;

    if (text_starts_with(line, PIP)) {
        shell = alloc_printf(PIP_LINE "%s", directory, line + strlen(PIP));
    } else if (text_starts_with(line, NPM)) {
        shell = alloc_printf(NPM_LINE "%s", directory, line + strlen(NPM));
    } else {
        shell = alloc_text(text);
    }
    strv_add_all(argv, "sh", "-c", shell, NULL);
}

struct run_request *setup_request(const char *text, const struct options *options)
{
    struct run_request *request = run_request_new();

    options_apply(options, request);
    request->kind = RUN_SETUP;
    request->network = true;
    strv_done(&request->choice.egress); /* what is installed may come from anywhere */
    request->track_files = false;
    if (request->limits.timeout_s < SETUP_TIMEOUT_MIN_S) {
        request->limits.timeout_s = SETUP_TIMEOUT_MIN_S;
    }
    setup_command(text, SETUP_DEPS, &request->command);
    return request;
}
