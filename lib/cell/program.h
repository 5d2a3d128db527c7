/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program: which program runs the code of a language, and what its environment needs.
 */
#ifndef KERND_CELL_PROGRAM_H
#define KERND_CELL_PROGRAM_H

#include "lib/base/strv.h"
#include "lib/cell/cell.h"

/* Both vectors are the caller's. env: the caller's variables and the language's own defaults. */
void program_once(enum cell_language language, const struct strv *caller_env, struct strv *ret_argv,
                  struct strv *ret_env);
void program_kernel(enum cell_language language, const struct strv *caller_env,
                    struct strv *ret_argv, struct strv *ret_env);

/* The descriptor at which the driver of one-shot cells finds its connection; 0: it makes its own.
 */
int program_driver_fd(enum cell_language language);

/* Appends what makes the driver of a language that has modules of such names (python) import them
 * before it is ready. names may be NULL. */
void program_preload(enum cell_language language, const struct strv *names, struct strv *argv);

/* Python that makes boxes of itself, with these modules imported. */
void program_template(const struct strv *preload, const struct strv *caller_env,
                      struct strv *ret_argv, struct strv *ret_env);

/* Name of the file that holds the code of a one-shot cell, below /run/kernd. */
const char *program_code_name(enum cell_language language);

#endif
