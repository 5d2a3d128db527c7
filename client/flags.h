/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flags: the arguments of one command, taken apart by its row of the table. For one thread.
 */
#ifndef KERND_CLIENT_FLAGS_H
#define KERND_CLIENT_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

#include "client/command.h"
#include "lib/base/err.h"
#include "lib/base/strv.h"

struct flags_given {
    const struct command_option *option;
    const char *value; /* borrowed from the arguments; "" of one that stands alone */
};

struct flags {
    const struct command *command;
    struct flags_given *given; /* in their order */
    size_t count;
    struct strv operands;
};

/*
 * "--name value", "--name=value", "-n value", "-nvalue", switches ("-a", "-ab"); "--" ends them,
 * and so does the first operand of a command whose operands are a program ("COMMAND" in them). 0,
 * or -1 BAD_VALUE with a remedy. flags_done in any case.
 */
int flags_parse(const struct command *command, int count, char *const *arguments,
                struct flags *ret_options, struct err *err);
void flags_done(struct flags *options);

/* The last value of an option, NULL: not given. */
const char *flags_value(const struct flags *options, const char *name);
bool flags_has(const struct flags *options, const char *name);

/* The values of an option one after the other: *at starts at 0; NULL behind the last. */
const char *flags_next(const struct flags *options, const char *name, size_t *at);

/* An operand, "" where there is none. */
const char *flags_operand(const struct flags *options, size_t index);

/* All options of a command, own ones first: index from 0, NULL behind the last. */
const struct command_option *flags_of(const struct command *command, size_t index);

#endif
