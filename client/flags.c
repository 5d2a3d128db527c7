/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: take the arguments of a command apart.
 * Owns: nothing.
 * Threads: main.
 * May include: client, lib/base.
 */
#include "client/flags.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"

static const struct command_option server_options[] = {
    { "json", '\0', NULL, "answer with JSON, also when it fails" },
    { "socket", '\0', "PATH", "the server's socket (KERND_SOCKET); none is started then" },
    { "url", '\0', "URL", "a server on TCP, http://HOST:PORT (KERND_URL)" },
    { "token-file", '\0', "FILE", "the token for --url (KERND_TOKEN_FILE)" },
    { NULL, '\0', NULL, NULL },
};

static const struct command_option help_options[] = {
    { "help", 'h', NULL, "print this text" },
    { NULL, '\0', NULL, NULL },
};

static const struct command_option limit_options[] = {
    { "env", 'e', "NAME[=VALUE]", "set a variable, or pass on one of this shell; repeatable" },
    { "timeout", 't', "SECONDS", "time the program may take" },
    { "memory", 'm', "MIB", "memory of all its processes together" },
    { "cpus", '\0', "CORES", "processor time per second, in cores" },
    { "pids", '\0', "COUNT", "processes and threads at once" },
    { "disk", '\0', "MIB", "size of the workspace" },
    { "max-output", '\0', "BYTES", "kept of each of stdout and stderr" },
    { "network", '\0', NULL, "the host's network; else there is none" },
    { "mount", '\0', "HOST:BOX[:rw]", "a directory or file of this host; repeatable" },
    { "image", '\0', "NAME", "an OCI image" },
    { "engine", '\0', "NAME", "auto, kern or bubblewrap" },
    { NULL, '\0', NULL, NULL },
};

static const struct command_option call_options[] = {
    { "session", 's', "ID", "run on the files of this session" },
    { "file", 'f', "LOCAL[:PATH]", "put a file into the workspace before; repeatable" },
    { "fetch", '\0', "PATH[:LOCAL]", "bring a file of the workspace back after; repeatable" },
    { "secret", '\0', "NAME=FILE", "a file /run/secrets/NAME of this box alone; repeatable" },
    { "cwd", 'w', "DIRECTORY", "working directory in the box" },
    { "interactive", 'i', NULL, "pass standard input on even if it is a terminal" },
    { "no-stdin", 'n', NULL, "pass no standard input on" },
    { "detach", 'd', NULL, "print the execution's id and leave it running in its session" },
    { "id", '\0', "ID", "the execution's id" },
    { "images", '\0', "DIRECTORY", "save the images of results there instead of showing them" },
    { NULL, '\0', NULL, NULL },
};

/* The arguments and how far they are read. */
struct words {
    int count;
    char *const *arguments;
    int at;
};

static size_t length_of(const struct command_option *list)
{
    size_t count = 0;

    while (list != NULL && list[count].name != NULL) {
        count++;
    }
    return count;
}

const struct command_option *flags_of(const struct command *command, size_t index)
{
    const struct {
        const struct command_option *list;
        bool taken;
    } lists[] = {
        { command->options, true },
        { call_options, (command->groups & COMMAND_CALL) != 0 },
        { limit_options, (command->groups & COMMAND_LIMITS) != 0 },
        { server_options, (command->groups & COMMAND_SERVER) != 0 },
        { help_options, true },
    };

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const size_t length = lists[i].taken ? length_of(lists[i].list) : 0;

        if (index < length) {
            return &lists[i].list[index];
        }
        index -= length;
    }
    return NULL;
}

/* name has length bytes; a letter has one. */
static const struct command_option *find(const struct command *command, const char *name,
                                         size_t length, bool by_letter)
{
    const struct command_option *option;

    for (size_t i = 0; (option = flags_of(command, i)) != NULL; i++) {
        if (by_letter ? option->letter == name[0]
                      : strlen(option->name) == length && memcmp(option->name, name, length) == 0) {
            return option;
        }
    }
    return NULL;
}

static int refuse(const struct command *command, const char *what, const char *argument,
                  struct err *err)
{
    (void)err_set(err, ERR_BAD_VALUE, 0, "%s %.80s", what, argument);
    return err_remedy(err, "see: kernd %s --help", command->name);
}

static void add(struct flags *options, const struct command_option *option, const char *value)
{
    options->given = alloc_resize(options->given, options->count + 1, sizeof(options->given[0]));
    options->given[options->count++] = (struct flags_given){ option, value };
}

/* Behind the name of an option stands `rest` in the same argument; else its value is the next one.
 */
static int take_value(struct flags *options, const struct command_option *option, const char *rest,
                      struct words *words, struct err *err)
{
    if (rest[0] != '\0') {
        rest += rest[0] == '=' ? 1 : 0;
    } else if (words->at + 1 < words->count) {
        rest = words->arguments[++words->at];
    } else {
        return refuse(options->command, "a value is missing behind", words->arguments[words->at],
                      err);
    }
    add(options, option, rest);
    return 0;
}

/* "--name", "--name=value", "--name value" */
static int take_long(struct flags *options, struct words *words, struct err *err)
{
    const char *argument = words->arguments[words->at];
    const char *name = argument + 2;
    const size_t length = strcspn(name, "=");
    const struct command_option *option = find(options->command, name, length, false);

    if (option == NULL) {
        return refuse(options->command, "unknown option", argument, err);
    }
    if (option->value != NULL) {
        return take_value(options, option, name + length, words, err);
    }
    if (name[length] != '\0') {
        return refuse(options->command, "this option takes no value:", argument, err);
    }
    add(options, option, "");
    return 0;
}

/* "-a", "-ab", "-nvalue", "-n=value", "-n value": switches may stand together. */
static int take_letters(struct flags *options, struct words *words, struct err *err)
{
    const char *argument = words->arguments[words->at];

    for (const char *letter = argument + 1; *letter != '\0'; letter++) {
        const struct command_option *option = find(options->command, letter, 1, true);

        if (option == NULL) {
            return refuse(options->command, "unknown option", argument, err);
        }
        if (option->value != NULL) {
            return take_value(options, option, letter + 1, words, err);
        }
        add(options, option, "");
    }
    return 0;
}

static int check_operands(const struct flags *options, struct err *err)
{
    const struct command *command = options->command;
    const int count = (int)options->operands.count;

    if (flags_has(options, "help")) {
        return 0;
    }
    if (count < command->least) {
        (void)err_set(err, ERR_BAD_VALUE, 0, "something is missing: kernd %s %s", command->name,
                      command->operands);
        return err_remedy(err, "see: kernd %s --help", command->name);
    }
    if (command->most >= 0 && count > command->most) {
        return refuse(command, "unexpected argument",
                      options->operands.items[(size_t)command->most], err);
    }
    return 0;
}

int flags_parse(const struct command *command, int count, char *const *arguments,
                struct flags *ret_options, struct err *err)
{
    /* What stands behind a program's name is the program's. */
    const bool is_program = strstr(command->operands, "COMMAND") != NULL;
    struct words words = { .count = count, .arguments = arguments };
    bool only_operands = false;
    int result = 0;

    *ret_options = (struct flags){ .command = command };
    for (; words.at < count && result == 0; words.at++) {
        const char *argument = arguments[words.at];

        if (only_operands || argument[0] != '-' || argument[1] == '\0') {
            strv_add(&ret_options->operands, argument);
            only_operands = only_operands || is_program;
        } else if (text_equal(argument, "--")) {
            only_operands = true;
        } else if (argument[1] == '-') {
            result = take_long(ret_options, &words, err);
        } else {
            result = take_letters(ret_options, &words, err);
        }
    }
    return result < 0 ? -1 : check_operands(ret_options, err);
}

void flags_done(struct flags *options)
{
    free(options->given);
    strv_done(&options->operands);
    *options = (struct flags){ .command = NULL };
}

const char *flags_next(const struct flags *options, const char *name, size_t *at)
{
    while (*at < options->count) {
        const struct flags_given *given = &options->given[(*at)++];

        if (text_equal(given->option->name, name)) {
            return given->value;
        }
    }
    return NULL;
}

const char *flags_value(const struct flags *options, const char *name)
{
    const char *last = NULL;
    const char *value;
    size_t at = 0;

    while ((value = flags_next(options, name, &at)) != NULL) {
        last = value;
    }
    return last;
}

bool flags_has(const struct flags *options, const char *name)
{
    return flags_value(options, name) != NULL;
}

const char *flags_operand(const struct flags *options, size_t index)
{
    return index < options->operands.count ? options->operands.items[index] : "";
}
