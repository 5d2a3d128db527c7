/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: find and start the command that is asked for.
 * Owns: nothing.
 * Threads: main.
 * May include: client, server, lib/base.
 */
#include "client/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lookup.h"
#include "client/manual.h"
#include "client/roster.h"
#include "lib/base/nearest.h"
#include "lib/base/text.h"
#include "server/cli.h"

#define EXIT_USAGE 2
#define ROWS_MAX 64 /* of the roster */

/* "session" alone: its commands. Returns how many there are. */
static int print_group(const char *word, FILE *out)
{
    const size_t length = strlen(word);
    const struct command *row;
    int count = 0;

    for (size_t i = 0; (row = roster_at(i)) != NULL; i++) {
        if (strncmp(row->name, word, length) == 0 && row->name[length] == ' ') {
            const char *blank = row->operands[0] == '\0' ? "" : " ";

            (void)fprintf(out, "  kernd %s%s%s\n      %s\n", row->name, blank, row->operands,
                          row->summary);
            count++;
        }
    }
    return count;
}

static void tell_unknown(const char *word)
{
    char names[ROWS_MAX][NEAREST_NAME_MAX + 1];
    struct nearest nearest;
    const struct command *row;
    const char *meant;

    nearest_init(&nearest, word);
    for (size_t i = 0; (row = roster_at(i)) != NULL && i < ROWS_MAX; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%.*s", (int)strcspn(row->name, " "), row->name);
        nearest_offer(&nearest, names[i]); /* which keeps it */
    }
    meant = nearest_best(&nearest);
    (void)fprintf(stderr, "kernd: unknown command %.60s%s%s%s; see: kernd help\n", word,
                  meant != NULL ? ", did you mean " : "", meant != NULL ? meant : "",
                  meant != NULL ? "?" : "");
}

static int unknown(int count, char *const *words)
{
    if (count == 0) {
        manual_overview(stderr);
    } else if (words[0][0] == '-' || print_group(words[0], stderr) == 0) {
        tell_unknown(words[0]);
    }
    return EXIT_USAGE;
}

int commands_help(const struct flags *options)
{
    const int count = (int)options->operands.count;
    const struct command *command;
    int used = 0;

    if (flags_has(options, "all")) {
        manual_list(stdout);
        return EXIT_SUCCESS;
    }
    if (count == 0) {
        manual_overview(stdout);
        return EXIT_SUCCESS;
    }
    command = lookup_command(count, options->operands.items, &used);
    if (command != NULL) {
        manual_command(command, stdout);
        return EXIT_SUCCESS;
    }
    return print_group(options->operands.items[0], stdout) > 0
               ? EXIT_SUCCESS
               : unknown(count, options->operands.items);
}

static int start(const struct command *command, int count, char *const *arguments)
{
    struct err err = ERR_INIT;
    struct flags options;
    int status = COMMAND_FAILED;

    if (flags_parse(command, count, arguments, &options, &err) < 0) {
        (void)fprintf(stderr, "kernd: %s; %s\n", err.msg, err.remedy);
    } else if (flags_has(&options, "help")) {
        manual_command(command, stdout);
        status = EXIT_SUCCESS;
    } else {
        status = command->run(&options);
    }
    flags_done(&options);
    return status;
}

static bool asks_for_help(int count, char *const *arguments)
{
    for (int i = 0; i < count; i++) {
        if (text_equal(arguments[i], "--help") || text_equal(arguments[i], "-h")) {
            return true;
        }
    }
    return false;
}

int commands_main(int count, char *const *arguments)
{
    char *const *words = arguments + (count > 0 ? 1 : 0);
    const struct command *command;
    int used = 0;

    count = count > 0 ? count - 1 : 0;
    if (count > 0 && (text_equal(words[0], "--help") || text_equal(words[0], "-h"))) {
        manual_overview(stdout);
        return EXIT_SUCCESS;
    }
    if (count > 0 && text_equal(words[0], "--version")) {
        return cli_main(count + 1, arguments);
    }
    command = lookup_command(count, words, &used);
    if (command == NULL) {
        return unknown(count, words);
    }
    if (command->program == NULL) {
        return start(command, count - used, words + used);
    }
    if (asks_for_help(count - used, words + used)) {
        manual_command(command, stdout);
        return EXIT_SUCCESS;
    }
    return command->program(count + 1, arguments);
}
