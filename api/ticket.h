/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ticket: the forms in which any execution is answered, whatever asked for it.
 *
 * Accept: application/json waits for the result; application/x-ndjson and text/event-stream tell
 * the events as they come; "Prefer: respond-async" gives 202 and where to look. Any thread but the
 * event one.
 */
#ifndef KERND_API_TICKET_H
#define KERND_API_TICKET_H

#include <stdbool.h>

#include "api/api.h"
#include "lib/base/err.h"
#include "lib/sandbox/execution.h"
#include "lib/sandbox/executions.h"
#include "lib/sandbox/run.h"

enum ticket_form { TICKET_JSON, TICKET_NDJSON, TICKET_SSE };

struct ticket {
    enum ticket_form form;
    bool async;    /* 202; form is JSON then */
    double wait_s; /* of async: how long the result may be waited for first */
};

/* 0, or -1 NOT_ACCEPTABLE. */
int ticket_read(const struct api_call *call, struct ticket *ret_ticket, struct err *err);

/* May the caller have this, and can it be? 0, or -1 BAD_VALUE, FORBIDDEN ... */
int ticket_check(const struct api_call *call, const struct run_request *request, struct err *err);

/* Is the execution of no use to anybody once this client is gone? */
bool ticket_cancels(const struct api_call *call, const struct ticket *ticket,
                    const struct run_request *request);

/* Has the same request with the same id (NULL: none) run already? Then what is kept of it. */
bool ticket_find_past(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                      const char *fingerprint, struct execution_view *ret_view);

/*
 * Checks rights, submits, answers. Takes the request and the call over. Everything of the request
 * but caller, all, live_output and fingerprint is the caller's to fill.
 */
void ticket_submit(struct api_call *call, struct run_request *request);

/* Answers with an execution that was submitted otherwise. Takes the reference and the call over. */
void ticket_answer(struct api_call *call, const struct ticket *ticket, struct execution *execution);

/* Answers with what is kept of an execution that is done. Takes the call over. */
void ticket_answer_past(struct api_call *call, const struct ticket *ticket, const char *id);

#endif
