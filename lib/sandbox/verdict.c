/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict: the outcome rules in one place.
 * Owns: nothing.
 * Threads: any, pure.
 * May include: lib/base, lib/box/box.h, lib/sandbox/run.h.
 */
#include "lib/sandbox/verdict.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#define SIGNAL_EXIT_BASE 128

static void set_exit(const struct box_outcome *outcome, struct run_result *result)
{
    if (!outcome->has_status) {
        return;
    }
    result->has_exit_code = true;
    if (WIFSIGNALED(outcome->wait_status)) {
        result->signal = WTERMSIG(outcome->wait_status);
        result->exit_code = SIGNAL_EXIT_BASE + result->signal;
        return;
    }
    result->exit_code = WEXITSTATUS(outcome->wait_status);
}

/* A program that kernd killed without a report of its own left no status: say what was done to it.
 */
static void set_killed_exit(struct run_result *result)
{
    if (!result->has_exit_code) {
        result->has_exit_code = true;
        result->signal = SIGKILL;
        result->exit_code = SIGNAL_EXIT_BASE + SIGKILL;
    }
}

static void set_fault(struct run_result *result, enum run_fault fault, const char *evidence)
{
    result->fault = fault;
    (void)snprintf(result->fault_evidence, sizeof(result->fault_evidence), "%s", evidence);
}

static void judge_own_end(const struct verdict_input *input, struct run_result *result)
{
    const struct box_outcome *outcome = input->outcome;

    if (outcome->escape_blocked) {
        set_fault(result, RUN_FAULT_ESCAPE_BLOCKED, outcome->evidence);
        (void)snprintf(result->fault_message, sizeof(result->fault_message),
                       "the program was killed for a system call that could lead out of the box");
    }
}

static void judge_stopped(const struct verdict_input *input, struct run_result *result)
{
    char *message = result->fault_message;
    size_t size = sizeof(result->fault_message);

    set_killed_exit(result);
    if (input->stop == BOX_STOP_DEADLINE) {
        set_fault(result, RUN_FAULT_TIMEOUT, "kernd killed the box at the deadline");
        (void)snprintf(message, size, "the time limit of %gs passed and the box was killed",
                       input->timeout_s);
    } else if (input->stop == BOX_STOP_CANCELLED) {
        set_fault(result, RUN_FAULT_CANCELLED, "kernd killed the box");
        (void)snprintf(message, size, "cancelled: %s", cancel_reason_text(input->cancelled));
    } else if (input->stop == BOX_STOP_DISK || input->outcome->disk_full) {
        set_fault(result, RUN_FAULT_DISK_FULL, input->outcome->evidence);
        (void)snprintf(message, size,
                       "the workspace grew above what it may hold and the box was killed");
    } else {
        set_fault(result, RUN_FAULT_KILLED, input->outcome->evidence);
        (void)snprintf(message, size, "the box was killed from outside; why is not known");
    }
}

/*
 * kernd ends a box with SIGKILL and with nothing else: any other status means that the program came
 * before it, and a result has one outcome, not two.
 */
static bool came_first(const struct box_outcome *outcome)
{
    return outcome->has_status &&
           !(WIFSIGNALED(outcome->wait_status) && WTERMSIG(outcome->wait_status) == SIGKILL);
}

void verdict_apply(const struct verdict_input *input, struct run_result *result)
{
    const struct box_outcome *outcome = input->outcome;

    set_exit(outcome, result);
    if (outcome->oom || input->stop == BOX_STOP_OOM) {
        set_killed_exit(result);
        set_fault(result, RUN_FAULT_OOM, outcome->evidence);
        (void)snprintf(result->fault_message, sizeof(result->fault_message),
                       "the box used more than its memory limit of %llu MiB",
                       (unsigned long long)input->memory_mb);
        return;
    }
    if (input->stop == BOX_STOP_EXITED || input->stop == BOX_STOP_PEER_DONE ||
        (input->stop == BOX_STOP_PEER_LOST && outcome->has_status) ||
        ((input->stop == BOX_STOP_DEADLINE || input->stop == BOX_STOP_CANCELLED) &&
         came_first(outcome))) {
        judge_own_end(input, result);
        return;
    }
    judge_stopped(input, result);
}
