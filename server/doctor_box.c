/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: start boxes and tell what they are like here.
 * Owns: a sandbox while it looks.
 * Threads: main; executions end on the sandbox's.
 * May include: server, sandbox.h, lib/base.
 */
#include "server/doctor_box.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/sandbox/sandbox.h"
#include "server/engines.h"
#include "server/privilege.h"

#define RUNS 5

/* ---- a box ---- */

struct wait {
    struct execution_waiter waiter; /* first */
    int event;
};

static void on_done(struct execution_waiter *waiter)
{
    const uint64_t one = 1;

    (void)!write(((struct wait *)(void *)waiter)->event, &one, sizeof(one));
}

/* Runs `true` in a box of its own. 0 and how long it took, or -1 with err. */
static int run_once(struct sandbox *sandbox, double *ret_ms, struct err *err)
{
    struct wait wait = { .waiter = { .done = on_done } };
    CLEANUP_FD int event = eventfd(0, EFD_CLOEXEC);
    struct run_request *request = run_request_new();
    const int64_t begin = clock_mono_ns();
    const struct run_result *result;
    struct execution *execution;
    uint64_t count = 0;

    request->kind = RUN_COMMAND;
    request->limits = *sandbox_defaults(sandbox);
    strv_add(&request->command, "true");
    execution = sandbox_submit(sandbox, request, err);
    if (execution == NULL) {
        return -1;
    }
    wait.event = event;
    execution_wait(execution, &wait.waiter);
    while (read(event, &count, sizeof(count)) < 0 && errno == EINTR) {
        /* a signal that is no end */
    }
    *ret_ms = clock_ms_between(begin, clock_mono_ns());
    result = execution_result(execution, err);
    execution_unref(execution);
    return result != NULL ? 0 : -1;
}

static bool check_start(struct doctor_report *report, struct sandbox *sandbox)
{
    struct err err = ERR_INIT;
    double first = -1;
    double best = -1;

    if (sandbox_ready(sandbox, &err) < 0) {
        doctor_report_add(report, "box", DOCTOR_FAIL, "%s", err.msg);
        doctor_report_fix(report, err.remedy);
        return false;
    }
    for (int i = 0; i < RUNS; i++) {
        double ms = 0;

        if (run_once(sandbox, &ms, &err) < 0) {
            doctor_report_add(report, "box", DOCTOR_FAIL, "%s", err.msg);
            doctor_report_fix(report, err.remedy);
            return false;
        }
        first = i == 0 ? ms : first;
        best = i == 0 || ms < best ? ms : best;
    }
    doctor_report_add(report, "box", DOCTOR_OK,
                      "a program in a fresh box takes %.1f ms, the first %.1f ms", best, first);
    return true;
}

/* ---- what holds it ---- */

static void check_engine(struct doctor_report *report, const struct boxes_abilities *abilities)
{
    const bool is_there = abilities->engine_version[0] != '\0';

    /* What to do about one that is not there is told where a box should have started. */
    doctor_report_add(report, "engine", is_there ? DOCTOR_OK : DOCTOR_WARN, "%s %s",
                      abilities->engine, is_there ? abilities->engine_version : "tells no version");
    doctor_report_add(report, "filter", abilities->seccomp ? DOCTOR_OK : DOCTOR_WARN,
                      abilities->seccomp ? "system calls of boxes are filtered"
                                         : "system calls of boxes are not filtered");
}

static void check_limits(struct doctor_report *report, const struct boxes_abilities *abilities)
{
    const bool has_cgroup = text_equal(abilities->memory, "cgroup") &&
                            text_equal(abilities->pids, "cgroup") &&
                            text_equal(abilities->cpu, "cgroup");

    doctor_report_add(report, "limits", has_cgroup ? DOCTOR_OK : DOCTOR_WARN,
                      "memory by %s, pids by %s, cpu by %s%s%s", abilities->memory, abilities->pids,
                      abilities->cpu, abilities->cgroup_missing[0] != '\0' ? ": " : "",
                      abilities->cgroup_missing);
    doctor_report_fix(
        report,
        has_cgroup ? NULL
                   : "let systemd delegate a cgroup with these controllers: kernd service install, "
                     "or systemd-run --user -p Delegate=yes; in a container: a cgroup v2 hierarchy "
                     "of its own that is writable");
}

static void check_languages(struct doctor_report *report, struct sandbox *sandbox)
{
    static const char *const fixes[RUN_LANGUAGE_MAX] = {
        [RUN_PYTHON] = "sudo apt install python3",
        [RUN_BASH] = "sudo apt install bash",
        [RUN_NODE] = "sudo apt install nodejs, for code in JavaScript",
    };

    for (enum run_language language = RUN_PYTHON; language < RUN_LANGUAGE_MAX; language++) {
        const char *version = sandbox_language_version(sandbox, language);

        doctor_report_add(report, run_language_text(language),
                          version != NULL ? DOCTOR_OK : DOCTOR_WARN, "%s",
                          version != NULL ? version : "is not installed");
        doctor_report_fix(report, version != NULL ? NULL : fixes[language]);
    }
}

bool doctor_box_check(struct doctor_report *report, const struct config *config)
{
    struct privilege_account account;
    struct sandbox_config sandbox_config = {
        .state_dir = config->state_dir,
        .runtime_dir = config->runtime_dir,
        .library_dir = config->library_dir,
        .home = account.home,
    };
    struct boxes_abilities abilities;
    struct sandbox *sandbox = NULL;
    struct err err = ERR_INIT;
    bool starts;

    privilege_current(&account);
    engines_configure(config, &sandbox_config);
    if (sandbox_open(&sandbox_config, &sandbox, &err) < 0) {
        doctor_report_add(report, "engine", DOCTOR_FAIL, "%s", err.msg);
        doctor_report_fix(report, err.remedy);
        return false;
    }
    sandbox_abilities(sandbox, &abilities);
    check_engine(report, &abilities);
    starts = check_start(report, sandbox);
    if (starts) {
        check_limits(report, &abilities);
        check_languages(report, sandbox);
    }
    sandbox_drain(sandbox, clock_mono_ns());
    sandbox_close(sandbox);
    return starts;
}
