/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: find the daemon's directories; own the environment.
 * Owns: the process's environment.
 * Threads: main, before any other starts.
 * May include: config.h, lib/base.
 */
#include "server/places.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"

#define PLAIN_ACCOUNT "nobody"

/* Kept when root's daemon changes its user: also what the engine kern is configured by; the
 * sanitizers' own are for test builds. */
static const char *const kept[] = {
    "PATH",         "LANG",         "LC_ALL",        "TZ",
    "LISTEN_FDS",   "LISTEN_PID",   "NOTIFY_SOCKET", "KERN_BIN",
    "KERN_CONFIG",  "KERN_SECCOMP", "HTTPS_PROXY",   "KERN_MAX_CONCURRENT",
    "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS",  "UBSAN_OPTIONS"
};

#define KEPT_COUNT (sizeof(kept) / sizeof(kept[0]))

const char *places_environment(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

void places_forget(const char *name)
{
    (void)unsetenv(name);
}

void places_clean_environment(const char *account, const char *home)
{
    char *values[KEPT_COUNT];

    for (size_t i = 0; i < KEPT_COUNT; i++) {
        values[i] = alloc_text(places_environment(kept[i]));
    }
    (void)clearenv();
    for (size_t i = 0; i < KEPT_COUNT; i++) {
        if (values[i] != NULL) {
            (void)setenv(kept[i], values[i], 1);
            free(values[i]);
        }
    }
    (void)setenv("HOME", home, 1);
    (void)setenv("USER", account, 1);
    (void)setenv("LOGNAME", account, 1);
}

/* An XDG directory variable counts only if it is an absolute path (XDG base directories 0.8). */
static const char *absolute_variable(const char *name)
{
    const char *value = places_environment(name);

    return value != NULL && value[0] == '/' ? value : NULL;
}

static char *account_directory(const char *parent, const char *account)
{
    return text_equal(account, PLAIN_ACCOUNT) ? alloc_printf("%s/kernd", parent)
                                              : alloc_printf("%s/kernd-%s", parent, account);
}

static char *default_state(const char *account)
{
    const char *base = absolute_variable("XDG_STATE_HOME");
    const char *home = absolute_variable("HOME");

    if (account != NULL) {
        return account_directory("/var/lib", account);
    }
    if (base != NULL) {
        return alloc_printf("%s/kernd", base);
    }
    return home != NULL ? alloc_printf("%s/.local/state/kernd", home) : NULL;
}

static char *default_runtime(const char *account, const char *state_dir)
{
    const char *base = absolute_variable("XDG_RUNTIME_DIR");
    CLEANUP_FREE char *own = alloc_printf("/run/user/%u", (unsigned)geteuid());

    if (account != NULL) {
        return account_directory("/run", account);
    }
    if (base == NULL && access(own, W_OK | X_OK) == 0) {
        base = own;
    }
    return base != NULL ? alloc_printf("%s/kernd", base) : alloc_printf("%s/run", state_dir);
}

static int make_absolute(char **path, struct err *err)
{
    CLEANUP_FREE char *here = NULL;
    char *absolute;

    if ((*path)[0] == '/') {
        return 0;
    }
    here = getcwd(NULL, 0);
    if (here == NULL) {
        return err_set(err, ERR_IO, errno, "the current directory: %s", err_errno_text(errno));
    }
    absolute = alloc_printf("%s/%s", here, *path);
    free(*path);
    *path = absolute;
    return 0;
}

/* In the build tree everything is in one directory; installed, programs and helpers are apart. */
static int find_library(char **ret_directory, struct err *err)
{
    static const char *const beside[] = { "", "/../libexec/kernd", "/../lib/kernd" };
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    char *slash;

    if (length < 0) {
        return err_set(err, ERR_IO, errno, "/proc/self/exe: %s", err_errno_text(errno));
    }
    program[length] = '\0';
    slash = strrchr(program, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        CLEANUP_FREE char *directory = alloc_printf("%s%s", program, beside[i]);
        CLEANUP_FREE char *helper = alloc_printf("%s/kernd-init", directory);

        if (access(helper, F_OK) == 0) {
            *ret_directory = realpath(directory, NULL);
            return *ret_directory != NULL ? 0 : err_set(err, ERR_IO, errno, "%s", directory);
        }
    }
    (void)err_set(err, ERR_IO, ENOENT, "kernd-init is not beside kernd, in %s", program);
    return err_remedy(err, "install kernd completely, or name the directory with --library");
}

/* As kern itself finds it; an account of root's daemon may have no home. */
static char *default_image_cache(const char *account, const char *state_dir)
{
    const char *base = absolute_variable("XDG_CACHE_HOME");
    const char *home = absolute_variable("HOME");

    if (account != NULL || (base == NULL && home == NULL)) {
        return alloc_printf("%s/cache", state_dir);
    }
    return base != NULL ? alloc_text(base) : alloc_printf("%s/.cache", home);
}

/* What kern's own bindings call it by; one that is no program counts for nothing. */
static char *default_kern(void)
{
    const char *given = absolute_variable("KERN_BIN");

    return given != NULL && access(given, X_OK) == 0 ? alloc_text(given) : NULL;
}

static int resolve_kern(struct config *config, const char *account, struct err *err)
{
    if (config->kern == NULL) {
        config->kern = default_kern();
    }
    if (config->image_cache == NULL) {
        config->image_cache = default_image_cache(account, config->state_dir);
    }
    return make_absolute(&config->image_cache, err);
}

int places_resolve(struct config *config, const char *account, struct err *err)
{
    if (config->state_dir == NULL) {
        config->state_dir = default_state(account);
    }
    if (config->state_dir == NULL) {
        (void)err_set(err, ERR_BAD_VALUE, 0, "no place for the state: HOME is not set");
        return err_remedy(err,
                          "set HOME, or KERND_STATE to a directory for it (kernd serve: --state)");
    }
    if (make_absolute(&config->state_dir, err) < 0 || resolve_kern(config, account, err) < 0) {
        return -1;
    }
    if (config->runtime_dir == NULL) {
        config->runtime_dir = default_runtime(account, config->state_dir);
    }
    if (config->library_dir == NULL && find_library(&config->library_dir, err) < 0) {
        return -1;
    }
    return make_absolute(&config->runtime_dir, err) < 0 ||
                   make_absolute(&config->library_dir, err) < 0
               ? -1
               : 0;
}
