/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: fetch images, as an execution that can be followed and ended like any.
 * Owns: nothing beyond the execution it runs.
 * Threads: one of the background lane a pull; pull_check any.
 * May include: all of lib.
 */
#include "lib/sandbox/pull.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/box/images.h"
#include "lib/sandbox/execution_internal.h"
#include "lib/sandbox/records.h"
#include "lib/sandbox/sandbox_internal.h"

int pull_check(struct sandbox *sandbox, const struct run_request *request, struct err *err)
{
    if (images_check(sandbox->boxes, err) < 0) {
        return -1;
    }
    if (sandbox->image_pull) {
        return limits_check_cell(&request->limits, &sandbox->maxima, err);
    }
    (void)err_set(err, ERR_NOT_SUPPORTED_HERE, 0, "this server fetches no images from registries");
    return err_remedy(err, "start it with --image-pull, or with \"image_pull = true\" in its "
                           "configuration file; or load an archive: POST /v1/images/load");
}

static void tell_fault(struct execution *execution, enum run_fault fault, const char *message)
{
    execution->result.fault = fault;
    (void)snprintf(execution->result.fault_message, sizeof(execution->result.fault_message), "%s",
                   message);
}

static void tell_end(struct execution *execution, enum images_stop stop)
{
    struct run_result *result = &execution->result;
    char message[sizeof(result->fault_message)];

    if (stop == IMAGES_PULLED) {
        result->has_exit_code = true;
    } else if (stop == IMAGES_TIMED_OUT) {
        (void)snprintf(message, sizeof(message), "the image was not here within timeoutS of %gs",
                       execution->request->limits.timeout_s);
        tell_fault(execution, RUN_FAULT_TIMEOUT, message);
    } else {
        (void)snprintf(message, sizeof(message), "cancelled: %s",
                       cancel_reason_text(cancel_get(&execution->cancel)));
        tell_fault(execution, RUN_FAULT_CANCELLED, message);
    }
}

static void fetch(struct sandbox *sandbox, struct execution *execution, struct err *failure)
{
    const struct run_request *request = execution->request;
    struct run_result *result = &execution->result;
    struct images_watch watch = { .sink = &execution->sink.sink,
                                  .words = &result->stderr_data,
                                  .cancel = &execution->cancel,
                                  .deadline = clock_deadline_after_s(request->limits.timeout_s) };
    const int64_t begun = clock_mono_ns();
    enum images_stop stop = IMAGES_PULLED;

    result->usage.queue_ms = clock_ms_between(execution->queued_ns, begun);
    result->started_wall_ms = clock_wall_ms();
    result->stderr_data.max = (size_t)request->limits.max_output_bytes;
    if (images_pull(sandbox->boxes, request->choice.image, &watch, &stop, failure) == 0) {
        tell_end(execution, stop);
    }
    result->truncated_stderr = watch.truncated;
    result->usage.wall_ms = clock_ms_between(begun, clock_mono_ns());
}

void pull_run(struct sandbox *sandbox, struct execution *execution)
{
    struct err failure = ERR_INIT;

    steps_mark(&execution->steps, STEP_QUEUE);
    execution_set_running(execution);
    fetch(sandbox, execution, &failure);
    steps_mark(&execution->steps, STEP_RUN);
    execution->result.finished_wall_ms = clock_wall_ms();
    execution_leave(execution);
    execution_finish(execution, failure.code == ERR_NONE ? NULL : &failure);
    records_put(sandbox, execution, EXECUTION_DONE);
}
