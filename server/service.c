/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write, enable and remove the user's units.
 * Owns: nothing that lasts.
 * Threads: one.
 * May include: server, lib/base.
 */
#include "server/service.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/strv.h"
#include "lib/base/text.h"
#include "server/places.h"

#define EXIT_USAGE 2
#define EXIT_NOT_RUNNING 3
#define UNIT_BYTES_MAX ((size_t)64 * 1024)
#define SOCKET_UNIT "kernd.socket"
#define SERVICE_UNIT "kernd.service"

/* The files of systemd/, embedded. */
extern const char asset_kernd_service[];
extern const char asset_kernd_socket[];

/* The lines of the units that installing fills in. */
#define PROGRAM_LINE "ExecStart=kernd "
#define TCP_LINE "#ListenStream=127.0.0.1:5376"

struct order {
    const char *address; /* of --tcp; NULL: none */
    bool prints;
};

static int complain(const struct err *err, int status)
{
    (void)fprintf(stderr, "kernd service: %s\n", err->msg);
    if (err->remedy[0] != '\0') {
        (void)fprintf(stderr, "kernd service: %s\n", err->remedy);
    }
    return status;
}

/* ---- the units ---- */

/* The text with one part of it, which must be there, replaced. Fresh. */
static char *replaced(const char *text, const char *part, const char *by)
{
    const char *at = strstr(text, part);

    if (at == NULL) {
        return alloc_text(text);
    }
    return alloc_printf("%.*s%s%s", (int)(at - text), text, by, at + strlen(part));
}

/* As systemd.service(5) wants a path quoted: '%' and '$' doubled, '"' and '\' escaped. */
static char *quoted(const char *path)
{
    CLEANUP_BUF struct buf out = BUF_INIT((size_t)PATH_MAX * 2);

    for (; *path != '\0'; path++) {
        if (strchr("\"\\", *path) != NULL) {
            (void)buf_append_text(&out, "\\");
        } else if (strchr("%$", *path) != NULL) {
            (void)buf_append(&out, path, 1);
        }
        (void)buf_append(&out, path, 1);
    }
    return buf_take(&out, NULL);
}

static char *make_service(struct err *err)
{
    char program[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    CLEANUP_FREE char *path = NULL;
    CLEANUP_FREE char *line = NULL;

    if (length < 0) {
        (void)err_set(err, ERR_IO, errno, "/proc/self/exe: %s", err_errno_text(errno));
        return NULL;
    }
    program[length] = '\0';
    path = quoted(program);
    line = alloc_printf("ExecStart=\"%s\" ", path);
    return replaced(asset_kernd_service, PROGRAM_LINE, line);
}

static char *make_socket(const struct order *order)
{
    CLEANUP_FREE char *line = NULL;

    if (order->address == NULL) {
        return alloc_text(asset_kernd_socket);
    }
    line = alloc_printf("ListenStream=%s", order->address);
    return replaced(asset_kernd_socket, TCP_LINE, line);
}

static char *unit_directory(struct err *err)
{
    const char *base = places_environment("XDG_CONFIG_HOME");
    const char *home = places_environment("HOME");

    if (base != NULL && base[0] == '/') {
        return alloc_printf("%s/systemd/user", base);
    }
    if (home == NULL) {
        (void)err_set(err, ERR_BAD_VALUE, 0, "no place for the units: HOME is not set");
        (void)err_remedy(err, "set HOME, or XDG_CONFIG_HOME to an absolute path");
        return NULL;
    }
    return alloc_printf("%s/.config/systemd/user", home);
}

static int make_directories(const char *path, struct err *err)
{
    CLEANUP_FREE char *copy = alloc_printf("%s/", path);

    for (char *slash = strchr(copy + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0755) < 0 && errno != EEXIST) {
            return err_set(err, ERR_IO, errno, "%s: %s", copy, err_errno_text(errno));
        }
        *slash = '/';
    }
    return 0;
}

static int write_unit(const char *directory, const char *name, const char *text, struct err *err)
{
    CLEANUP_FREE char *path = alloc_printf("%s/%s", directory, name);

    if (fd_write_file(path, text, strlen(text), 0644) < 0) {
        return err_set(err, ERR_IO, errno, "%s: %s", path, err_errno_text(errno));
    }
    (void)printf("wrote %s\n", path);
    return 0;
}

/* ---- systemctl ---- */

/* Its exit status; -1 with err when it can't be run or was killed. */
static int run_systemctl(const struct strv *arguments, struct err *err)
{
    pid_t pid = 0;
    int status = 0;
    const int failed = posix_spawnp(&pid, "systemctl", NULL, NULL, strv_argv(arguments), environ);

    if (failed != 0) {
        (void)err_set(err, ERR_IO, failed, "systemctl can't be run: %s", err_errno_text(failed));
        return err_remedy(err, "without systemd use: kernd start");
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return err_set(err, ERR_IO, errno, "systemctl: %s", err_errno_text(errno));
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status)
                             : err_set(err, ERR_IO, 0, "systemctl was killed");
}

static int systemctl(struct err *err, const char *verb, const char *option, const char *unit)
{
    CLEANUP_STRV struct strv arguments = { .count = 0 };
    int status;

    strv_add_all(&arguments, "systemctl", "--user", verb, NULL);
    if (option != NULL) {
        strv_add(&arguments, option);
    }
    if (unit != NULL) {
        strv_add(&arguments, unit);
    }
    /* What it says should come after what was said before. */
    (void)fflush(stdout);
    status = run_systemctl(&arguments, err);
    if (status > 0) {
        (void)err_set(err, ERR_IO, 0, "systemctl --user %s failed (%d)", verb, status);
        if (access("/run/systemd/system", F_OK) < 0) { /* sd_booted(3) */
            return err_remedy(err, "systemd does not run here; without it use: kernd start");
        }
        return err_remedy(err, "log in as this user (su alone is no login), or let its services "
                               "run without one: loginctl enable-linger");
    }
    return status;
}

/* ---- the commands ---- */

static int enable(const char *directory, const char *service, const char *socket, struct err *err)
{
    if (make_directories(directory, err) < 0 ||
        write_unit(directory, SERVICE_UNIT, service, err) < 0 ||
        write_unit(directory, SOCKET_UNIT, socket, err) < 0) {
        return -1;
    }
    /* A socket unit takes no new address while it listens. */
    return systemctl(err, "daemon-reload", NULL, NULL) < 0 ||
                   systemctl(err, "enable", "--quiet", SOCKET_UNIT) < 0 ||
                   systemctl(err, "stop", SERVICE_UNIT, SOCKET_UNIT) < 0 ||
                   systemctl(err, "start", NULL, SOCKET_UNIT) < 0
               ? -1
               : 0;
}

static int install(const struct order *order)
{
    struct err err = ERR_INIT;
    CLEANUP_FREE char *directory = unit_directory(&err);
    CLEANUP_FREE char *service = directory != NULL ? make_service(&err) : NULL;
    CLEANUP_FREE char *socket = make_socket(order);

    if (service == NULL) {
        return complain(&err, EXIT_FAILURE);
    }
    if (order->prints) {
        (void)printf("# %s/" SERVICE_UNIT "\n%s\n# %s/" SOCKET_UNIT "\n%s", directory, service,
                     directory, socket);
        return EXIT_SUCCESS;
    }
    if (geteuid() == 0) {
        (void)err_set(&err, ERR_FORBIDDEN, 0, "these are units of a user, not of root");
        (void)err_remedy(&err, "run it as the user whose server it is to be");
        return complain(&err, EXIT_FAILURE);
    }
    if (enable(directory, service, socket, &err) < 0) {
        return complain(&err, EXIT_FAILURE);
    }
    (void)printf("the next client starts the server: curl --unix-socket "
                 "\"$XDG_RUNTIME_DIR/kernd/kernd.sock\" http://localhost/v1/version\n");
    return EXIT_SUCCESS;
}

static int remove_unit(const char *directory, const char *name, struct err *err)
{
    CLEANUP_FREE char *path = alloc_printf("%s/%s", directory, name);

    if (unlink(path) < 0) {
        return errno == ENOENT ? 0
                               : err_set(err, ERR_IO, errno, "%s: %s", path, err_errno_text(errno));
    }
    (void)printf("removed %s\n", path);
    return 0;
}

static int uninstall(void)
{
    struct err err = ERR_INIT;
    CLEANUP_FREE char *directory = unit_directory(&err);
    CLEANUP_FREE char *socket =
        directory != NULL ? alloc_printf("%s/" SOCKET_UNIT, directory) : NULL;

    if (socket == NULL) {
        return complain(&err, EXIT_FAILURE);
    }
    if (access(socket, F_OK) == 0 && (systemctl(&err, "disable", "--quiet", SOCKET_UNIT) < 0 ||
                                      systemctl(&err, "stop", SERVICE_UNIT, SOCKET_UNIT) < 0)) {
        return complain(&err, EXIT_FAILURE);
    }
    if (remove_unit(directory, SERVICE_UNIT, &err) < 0 ||
        remove_unit(directory, SOCKET_UNIT, &err) < 0 ||
        systemctl(&err, "daemon-reload", NULL, NULL) < 0) {
        return complain(&err, EXIT_FAILURE);
    }
    return EXIT_SUCCESS;
}

static int status(void)
{
    struct err err = ERR_INIT;
    CLEANUP_STRV struct strv arguments = { .count = 0 };
    int shown;

    strv_add_all(&arguments, "systemctl", "--user", "--no-pager", "--lines=0", "status",
                 SOCKET_UNIT, SERVICE_UNIT, NULL);
    shown = run_systemctl(&arguments, &err);
    /* 1: no systemd that it could ask; it has said so. */
    if (shown < 0 || shown == 1) {
        return shown == 1 ? EXIT_FAILURE : complain(&err, EXIT_FAILURE);
    }
    strv_done(&arguments);
    strv_add_all(&arguments, "systemctl", "--user", "--quiet", "is-active", SOCKET_UNIT, NULL);
    return run_systemctl(&arguments, &err) == 0 ? EXIT_SUCCESS : EXIT_NOT_RUNNING;
}

static int usage(void)
{
    (void)fputs("usage: kernd service install [--tcp ADDRESS] [--print] | uninstall | status\n",
                stderr);
    return EXIT_USAGE;
}

static int install_main(int count, char *const *arguments)
{
    struct order order = { .address = NULL };

    for (int i = 0; i < count; i++) {
        if (text_equal(arguments[i], "--print")) {
            order.prints = true;
        } else if (text_equal(arguments[i], "--tcp") && i + 1 < count &&
                   strpbrk(arguments[i + 1], " \t\r\n%") == NULL) {
            order.address = arguments[++i];
        } else {
            return usage();
        }
    }
    return install(&order);
}

int service_main(int count, char *const *arguments)
{
    if (count >= 1 && text_equal(arguments[0], "install")) {
        return install_main(count - 1, arguments + 1);
    }
    if (count == 1 && text_equal(arguments[0], "uninstall")) {
        return uninstall();
    }
    return count == 1 && text_equal(arguments[0], "status") ? status() : usage();
}
