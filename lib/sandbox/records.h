/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records: executions in the store. For lib/sandbox alone; any thread but the event one.
 */
#ifndef KERND_SANDBOX_RECORDS_H
#define KERND_SANDBOX_RECORDS_H

struct execution;
struct sandbox;

/* Writes the execution's state, soon; costs its caller some microseconds. */
void records_put(struct sandbox *sandbox, struct execution *execution);

/* At start: what a killed server left running is lost. */
void records_lose(struct sandbox *sandbox);

/* Old and superfluous rows go. */
void records_expire(struct sandbox *sandbox);

#endif
