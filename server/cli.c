/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read the command line; start what it asks for.
 * Owns: nothing.
 * Threads: main.
 * May include: server, lib/base, sandbox.h.
 */
#include "server/cli.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/sandbox/sandbox.h"
#include "server/config_command.h"
#include "server/control.h"
#include "server/daemon.h"
#include "server/doctor.h"
#include "server/mcp_bridge.h"
#include "server/service.h"
#include "server/settings.h"
#include "server/token_command.h"

#define EXIT_USAGE 2
/* The text of the table is a fraction of it. */
#define SYSCALLS_MAX ((size_t)1 << 20)

static int parse_command(const char *text, enum cli_command *ret_command, struct err *err)
{
    if (text_equal(text, "serve")) {
        *ret_command = CLI_SERVE;
    } else if (text_equal(text, "version") || text_equal(text, "--version")) {
        *ret_command = CLI_VERSION;
    } else if (text_equal(text, "help") || text_equal(text, "--help") || text_equal(text, "-h")) {
        *ret_command = CLI_HELP;
    } else {
        return err_set(err, ERR_BAD_VALUE, 0, "unknown command %.60s", text);
    }
    return 0;
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

static int parse(int count, char *const *arguments, struct config *config,
                 enum cli_command *ret_command, struct err *err)
{
    enum cli_command command = CLI_HELP;

    if (count < 1) {
        return err_set(err, ERR_BAD_VALUE, 0, "no command is given");
    }
    if (parse_command(arguments[0], &command, err) < 0) {
        return -1;
    }
    if (asks_for_help(count - 1, arguments + 1)) {
        command = CLI_HELP;
    } else if (command == CLI_VERSION && count == 2 && text_equal(arguments[1], "--syscalls")) {
        command = CLI_SYSCALLS;
    } else if (command != CLI_SERVE && count > 1) {
        return err_set(err, ERR_BAD_VALUE, 0, "unexpected argument %.60s", arguments[1]);
    } else if (command == CLI_SERVE && settings_read(count - 1, arguments + 1, config, err) < 0) {
        return -1;
    }
    *ret_command = command;
    return 0;
}

int cli_parse(int count, char *const *arguments, struct config *config,
              enum cli_command *ret_command, struct err *err)
{
    if (parse(count, arguments, config, ret_command, err) < 0) {
        return err_remedy(err, "see: kernd help");
    }
    return 0;
}

void cli_help(FILE *out)
{
    (void)fputs(
        "kernd: a local HTTP/JSON server that runs code in fresh, kernel-isolated boxes\n"
        "\n"
        "  kernd serve [options]   serve until SIGTERM or SIGINT\n"
        "  kernd start | stop | restart | status [options]   a server in the background\n"
        "  kernd service install [--tcp ADDRESS] | uninstall | status   the same by systemd, "
        "started\n"
        "                          by the first client; --print shows the units only\n"
        "  kernd mcp [options]     speak the Model Context Protocol on standard input and output,\n"
        "                          through a server that is started if need be (with the "
        "options);\n"
        "                          --workspace DIR[:ro] is the directory that tools work in\n"
        "  kernd mcp install --client NAME   print what to configure in a client; --write: do it\n"
        "  kernd token new --scope run|full [--name TEXT] [--expires 30d]   make a token, shown "
        "once\n"
        "  kernd token list, kernd token revoke ID\n"
        "  kernd doctor [--json] [options]   is everything here that boxes need? exit status 0: "
        "yes;\n"
        "                          1: with warnings; 2: something must be done first\n"
        "  kernd config show [options]   print every setting and where it came from\n"
        "  kernd config check [FILE]     is the configuration file in order?\n"
        "  kernd version           print the version\n"
        "  kernd version --syscalls   print what becomes of each system call in a box\n"
        "  kernd help              print this text\n"
        "\n"
        "Options of serve. Each is also a key of the configuration file ($XDG_CONFIG_HOME/kernd/\n"
        "kernd.conf, else /etc/kernd/kernd.conf), log_level = debug, and a variable of the\n"
        "environment, KERND_LOG_LEVEL=debug; options win over variables, and these over the file:\n"
        "  --config FILE                  read this configuration file instead\n",
        out);
    config_help(out);
    (void)fputs("\n"
                "Without --listen it serves on 127.0.0.1:5376 and on kernd.sock in the runtime\n"
                "directory. Clients on TCP need the token whose file is named at start.\n",
                out);
}

/* A line a row: name, what becomes of it, under which condition, with tabs between. */
int cli_syscalls(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT(SYSCALLS_MAX);

    if (sandbox_syscalls(&text) < 0 || fwrite(text.data, 1, text.size, stdout) != text.size ||
        fflush(stdout) != 0) {
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

static int run_command(enum cli_command command, struct config *config)
{
    switch (command) {
    case CLI_HELP:
        cli_help(stdout);
        return EXIT_SUCCESS;
    case CLI_VERSION:
        (void)printf("kernd %s\n", KERND_VERSION);
        return EXIT_SUCCESS;
    case CLI_SYSCALLS:
        return cli_syscalls();
    case CLI_SERVE:
        return daemon_run(config);
    }
    return EXIT_FAILURE;
}

/* Programs of their own, with options of their own. */
static const struct {
    const char *name;
    int (*run)(int count, char *const *arguments);
} programs[] = {
    { "mcp", mcp_bridge_main },        { "token", token_command_main },
    { "config", config_command_main }, { "doctor", doctor_main },
    { "start", control_start },        { "stop", control_stop },
    { "status", control_status },      { "restart", control_restart },
    { "service", service_main },
};

int cli_main(int count, char *const *arguments)
{
    struct err err = ERR_INIT;
    enum cli_command command = CLI_HELP;
    struct config config;
    int status;

    for (size_t i = 0; count > 1 && i < sizeof(programs) / sizeof(programs[0]); i++) {
        if (text_equal(arguments[1], programs[i].name)) {
            return programs[i].run(count - 2, arguments + 2);
        }
    }
    config_init(&config);
    if (cli_parse(count - 1, arguments + 1, &config, &command, &err) < 0) {
        (void)fprintf(stderr, "kernd: %s\nkernd: %s\n", err.msg, err.remedy);
        status = EXIT_USAGE;
    } else {
        status = run_command(command, &config);
    }
    config_done(&config);
    return status;
}
