/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: argument lists and environments of the interpreters.
 * Owns: nothing.
 * Threads: any; pure.
 * May include: base, cell.
 */
#include "lib/cell/program.h"

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/text.h"

/* Out of the way of what interpreters open for themselves; driver.js knows it. */
#define DRIVER_FD 250
#define LIBRARY "/run/kernd-lib/"

static bool has_key(const struct strv *env, const char *prefix)
{
    for (size_t i = 0; i < env->count; i++) {
        if (text_starts_with(env->items[i], prefix)) {
            return true;
        }
    }
    return false;
}

static void fill_env(enum cell_language language, const struct strv *caller_env, struct strv *env)
{
    if (caller_env != NULL) {
        strv_copy(env, caller_env);
    }
    if (language != CELL_PYTHON) {
        return;
    }
    /* Figures are drawn to files, and the cache of fonts is no file of the workspace. */
    if (!has_key(env, "MPLBACKEND=")) {
        strv_add(env, "MPLBACKEND=Agg");
    }
    if (!has_key(env, "MPLCONFIGDIR=")) {
        strv_add(env, "MPLCONFIGDIR=/tmp/.matplotlib");
    }
}

/* -S: driver_main.py adds the site-packages itself, in a fraction of the time. */
static void add_python(struct strv *argv)
{
    strv_add_all(argv, "python3", "-S", LIBRARY "driver.py", NULL);
}

void program_once(enum cell_language language, const struct strv *caller_env, struct strv *ret_argv,
                  struct strv *ret_env)
{
    fill_env(language, caller_env, ret_env);
    switch (language) {
    case CELL_PYTHON:
        add_python(ret_argv);
        break;
    case CELL_BASH:
        strv_add_all(ret_argv, "bash", "/run/kernd/cell.sh", NULL);
        break;
    case CELL_NODE:
        strv_add_all(ret_argv, "node", LIBRARY "driver.js", NULL);
        break;
    }
}

void program_preload(enum cell_language language, const struct strv *names, struct strv *argv)
{
    if (language != CELL_PYTHON || names == NULL || names->count == 0) {
        return;
    }
    strv_add(argv, "--preload");
    for (size_t i = 0; i < names->count; i++) {
        strv_add(argv, names->items[i]);
    }
}

void program_kernel(enum cell_language language, const struct strv *caller_env,
                    struct strv *ret_argv, struct strv *ret_env)
{
    fill_env(language, caller_env, ret_env);
    switch (language) {
    case CELL_PYTHON:
        add_python(ret_argv);
        break;
    case CELL_BASH:
        strv_add_all(ret_argv, LIBRARY "kernd-shell", NULL);
        break;
    case CELL_NODE:
        strv_add_all(ret_argv, "node", LIBRARY "driver_kernel.js", NULL);
        break;
    }
}

int program_driver_fd(enum cell_language language)
{
    /* node connects in its event loop alone, and the code is to run before that. */
    return language == CELL_NODE ? DRIVER_FD : 0;
}

void program_template(const struct strv *preload, const struct strv *caller_env,
                      struct strv *ret_argv, struct strv *ret_env)
{
    fill_env(CELL_PYTHON, caller_env, ret_env);
    strv_add_all(ret_argv, "python3", "-S", LIBRARY "driver_template.py", NULL);
    program_preload(CELL_PYTHON, preload, ret_argv);
}

const char *program_code_name(enum cell_language language)
{
    switch (language) {
    case CELL_PYTHON:
        return "cell.py";
    case CELL_BASH:
        return "cell.sh";
    case CELL_NODE:
        break;
    }
    return "cell.js";
}
