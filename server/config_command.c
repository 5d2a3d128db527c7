/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: show the settings and where they came from; check a file of settings.
 * Owns: nothing.
 * Threads: main.
 * May include: server, lib/base, limits.h.
 */
#include "server/config_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/sandbox/limits.h"
#include "server/config.h"
#include "server/config_file.h"
#include "server/places.h"
#include "server/settings.h"

#define EXIT_USAGE 2

static int complain(const struct err *err, int status)
{
    (void)fprintf(stderr, "kernd config: %s\n", err->msg);
    if (err->remedy[0] != '\0') {
        (void)fprintf(stderr, "kernd config: %s\n", err->remedy);
    }
    return status;
}

/* What holds where nothing was set. */
static int make_defaults(const struct config *config, struct config *defaults, struct err *err)
{
    const char *account = NULL;

    config_init(defaults);
    limits_maxima(&defaults->maxima);
    limits_defaults(&defaults->defaults);
    if (geteuid() == 0 && !config->allow_root) {
        account = config->user == NULL ? "nobody" : config->user;
    }
    return places_resolve(defaults, account, err);
}

static int show(int count, char *const *arguments)
{
    struct err err = ERR_INIT;
    struct config config;
    struct config defaults;
    int status = EXIT_SUCCESS;

    config_init(&config);
    if (settings_read(count, arguments, &config, &err) < 0) {
        status = complain(&err, EXIT_FAILURE);
    } else if (make_defaults(&config, &defaults, &err) < 0) {
        status = complain(&err, EXIT_FAILURE);
        config_done(&defaults);
    } else {
        config_show(&config, &defaults, stdout);
        status = fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
        config_done(&defaults);
    }
    config_done(&config);
    return status;
}

static int check(const char *path)
{
    struct err err = ERR_INIT;
    struct config config;
    int result;

    config_init(&config);
    result = config_file_load(&config, path, &err);
    config_done(&config);
    if (result < 0) {
        return complain(&err, EXIT_FAILURE);
    }
    (void)printf("%s: in order\n", path);
    return EXIT_SUCCESS;
}

static int check_default(void)
{
    CLEANUP_FREE char *path = settings_default_file();

    if (path == NULL) {
        (void)printf("there is no configuration file\n");
        return EXIT_SUCCESS;
    }
    return check(path);
}

int config_command_main(int count, char *const *arguments)
{
    if (count >= 1 && text_equal(arguments[0], "show")) {
        return show(count - 1, arguments + 1);
    }
    if (count >= 1 && count <= 2 && text_equal(arguments[0], "check")) {
        return count == 2 ? check(arguments[1]) : check_default();
    }
    (void)fputs("usage: kernd config show [options of serve] | kernd config check [FILE]\n",
                stderr);
    return EXIT_USAGE;
}
