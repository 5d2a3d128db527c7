/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the table of clients; kernd's entry in the form of each.
 * Owns: the table.
 * Threads: any (pure functions, but for the environment).
 * May include: server, api/json_out.h, lib/base.
 */
#include "server/mcp_client.h"

#include <stdlib.h>
#include <string.h>

#include "api/json_out.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "server/jsonc.h"
#include "server/places.h"
#include "server/toml_table.h"

#define ENTRY_MAX ((size_t)64 << 10)
#define NAME "kernd"
#define CODEX_TABLE "mcp_servers"

enum base { BASE_HOME, BASE_CONFIG, BASE_CODEX };

struct mcp_client {
    const char *name;
    const char *where;
    const char *file;    /* below the base */
    const char *project; /* below a project */
    const char *section; /* NULL: TOML */
    const char *type;    /* of a server that is started; NULL: it has none */
    const char *url_type;
    const char *url_key;
    enum base base;
    bool command_is_list; /* the program and its arguments in one */
};

static const struct mcp_client clients[] = {
    { "vscode", "~/.config/Code/User/mcp.json, or .vscode/mcp.json of the project",
      "Code/User/mcp.json", ".vscode/mcp.json", "servers", "stdio", "http", "url", BASE_CONFIG,
      false },
    { "cursor", "~/.cursor/mcp.json, or .cursor/mcp.json of the project", ".cursor/mcp.json",
      ".cursor/mcp.json", "mcpServers", NULL, NULL, "url", BASE_HOME, false },
    { "claude", "~/.claude.json, or .mcp.json of the project", ".claude.json", ".mcp.json",
      "mcpServers", "stdio", "http", "url", BASE_HOME, false },
    { "codex", "~/.codex/config.toml, or .codex/config.toml of the project", "config.toml",
      ".codex/config.toml", NULL, NULL, NULL, "url", BASE_CODEX, false },
    { "gemini", "~/.gemini/settings.json, or .gemini/settings.json of the project",
      ".gemini/settings.json", ".gemini/settings.json", "mcpServers", NULL, NULL, "httpUrl",
      BASE_HOME, false },
    { "opencode", "~/.config/opencode/opencode.json, or opencode.json of the project",
      "opencode/opencode.json", "opencode.json", "mcp", "local", "remote", "url", BASE_CONFIG,
      true },
    { "zed", "~/.config/zed/settings.json, or .zed/settings.json of the project",
      "zed/settings.json", ".zed/settings.json", "context_servers", NULL, NULL, "url", BASE_CONFIG,
      false },
    { "jetbrains",
      "~/.junie/mcp/mcp.json, or .junie/mcp/mcp.json of the project; AI Assistant takes the same "
      "JSON in Settings | Tools | AI Assistant | Model Context Protocol",
      ".junie/mcp/mcp.json", ".junie/mcp/mcp.json", "mcpServers", NULL, NULL, "url", BASE_HOME,
      false },
};

#define COUNT (sizeof(clients) / sizeof(clients[0]))

const struct mcp_client *mcp_client_find(const char *name)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (text_equal(clients[i].name, name)) {
            return &clients[i];
        }
    }
    return NULL;
}

const char *mcp_client_name(size_t index)
{
    return index < COUNT ? clients[index].name : NULL;
}

const char *mcp_client_where(const struct mcp_client *client)
{
    return client->where;
}

/* ---- the file ---- */

/* An absolute path of the environment; relative ones count as unset (XDG base directories). */
static const char *environment(const char *name)
{
    const char *value = places_environment(name);

    return value != NULL && value[0] == '/' ? value : NULL;
}

char *mcp_client_file(const struct mcp_client *client, const char *project)
{
    const char *home = environment("HOME");
    const char *config = environment("XDG_CONFIG_HOME");
    const char *codex = environment("CODEX_HOME");

    if (project != NULL) {
        return alloc_printf("%s/%s", project, client->project);
    }
    if (client->base == BASE_CONFIG && config != NULL) {
        return alloc_printf("%s/%s", config, client->file);
    }
    if (client->base == BASE_CODEX && codex != NULL) {
        return alloc_printf("%s/%s", codex, client->file);
    }
    if (home == NULL) {
        return NULL;
    }
    return alloc_printf("%s/%s%s", home,
                        client->base == BASE_CONFIG  ? ".config/"
                        : client->base == BASE_CODEX ? ".codex/"
                                                     : "",
                        client->file);
}

/* ---- the entry ---- */

static void write_list(struct json_out *json, const struct strv *texts, size_t from)
{
    json_out_open(json, '[');
    for (size_t i = from; i < texts->count; i++) {
        json_out_string(json, texts->items[i]);
    }
    json_out_close(json, ']');
}

static void write_type(struct json_out *json, const char *type)
{
    if (type != NULL) {
        json_out_key(json, "type");
        json_out_string(json, type);
    }
}

static void write_url(struct json_out *json, const struct mcp_client *client,
                      const struct mcp_client_way *way)
{
    CLEANUP_FREE char *bearer = alloc_printf("Bearer %s", way->token);

    write_type(json, client->url_type);
    json_out_key(json, client->url_key);
    json_out_string(json, way->url);
    json_out_key(json, "headers");
    json_out_open(json, '{');
    json_out_key(json, "Authorization");
    json_out_string(json, bearer);
    json_out_close(json, '}');
}

static void write_command(struct json_out *json, const struct mcp_client *client,
                          const struct strv *command)
{
    write_type(json, client->type);
    json_out_key(json, "command");
    if (client->command_is_list) {
        write_list(json, command, 0);
        return;
    }
    json_out_string(json, command->items[0]);
    json_out_key(json, "args");
    write_list(json, command, 1);
}

static void write_entry(const struct mcp_client *client, const struct mcp_client_way *way,
                        struct buf *out)
{
    struct json_out json;

    json_out_init(&json, out);
    json_out_open(&json, '{');
    if (way->url != NULL) {
        write_url(&json, client, way);
    } else {
        write_command(&json, client, way->command);
    }
    if (client->command_is_list) {
        json_out_key(&json, "enabled");
        json_out_bool(&json, true);
    }
    json_out_close(&json, '}');
}

/* Strings and lists of JSON are such of TOML, too. */
static void write_lines(const struct mcp_client_way *way, struct buf *out)
{
    struct json_out json;

    (void)buf_append_text(out, way->url != NULL ? "url = " : "command = ");
    json_out_init(&json, out);
    json_out_string(&json, way->url != NULL ? way->url : way->command->items[0]);
    if (way->url != NULL) {
        /* Our tokens have no character that would have to be escaped. */
        (void)buf_printf(out, "\nhttp_headers = { Authorization = \"Bearer %s\" }\n", way->token);
        return;
    }
    (void)buf_append_text(out, "\nargs = ");
    json_out_init(&json, out);
    write_list(&json, way->command, 1);
    (void)buf_append_text(out, "\n");
}

int mcp_client_merge(const struct mcp_client *client, const struct mcp_client_way *way,
                     const struct buf *text, struct buf *out, struct err *err)
{
    static const char *const keys[] = { "command", "args", "url", "http_headers", NULL };
    CLEANUP_BUF struct buf entry = BUF_INIT(ENTRY_MAX);
    const char *before = text->data == NULL ? "" : text->data;

    if (client->section == NULL) {
        write_lines(way, &entry);
        return toml_table_set(
            before, text->size,
            &(struct toml_table){
                .parent = CODEX_TABLE, .name = NAME, .lines = entry.data, .keys = keys },
            out, err);
    }
    write_entry(client, way, &entry);
    return jsonc_set(
        before, text->size,
        &(struct jsonc_member){ .section = client->section, .name = NAME, .value = entry.data },
        out, err);
}
