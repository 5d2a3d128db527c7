/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records: executions in the store. For lib/sandbox alone; any thread but the event one.
 */
#ifndef KERND_SANDBOX_RECORDS_H
#define KERND_SANDBOX_RECORDS_H

#include "lib/sandbox/execution.h"

struct rows_execution;
struct sandbox;

/* "queued", "running", "done". */
const char *records_state_text(enum execution_state state);

/*
 * Writes the execution's row, soon, unless it has ended meanwhile: a slower thread's older news
 * never overwrites a newer row. Costs its caller some microseconds.
 */
void records_put(struct sandbox *sandbox, struct execution *execution, enum execution_state state);

/*
 * The row of one whose id its caller chose is on disk before it starts: whatever happens to the
 * server, that id is never run a second time. 0, or -1 EXECUTION_EXISTS, IO.
 */
int records_insert(struct sandbox *sandbox, struct execution *execution, struct err *err);

/* It was not taken after all. */
void records_remove(struct sandbox *sandbox, const struct execution *execution);

/* What the row will tell, or should by now. Owns nothing. */
void records_describe(struct execution *execution, struct rows_execution *ret_row);

/* At start: what a killed server left running is lost. */
void records_lose(struct sandbox *sandbox);

/* Old and superfluous rows go. */
void records_expire(struct sandbox *sandbox);

#endif
