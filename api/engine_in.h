/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_in: which engine makes a box, and what only one with images can do, in request bodies.
 * Pure; any thread.
 *
 * A body that names no engine gets the server's; where that is bubblewrap, kern is installed too,
 * and the body asks for what only kern can do, it gets kern.
 */
#ifndef KERND_API_ENGINE_IN_H
#define KERND_API_ENGINE_IN_H

#include "api/field.h"
#include "api/options_in.h"

#define ENGINE_IN_PLAIN "bubblewrap"
#define ENGINE_IN_IMAGES "kern"

/* All rows, before those of run_in_shared_table. */
extern const struct field_table engine_in_table;

/* For rows of other tables. */
extern const char *const engine_in_names[];
void engine_in_choose(void *target, size_t index);
int engine_in_read_image(void *target, struct json_object *value, const char *pointer,
                         struct err *err);

/* Settles on the engine, once all is read. 0, or -1 NOT_SUPPORTED_HERE, FORBIDDEN ... */
int engine_in_check(struct options_in *in, struct err *err);

#endif
