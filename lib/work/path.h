/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path: names of things in a workspace, as clients write them. Pure functions, any thread.
 *
 * A name is bytes, not text: it need not be UTF-8 (Linux file names are any bytes but '/' and NUL).
 * Parsed names are relative, with single slashes, no "." and no ".." component, none at the ends.
 */
#ifndef KERND_WORK_PATH_H
#define KERND_WORK_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

#define PATH_BYTES_MAX 4095    /* PATH_MAX of limits.h without its NUL */
#define PATH_COMPONENT_MAX 255 /* NAME_MAX of limits.h */
#define PATH_ROOT "."          /* the workspace itself */

/*
 * The name of something below the workspace: "a/b", "./a//b/" and "/workspace/a/b" all mean "a/b".
 * Takes size bytes, so that a NUL among them is seen and refused. 0 and a fresh string for the
 * caller to free, or -1 BAD_PATH: empty, another absolute path, a "..", a NUL byte, a component
 * above 255 bytes, above 4095 bytes in all. ".." is refused and not resolved, since "a/.." has no
 * one meaning while links and races exist.
 */
int path_parse(const char *text, size_t size, char **ret_path, struct err *err);

/* As path_parse, but "", ".", "/workspace" and the like are fine and give PATH_ROOT. */
int path_parse_directory(const char *text, size_t size, char **ret_path, struct err *err);

/* Is this one component that can be made in a directory: not empty, ".", "..", long, or with '/'?
 */
bool path_is_name(const char *name);

/*
 * The order of listings and of the file census: component by component in byte order, so that a
 * directory comes right before what is in it. <0, 0 or >0 as strcmp.
 */
int path_compare(const char *a, const char *b);

/* Is `path` the same as `ancestor` or beneath it? Both parsed, or both absolute and resolved. */
bool path_is_beneath(const char *path, const char *ancestor);

/* The last component. Points into path. */
const char *path_base(const char *path);

/* How many components it has. */
unsigned path_depth(const char *path);

/* A fresh string: all but the last component, PATH_ROOT if there is only one. */
char *path_parent(const char *path);

/* A fresh string "directory/name", or the name alone where the directory is PATH_ROOT. */
char *path_join(const char *directory, const char *name);

#endif
