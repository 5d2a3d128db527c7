/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: print the configuration of clients of the Model Context Protocol.
 * Owns: the table of clients.
 * Threads: main.
 * May include: lib/base.
 */
#include "server/mcp_install.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/text.h"

#define EXIT_USAGE 2

struct client {
    const char *name;
    const char *where;
    const char *before; /* of the program's path */
    const char *after;
};

#define SERVERS_BEFORE "{\n  \"mcpServers\": {\n    \"kernd\": { \"command\": \""
#define SERVERS_AFTER "\", \"args\": [\"mcp\"] }\n  }\n}\n"

static const struct client clients[] = {
    { "vscode", ".vscode/mcp.json of the project",
      "{\n  \"servers\": {\n    \"kernd\": { \"type\": \"stdio\", \"command\": \"", SERVERS_AFTER },
    { "cursor", "~/.cursor/mcp.json, or .cursor/mcp.json of the project", SERVERS_BEFORE,
      SERVERS_AFTER },
    { "claude", "a shell", "claude mcp add --scope user kernd -- \"", "\" mcp\n" },
    { "codex", "~/.codex/config.toml", "[mcp_servers.kernd]\ncommand = \"",
      "\"\nargs = [\"mcp\"]\n" },
    { "gemini", "~/.gemini/settings.json", SERVERS_BEFORE, SERVERS_AFTER },
    { "opencode", "opencode.json",
      "{\n  \"mcp\": {\n    \"kernd\": { \"type\": \"local\", \"command\": [\"",
      "\", \"mcp\"], \"enabled\": true }\n  }\n}\n" },
    { "zed", "~/.config/zed/settings.json",
      "{\n  \"context_servers\": {\n    \"kernd\": { \"source\": \"custom\", \"command\": \"",
      "\", \"args\": [\"mcp\"], \"env\": {} }\n  }\n}\n" },
    { "jetbrains", "Settings | Tools | AI Assistant | Model Context Protocol, as JSON",
      SERVERS_BEFORE, SERVERS_AFTER },
};

static int usage(void)
{
    (void)fputs("kernd: usage: kernd mcp install --client NAME, NAME one of", stderr);
    for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
        (void)fprintf(stderr, " %s", clients[i].name);
    }
    (void)fputs("\n", stderr);
    return EXIT_USAGE;
}

/* Quotes and backslashes are escaped alike in JSON, TOML and the shell's double quotes. */
static void print_path(const char *path)
{
    for (const char *at = path; *at != '\0'; at++) {
        (void)printf("%s%c", *at == '"' || *at == '\\' ? "\\" : "", *at);
    }
}

static int print(const struct client *client)
{
    char program[PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);

    if (size < 0) {
        (void)fputs("kernd: the path of this program is not known\n", stderr);
        return EXIT_FAILURE;
    }
    program[size] = '\0';
    (void)fprintf(stderr, "For %s:\n", client->where);
    (void)fputs(client->before, stdout);
    print_path(program);
    (void)fputs(client->after, stdout);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int mcp_install_main(int count, char *const *arguments)
{
    const char *name = NULL;

    if (count == 2 && text_equal(arguments[0], "--client")) {
        name = arguments[1];
    } else if (count == 1 && text_starts_with(arguments[0], "--client=")) {
        name = arguments[0] + strlen("--client=");
    }
    for (size_t i = 0; name != NULL && i < sizeof(clients) / sizeof(clients[0]); i++) {
        if (text_equal(clients[i].name, name)) {
            return print(&clients[i]);
        }
    }
    return usage();
}
