/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: know all commands: the table that drives parsing, --help and completion.
 * Owns: the table.
 * Threads: any, read-only.
 * May include: client, server/cli.h.
 */
#include "client/roster.h"

#include <stddef.h>

#include "client/commands.h"
#include "client/copy_command.h"
#include "client/execution_command.h"
#include "client/image_command.h"
#include "client/repl.h"
#include "client/run_command.h"
#include "client/server_command.h"
#include "client/session_command.h"
#include "client/shell_completion.h"
#include "client/snapshot_command.h"
#include "client/top.h"
#include "server/cli.h"

#define END                    \
    {                          \
        NULL, '\0', NULL, NULL \
    }

static const struct command_option code_options[] = {
    { "language", 'l', "NAME", "python, bash or node; by the file's ending, else python" },
    { "code", 'c', "CODE", "the code itself" },
    END,
};
static const struct command_option repl_options[] = {
    { "language", 'l', "NAME", "python (the default), bash or node" },
    { "session", 's', "ID", "a kernel over the files of this session, which stays" },
    { "kernel", 'k', "ID", "this kernel, which stays; opened if it is not there" },
    { "images", '\0', "DIRECTORY", "save images there instead of showing them" },
    END,
};
static const struct command_option create_options[] = {
    { "id", '\0', "ID", "its id; one is made by default" },
    { "setup", '\0', "COMMAND", "a step that installs something, such as 'pip install x'" },
    { "snapshot", '\0', "ID", "the files to begin with" },
    { "workspace", '\0', "DIRECTORY", "work in a directory of this host" },
    { "label", '\0', "NAME=VALUE", "repeatable" },
    { "idle-timeout", '\0', "SECONDS", "without use, after which it is removed" },
    { "ttl", '\0', "SECONDS", "after which it is removed in any case" },
    END,
};
static const struct command_option list_sessions_options[] = {
    { "quiet", 'q', NULL, "ids alone" },
    { "label", '\0', "NAME:VALUE", "those with this label" },
    END,
};
static const struct command_option fork_options[] = {
    { "id", '\0', "ID", "of the new session; one is made by default" },
    END,
};
static const struct command_option logs_options[] = {
    { "follow", 'f', NULL, "go on until the execution ends" },
    { "stdout", '\0', NULL, "standard output alone" },
    { "stderr", '\0', NULL, "standard error alone" },
    END,
};
static const struct command_option ps_options[] = {
    { "all", 'a', NULL, "also what has ended" },
    { "quiet", 'q', NULL, "ids alone" },
    { "session", 's', "ID", "those of this session" },
    { "limit", '\0', "COUNT", "at most so many (100)" },
    END,
};
static const struct command_option top_options[] = {
    { "delay", 'd', "SECONDS", "between two looks (1)" },
    { "count", 'n', "COUNT", "end after so many looks" },
    END,
};
static const struct command_option snapshot_options[] = {
    { "name", '\0', "NAME", "one with a name stays until it is removed" },
    { "label", '\0', "NAME=VALUE", "repeatable" },
    END,
};
static const struct command_option list_snapshots_options[] = {
    { "quiet", 'q', NULL, "ids alone" },
    { "session", 's', "ID", "those of this session" },
    END,
};
static const struct command_option api_options[] = {
    { "data", '\0', "JSON", "the body; @FILE reads it from a file, - from standard input" },
    { "type", '\0', "TYPE", "of the body (application/json)" },
    { "accept", '\0', "TYPE", "what to ask for (application/json)" },
    END,
};
static const struct command_option service_options[] = {
    { "tcp", '\0', "ADDRESS", "listen there too, such as 127.0.0.1:5376" },
    { "print", '\0', NULL, "only show the units" },
    END,
};
static const struct command_option token_options[] = {
    { "scope", '\0', "SCOPE", "run for an agent, full for yourself" },
    { "name", '\0', "TEXT", "what the list calls it" },
    { "expires", '\0', "TIME", "such as 12h or 30d; never by default" },
    END,
};
static const struct command_option doctor_options[] = {
    { "json", '\0', NULL, "answer with JSON" },
    END,
};
static const struct command_option mcp_install_options[] = {
    { "client", '\0', "CLIENT",
      "vscode, cursor, claude, codex, gemini, opencode, zed or jetbrains" },
    END,
};
static const struct command_option version_options[] = {
    { "syscalls", '\0', NULL, "print what becomes of each system call in a box" },
    END,
};
static const struct command_option help_options[] = {
    { "all", '\0', NULL, "every command and option, a line each, for programs" },
    END,
};

static const struct command table[] = {
    { .name = "run",
      .operands = "[--] COMMAND [ARGUMENT...]",
      .summary = "Run a program in a fresh box",
      .about =
          "Standard input is passed on unless it is a terminal (-i: also then). The exit status\n"
          "is the program's, 128 + n after signal n, and 125 when kernd itself failed. Ctrl-C\n"
          "interrupts the program, a second one ends it.",
      .groups = COMMAND_CALL | COMMAND_LIMITS | COMMAND_SERVER,
      .least = 1,
      .most = -1,
      .run = run_command_run },
    { .name = "code",
      .operands = "[FILE | -]",
      .summary = "Run code in a fresh box",
      .about =
          "The value of a last expression and figures are shown behind the output. As run else.",
      .options = code_options,
      .groups = COMMAND_CALL | COMMAND_LIMITS | COMMAND_SERVER,
      .most = 1,
      .run = run_command_code },
    { .name = "repl",
      .operands = "",
      .summary = "Work in a kernel that keeps its variables",
      .about =
          "Tab completes names. Ctrl-C interrupts, a second one starts the kernel anew; Ctrl-D\n"
          "ends. A session or kernel that is not named lasts as long as the repl. :help tells\n"
          "its own commands.",
      .options = repl_options,
      .groups = COMMAND_LIMITS | COMMAND_SERVER,
      .run = repl_run },
    { .name = "session create",
      .operands = "",
      .summary = "Make a session, whose files persist, and print its id",
      .options = create_options,
      .groups = COMMAND_LIMITS | COMMAND_SERVER,
      .run = session_command_create },
    { .name = "session list",
      .operands = "",
      .summary = "List the sessions, newest first",
      .options = list_sessions_options,
      .groups = COMMAND_SERVER,
      .run = session_command_list },
    { .name = "session show",
      .operands = "SESSION",
      .summary = "Tell all of a session",
      .groups = COMMAND_SERVER,
      .least = 1,
      .most = 1,
      .run = session_command_show },
    { .name = "session rm",
      .operands = "SESSION...",
      .summary = "End what runs in sessions and remove them with their files",
      .groups = COMMAND_SERVER,
      .least = 1,
      .most = -1,
      .run = session_command_remove },
    { .name = "session fork",
      .operands = "SESSION",
      .summary = "Make a session with a copy of the files, and print its id",
      .options = fork_options,
      .groups = COMMAND_SERVER,
      .least = 1,
      .most = 1,
      .run = session_command_fork },
    { .name = "cp",
      .operands = "FROM TO",
      .summary = "Copy files to and from a session",
      .about =
          "One of both is SESSION:PATH, the other a file or directory here, or - for standard\n"
          "input and output. Directories are copied whole: into the directory TO if that is\n"
          "there, else as TO. A path here that has a colon is written ./a:b.",
      .groups = COMMAND_SERVER,
      .least = 2,
      .most = 2,
      .run = copy_command },
    { .name = "logs",
      .operands = "EXECUTION",
      .summary = "Print what an execution wrote",
      .about = "With --stdout or --stderr byte for byte. The exit status is its own with -f.",
      .options = logs_options,
      .groups = COMMAND_SERVER,
      .least = 1,
      .most = 1,
      .run = execution_command_logs },
    { .name = "ps",
      .operands = "",
      .summary = "List what runs and waits, newest first",
      .options = ps_options,
      .groups = COMMAND_SERVER,
      .run = execution_command_list },
    { .name = "kill",
      .operands = "EXECUTION...",
      .summary = "End executions",
      .groups = COMMAND_SERVER,
      .least = 1,
      .most = -1,
      .run = execution_command_kill },
    { .name = "top",
      .operands = "",
      .summary = "Watch what runs",
      .about = "q ends it. Where standard output is no terminal it prints once.",
      .options = top_options,
      .groups = COMMAND_SERVER,
      .run = top_run },
    { .name = "snapshot create",
      .operands = "SESSION",
      .summary = "Keep the files of a session as they are now, and print the snapshot's id",
      .options = snapshot_options,
      .groups = COMMAND_SERVER,
      .least = 1,
      .most = 1,
      .run = snapshot_command_create },
    { .name = "snapshot list",
      .operands = "",
      .summary = "List the snapshots, newest first",
      .options = list_snapshots_options,
      .groups = COMMAND_SERVER,
      .run = snapshot_command_list },
    { .name = "snapshot restore",
      .operands = "SNAPSHOT SESSION",
      .summary = "Give a session the files of a snapshot, and no others",
      .groups = COMMAND_SERVER,
      .least = 2,
      .most = 2,
      .run = snapshot_command_restore },
    { .name = "snapshot rm",
      .operands = "SNAPSHOT...",
      .summary = "Remove snapshots",
      .groups = COMMAND_SERVER,
      .least = 1,
      .most = -1,
      .run = snapshot_command_remove },
    { .name = "snapshot export",
      .operands = "SNAPSHOT [FILE | -]",
      .summary = "Write the archive of a snapshot (.tar.gz)",
      .groups = COMMAND_SERVER,
      .least = 1,
      .most = 2,
      .run = snapshot_command_export },
    { .name = "snapshot import",
      .operands = "NAME [FILE | -]",
      .summary = "Keep an archive (tar, plain or compressed) as a snapshot",
      .groups = COMMAND_SERVER,
      .least = 1,
      .most = 2,
      .run = snapshot_command_import },
    { .name = "image",
      .operands = "[list | pull] [NAME]",
      .summary = "List the OCI images that boxes can have, or have the server fetch one",
      .groups = COMMAND_SERVER,
      .most = 2,
      .run = image_command },
    { .name = "api",
      .operands = "METHOD PATH",
      .summary = "Send a request to the server and print the answer's body",
      .options = api_options,
      .groups = COMMAND_SERVER,
      .least = 2,
      .most = 2,
      .run = server_command_api },
    { .name = "serve",
      .operands = "",
      .summary = "Serve until SIGTERM or SIGINT",
      .about = "Without --listen it serves on 127.0.0.1:5376 and on kernd.sock in the runtime "
               "directory.\n"
               "Clients on TCP need the token whose file is named at start.",
      .groups = COMMAND_SETTINGS,
      .program = cli_main },
    { .name = "start",
      .operands = "",
      .summary = "Start a server in the background",
      .groups = COMMAND_SETTINGS,
      .program = cli_main },
    { .name = "stop",
      .operands = "",
      .summary = "Stop the server in the background",
      .groups = COMMAND_SETTINGS,
      .program = cli_main },
    { .name = "restart",
      .operands = "",
      .summary = "Stop and start the server in the background",
      .groups = COMMAND_SETTINGS,
      .program = cli_main },
    { .name = "status",
      .operands = "",
      .summary = "Tell whether a server runs",
      .about = "Exit status 0: it runs and answers; 1: it does not answer; 3: none runs.",
      .groups = COMMAND_SETTINGS,
      .program = cli_main },
    { .name = "service install",
      .operands = "",
      .summary = "Let systemd start the server with its first client",
      .options = service_options,
      .program = cli_main },
    { .name = "service uninstall",
      .operands = "",
      .summary = "Stop the server and take it from systemd",
      .program = cli_main },
    { .name = "service status",
      .operands = "",
      .summary = "Show what systemd knows of the server",
      .program = cli_main },
    { .name = "token new",
      .operands = "",
      .summary = "Make a token, shown once",
      .options = token_options,
      .groups = COMMAND_SETTINGS,
      .program = cli_main },
    { .name = "token list",
      .operands = "",
      .summary = "List the tokens",
      .groups = COMMAND_SETTINGS,
      .program = cli_main },
    { .name = "token revoke",
      .operands = "ID",
      .summary = "Make a token worthless from now on",
      .groups = COMMAND_SETTINGS,
      .program = cli_main },
    { .name = "config show",
      .operands = "",
      .summary = "Print every setting and where it came from",
      .groups = COMMAND_SETTINGS,
      .program = cli_main },
    { .name = "config check",
      .operands = "[FILE]",
      .summary = "Tell whether a configuration file is in order",
      .program = cli_main },
    { .name = "doctor",
      .operands = "",
      .summary = "Tell whether everything is here that boxes need, and how to get it",
      .about = "It starts real boxes. Exit status 0: all is well; 1: it works, with warnings; 2:\n"
               "something must be done first.",
      .options = doctor_options,
      .groups = COMMAND_SETTINGS,
      .program = cli_main },
    { .name = "mcp",
      .operands = "",
      .summary = "Speak the Model Context Protocol on standard input and output",
      .groups = COMMAND_SETTINGS,
      .program = cli_main },
    { .name = "mcp install",
      .operands = "",
      .summary = "Print what to configure in a client",
      .options = mcp_install_options,
      .program = cli_main },
    { .name = "completion",
      .operands = "bash | zsh | fish",
      .summary = "Print the completion of this command line for a shell",
      .about =
          "For bash: eval \"$(kernd completion bash)\". `kernd completion words WORD...` prints\n"
          "what the last of the words may become.",
      .least = 1,
      .most = -1,
      .run = shell_completion_command },
    { .name = "version",
      .operands = "",
      .summary = "Print the version; with --json also that of the server that runs, if one does",
      .options = version_options,
      .groups = COMMAND_SERVER,
      .run = server_command_version },
    { .name = "help",
      .operands = "[COMMAND...]",
      .summary = "Print the commands, or how to use one",
      .options = help_options,
      .most = -1,
      .run = commands_help },
};

const struct command *roster_at(size_t index)
{
    return index < sizeof(table) / sizeof(table[0]) ? &table[index] : NULL;
}
