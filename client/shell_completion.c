/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: complete words of the command line, from the table of commands.
 * Owns: nothing.
 * Threads: main.
 * May include: client, server, api/json_view.h, lib/base.
 */
#include "client/shell_completion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/json_view.h"
#include "client/ask.h"
#include "client/lookup.h"
#include "client/roster.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "server/config.h"

#define EXIT_USAGE 2
/* As many ids as a person would look through. */
#define IDS "200"
#define GROUP_MAX ((size_t)1024)

/* The files of client/shell, embedded. */
extern const char asset_kernd_bash[];
extern const char asset_kernd_fish[];
extern const char asset_kernd_zsh[];

/* The words up to the one that is asked about. */
struct line {
    const struct flags *options; /* of kernd completion itself */
    char *const *words;
    int count; /* of those before it */
    const char *word;
    const char *prefix; /* what each answer begins with: "--name=" */
    size_t prefix_size;
};

static void offer(const struct line *line, const char *text, size_t size, const char *what)
{
    const size_t length = strlen(line->word);

    if (length <= size && memcmp(text, line->word, length) == 0) {
        (void)printf("%.*s%.*s\t%s\n", (int)line->prefix_size, line->prefix, (int)size, text, what);
    }
}

/* ---- values ---- */

/* What may stand for a value, by what --help calls it; else by the option's name. */
static const struct {
    const char *name;
    const char *choices;
} known[] = {
    { ":files", "FILE PATH FROM LOCAL[:PATH] PATH[:LOCAL] NAME=FILE HOST:BOX[:rw] COMMAND" },
    { ":directories", "DIR DIRECTORY" },
    { "/v1/sessions", "SESSION SESSION... session" },
    { "/v1/sessions:", "FROM" },
    { "/v1/executions", "EXECUTION EXECUTION..." },
    { "/v1/snapshots", "SNAPSHOT SNAPSHOT... snapshot" },
    { "auto kern bubblewrap", "engine" },
    { "python bash node", "language" },
    { "error warning info debug", "log-level" },
    { "text json", "log-format" },
    { "run full", "scope" },
    { "vscode cursor claude codex gemini opencode zed jetbrains", "client" },
};

/* Whether the list, with blanks between, has the word. */
static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);

    for (const char *at = list; *at != '\0'; at += strspn(at, " ")) {
        const size_t size = strcspn(at, " ");

        if (size == length && memcmp(at, word, length) == 0) {
            return true;
        }
        at += size;
    }
    return false;
}

/* A list of the API; with a colon behind its path each id gets one too, for a path to follow. */
static void offer_ids(const struct line *line, const char *list)
{
    const size_t length = strcspn(list, ":");
    CLEANUP_JSON_VIEW struct json_object *tree = NULL;
    CLEANUP_FREE char *target = alloc_printf("%.*s?limit=" IDS, (int)length, list);
    struct ask ask;
    int fd = -1;

    if (ask_begin(&ask, line->options) == 0 && ask.remote.host == NULL) {
        fd = connect_try(&ask.remote.way);
    }
    if (fd >= 0) {
        fd_clear(&fd);
        (void)ask_call(&ask, "GET", target, NULL, &tree);
    }
    for (size_t i = 0; i < json_view_count(tree, "items"); i++) {
        const char *id = json_view_text(json_view_item(tree, "items", i), "id");
        CLEANUP_FREE char *text = alloc_printf("%s%s", id == NULL ? "" : id, list + length);

        offer(line, text, strlen(text), "");
    }
    /* A Tab is no place to complain. */
    ask.err = (struct err)ERR_INIT;
    (void)ask_end(&ask, 0);
}

static void offer_choices(const struct line *line, const char *choices)
{
    if (choices[0] == ':') {
        (void)printf("%s\n", choices);
    } else if (choices[0] == '/') {
        offer_ids(line, choices);
    } else {
        for (const char *at = choices; *at != '\0'; at += strspn(at, " ")) {
            const size_t size = strcspn(at, " ");

            offer(line, at, size, "");
            at += size;
        }
    }
}

static void offer_value(const struct line *line, const char *name)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (has_word(known[i].choices, name)) {
            offer_choices(line, known[i].name);
        }
    }
}

/* ---- options ---- */

/* "--log-level" of log_level, fresh. */
static char *setting_option(const char *key)
{
    char *option = alloc_printf("--%s", key);

    for (char *at = option; *at != '\0'; at++) {
        if (*at == '_') {
            *at = '-';
        }
    }
    return option;
}

/* What a word that is an option of the command calls its value, NULL: it has none. */
static const char *value_of(const struct command *command, const char *word, size_t size)
{
    const struct command_option *option;
    const char *key;

    for (size_t i = 0; (option = flags_of(command, i)) != NULL; i++) {
        const bool is_long = size > 2 && strlen(option->name) == size - 2 &&
                             memcmp(option->name, word + 2, size - 2) == 0;
        const bool is_letter = size == 2 && word[1] != '-' && word[1] == option->letter;

        if (is_long || is_letter) {
            return option->value;
        }
    }
    if ((command->groups & COMMAND_SETTINGS) == 0 || size < 3) {
        return NULL;
    }
    for (size_t i = 0; (key = config_key(i)) != NULL; i++) {
        CLEANUP_FREE char *name = setting_option(key);

        if (strlen(name) == size && memcmp(name, word, size) == 0) {
            return config_value(i);
        }
    }
    return size == 8 && memcmp(word, "--config", size) == 0 ? "FILE" : NULL;
}

static void offer_options(const struct line *line, const struct command *command)
{
    const struct command_option *option;
    const char *key;

    for (size_t i = 0; (option = flags_of(command, i)) != NULL; i++) {
        CLEANUP_FREE char *name = alloc_printf("--%s", option->name);

        offer(line, name, strlen(name), option->help);
    }
    if ((command->groups & COMMAND_SETTINGS) == 0) {
        return;
    }
    offer(line, "--config", strlen("--config"), "read this configuration file instead");
    for (size_t i = 0; (key = config_key(i)) != NULL; i++) {
        CLEANUP_FREE char *name = setting_option(key);

        offer(line, name, strlen(name), "a setting");
    }
}

/* The value of an option by what it is called, and by the option's name. */
static void offer_option_value(const struct line *line, const char *option, size_t size,
                               const char *value)
{
    CLEANUP_FREE char *name = alloc_printf("%.*s", (int)(size > 2 ? size - 2 : 0), option + 2);

    offer_value(line, text_equal(option, "-s")   ? "session"
                      : text_equal(option, "-l") ? "language"
                                                 : name);
    offer_value(line, value);
}

/* ---- operands and commands ---- */

/* Words in small letters stand for themselves: "[list | pull] [NAME]". */
static void offer_operands(const struct line *line, const char *operands)
{
    static const char between[] = " []|";

    for (const char *at = operands + strspn(operands, between); *at != '\0';
         at += strspn(at, between)) {
        const size_t size = strcspn(at, between);
        CLEANUP_FREE char *word = alloc_printf("%.*s", (int)size, at);

        if (word[0] >= 'a' && word[0] <= 'z') {
            offer(line, word, size, "");
        } else {
            offer_value(line, word);
        }
        at += size;
    }
}

/* What a group's name stands for: the last words of its commands, from this one on; fresh. */
static char *list_group(size_t first, size_t size)
{
    const char *group = roster_at(first)->name;
    CLEANUP_BUF struct buf list = BUF_INIT(GROUP_MAX);
    const struct command *row;

    for (size_t i = first; (row = roster_at(i)) != NULL && strncmp(row->name, group, size) == 0 &&
                           row->name[size] == ' ';
         i++) {
        (void)buf_printf(&list, "%s%s", i == first ? "" : ", ", row->name + size + 1);
    }
    return buf_take(&list, NULL);
}

/* The next word of each command whose name begins with the words so far. */
static void offer_commands(const struct line *line)
{
    const struct command *row;
    const char *before = "";
    size_t size_before = 0;

    for (size_t i = 0; (row = roster_at(i)) != NULL; i++) {
        const char *name = row->name;
        size_t size;
        int same = 0;

        for (; same < line->count && *name != '\0'; same++) {
            size = strcspn(name, " ");
            if (strlen(line->words[same]) != size || memcmp(line->words[same], name, size) != 0) {
                break;
            }
            name += size + (name[size] == ' ' ? 1 : 0);
        }
        size = strcspn(name, " ");
        /* Commands of one group stand together. */
        if (same == line->count && size > 0 &&
            (size != size_before || memcmp(name, before, size) != 0)) {
            CLEANUP_FREE char *group =
                name[size] == '\0' ? NULL : list_group(i, (size_t)(name - row->name) + size);

            offer(line, name, size, group == NULL ? row->summary : group);
            before = name;
            size_before = size;
        }
    }
}

static void complete_argument(struct line *line, const struct command *command)
{
    const char *last = line->words[line->count - 1];
    const char *value = last[0] == '-' ? value_of(command, last, strlen(last)) : NULL;
    const size_t name_size = strcspn(line->word, "=");

    if (value != NULL) {
        offer_option_value(line, last, strlen(last), value);
    } else if (line->word[0] == '-' && line->word[name_size] == '=') {
        value = value_of(command, line->word, name_size);
        line->prefix = line->word;
        line->prefix_size = name_size + 1;
        line->word += name_size + 1;
        if (value != NULL) {
            offer_option_value(line, line->prefix, name_size, value);
        }
    } else if (line->word[0] == '-') {
        offer_options(line, command);
    } else {
        offer_operands(line, command->operands);
    }
}

/* The words begin behind "words". */
static void complete(const struct flags *options)
{
    const int count = (int)options->operands.count - 1;
    char *const *words = options->operands.items + 1;
    struct line line = { .options = options, .words = words, .count = count - 1, .prefix = "" };
    const struct command *command;
    int used = 0;

    if (count < 1) {
        return;
    }
    line.word = words[count - 1];
    command = lookup_command(line.count, words, &used);
    if (command != NULL && text_equal(command->name, "help") && line.word[0] != '-') {
        line.words++;
        line.count--;
        command = NULL;
    }
    if (command == NULL || (used == line.count && line.word[0] != '-')) {
        offer_commands(&line);
    }
    if (command != NULL) {
        complete_argument(&line, command);
    }
}

int shell_completion_command(const struct flags *options)
{
    static const struct {
        const char *shell;
        const char *script;
    } shells[] = { { "bash", asset_kernd_bash },
                   { "fish", asset_kernd_fish },
                   { "zsh", asset_kernd_zsh } };
    const char *word = flags_operand(options, 0);

    if (text_equal(word, "words")) {
        complete(options);
        return EXIT_SUCCESS;
    }
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (text_equal(word, shells[i].shell)) {
            (void)fputs(shells[i].script, stdout);
            return EXIT_SUCCESS;
        }
    }
    (void)fprintf(stderr, "kernd: completion is for bash, zsh and fish, not %.60s\n", word);
    return EXIT_USAGE;
}
