/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command: what a row of the table of commands (roster.c) says. The table alone drives parsing,
 * --help, `kernd help --all`, the shells' completion and the lists of the manual pages.
 */
#ifndef KERND_CLIENT_COMMAND_H
#define KERND_CLIENT_COMMAND_H

#include <stdbool.h>

struct flags;

/* kernd's own failures, as env(1) and others have it: a program's own codes stay told apart. */
#define COMMAND_FAILED 125

struct command_option {
    const char *name;  /* without dashes; NULL ends a list */
    char letter;       /* '\0': none */
    const char *value; /* what to call its value in --help; NULL: it stands alone */
    const char *help;
};

/* The lists of options that several commands take, besides their own. */
enum command_groups {
    COMMAND_SERVER = 1,   /* how to reach the server, --json */
    COMMAND_LIMITS = 2,   /* limits and variables of calls and sessions */
    COMMAND_CALL = 4,     /* of a call that runs a program */
    COMMAND_SETTINGS = 8, /* the settings of the server; a program's, which reads them itself */
};

struct command {
    const char *name;     /* "session create" */
    const char *operands; /* behind the options, "" for none */
    const char *summary;
    const char *about;                    /* further lines of --help, or NULL */
    const struct command_option *options; /* its own, or NULL */
    unsigned groups;
    int least; /* operands */
    int most;  /* -1: any number */
    /* The process's exit status. */
    int (*run)(const struct flags *options);
    /* Instead of run: a program that reads its own arguments, which begin with its name; the
     * options are for --help and completion alone. */
    int (*program)(int count, char *const *arguments);
};

#endif
