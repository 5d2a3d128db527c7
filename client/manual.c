/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: print what the table of commands says.
 * Owns: nothing.
 * Threads: main.
 * May include: client, server/config.h, lib/base.
 */
#include "client/manual.h"

#include "client/flags.h"
#include "client/roster.h"
#include "server/config.h"

#define COLUMN 28

static void print_option(const struct command_option *option, FILE *out)
{
    char text[96];

    (void)snprintf(text, sizeof(text), "%c%c%s--%s%s%s", option->letter == '\0' ? ' ' : '-',
                   option->letter == '\0' ? ' ' : option->letter,
                   option->letter == '\0' ? "  " : ", ", option->name,
                   option->value == NULL ? "" : " ", option->value == NULL ? "" : option->value);
    (void)fprintf(out, "  %-*s  %s\n", COLUMN, text, option->help);
}

void manual_command(const struct command *command, FILE *out)
{
    const bool has_options = flags_of(command, 0) != NULL;
    const struct command_option *option;

    (void)fprintf(out, "Usage: kernd %s%s%s%s\n\n%s.\n", command->name,
                  has_options ? " [OPTIONS]" : "", command->operands[0] == '\0' ? "" : " ",
                  command->operands, command->summary);
    if (command->about != NULL) {
        (void)fprintf(out, "\n%s\n", command->about);
    }
    if (has_options) {
        (void)fputs("\nOptions:\n", out);
    }
    for (size_t i = 0; (option = flags_of(command, i)) != NULL; i++) {
        print_option(option, out);
    }
    if ((command->groups & COMMAND_SETTINGS) != 0) {
        (void)fputs(
            "\nSettings, each also a key of the configuration file (log_level = debug) and a\n"
            "variable (KERND_LOG_LEVEL=debug); options win over variables, these over the file:\n"
            "  --config FILE                  read this configuration file instead\n",
            out);
        config_help(out);
    }
}

void manual_overview(FILE *out)
{
    const struct command *command;

    (void)fputs("kernd runs code in fresh, kernel-isolated boxes on this machine.\n"
                "\n"
                "Usage: kernd COMMAND [OPTIONS] [ARGUMENTS]\n"
                "\n",
                out);
    for (size_t i = 0; (command = roster_at(i)) != NULL; i++) {
        (void)fprintf(out, "  %-*s  %s\n", COLUMN - 8, command->name, command->summary);
    }
    (void)fputs(
        "\n"
        "kernd COMMAND --help tells more. The commands talk to the server of this user over\n"
        "its Unix socket and start it if need be. They end with the program's exit code,\n"
        "128 + n after signal n, and with 125 when kernd itself failed.\n",
        out);
}

void manual_list(FILE *out)
{
    const struct command *command;
    const struct command_option *option;

    for (size_t i = 0; (command = roster_at(i)) != NULL; i++) {
        (void)fprintf(out, "command\t%s\t%s\t%s\n", command->name, command->operands,
                      command->summary);
        for (size_t k = 0; (option = flags_of(command, k)) != NULL; k++) {
            const char letter[] = { '-', option->letter, '\0' };

            (void)fprintf(out, "option\t%s\t--%s\t%s\t%s\t%s\n", command->name, option->name,
                          option->letter == '\0' ? "" : letter,
                          option->value == NULL ? "" : option->value, option->help);
        }
        if ((command->groups & COMMAND_SETTINGS) != 0) {
            (void)fprintf(out, "settings\t%s\n", command->name);
        }
    }
    config_list(out);
}
