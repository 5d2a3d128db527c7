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
/* For a warm interpreter to come up, behind the first call that could have used one. */
#define TEMPLATE_S 10

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

static struct run_request *new_request(struct sandbox *sandbox, enum run_kind kind)
{
    struct run_request *request = run_request_new();

    request->kind = kind;
    request->limits = *sandbox_defaults(sandbox);
    return request;
}

/* What a run tells here. */
struct told {
    double ms;
    bool forked;
};

/* Runs it, which is consumed, in a box of its own. 0 or -1 with err. */
static int run_once(struct sandbox *sandbox, struct run_request *request, struct told *ret_told,
                    struct err *err)
{
    struct wait wait = { .waiter = { .done = on_done } };
    CLEANUP_FD int event = eventfd(0, EFD_CLOEXEC);
    const int64_t begin = clock_mono_ns();
    const struct run_result *result;
    struct execution *execution;
    uint64_t count = 0;

    execution = sandbox_submit(sandbox, request, err);
    if (execution == NULL) {
        return -1;
    }
    wait.event = event;
    execution_wait(execution, &wait.waiter);
    while (read(event, &count, sizeof(count)) < 0 && errno == EINTR) {
        /* a signal that is no end */
    }
    result = execution_result(execution, err);
    *ret_told =
        (struct told){ .ms = clock_ms_between(begin, clock_mono_ns()),
                       .forked = result != NULL && text_equal(result->usage.source, "template") };
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
        struct run_request *request = new_request(sandbox, RUN_COMMAND);
        struct told told;

        strv_add(&request->command, "true");
        if (run_once(sandbox, request, &told, &err) < 0) {
            doctor_report_add(report, "box", DOCTOR_FAIL, "%s", err.msg);
            doctor_report_fix(report, err.remedy);
            return false;
        }
        first = i == 0 ? told.ms : first;
        best = i == 0 || told.ms < best ? told.ms : best;
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

/* Calls python until a box is forked, a template failed, or it takes too long. */
static int fork_once(struct sandbox *sandbox, struct told *ret_told, struct err *err)
{
    const int64_t deadline = clock_deadline_after_s(TEMPLATE_S);
    struct sandbox_stats stats;

    do {
        struct run_request *request = new_request(sandbox, RUN_CODE);

        request->language = RUN_PYTHON;
        if (run_once(sandbox, request, ret_told, err) < 0) {
            return -1;
        }
        sandbox_stats(sandbox, &stats);
    } while (!ret_told->forked && stats.templates_why[0] == '\0' && !clock_passed(deadline));
    return ret_told->forked ? 0
                            : err_set(err, ERR_BOX_START_FAILED, 0, "%s",
                                      stats.templates_why[0] == '\0' ? "no template came up"
                                                                     : stats.templates_why);
}

static void check_templates(struct doctor_report *report, struct sandbox *sandbox, bool wanted)
{
    struct sandbox_stats stats;
    struct err err = ERR_INIT;
    struct told told;

    sandbox_stats(sandbox, &stats);
    if (!stats.templates_enabled) {
        doctor_report_add(report, "templates", DOCTOR_OK, "each box is booted: %s",
                          wanted ? stats.templates_why : "the setting templates is 0");
    } else if (fork_once(sandbox, &told, &err) == 0) {
        doctor_report_add(report, "templates", DOCTOR_OK,
                          "python in a box that is forked takes %.1f ms", told.ms);
    } else {
        doctor_report_add(report, "templates", DOCTOR_WARN, "boxes of python are booted: %s",
                          err.msg);
    }
}

bool doctor_box_check(struct doctor_report *report, const struct config *config)
{
    struct privilege_account account;
    struct sandbox_config sandbox_config = {
        .state_dir = config->state_dir,
        .runtime_dir = config->runtime_dir,
        .library_dir = config->library_dir,
        .capacity = config->capacity,
        .templates = config->templates != 0,
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
    if (starts && sandbox_language_version(sandbox, RUN_PYTHON) != NULL) {
        check_templates(report, sandbox, config->templates != 0);
    }
    sandbox_drain(sandbox, clock_mono_ns());
    sandbox_close(sandbox);
    return starts;
}
