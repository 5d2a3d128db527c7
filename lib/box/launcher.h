/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launcher: finds a launcher program and asks for its version.
 */
#ifndef KERND_BOX_LAUNCHER_H
#define KERND_BOX_LAUNCHER_H

#include <stdbool.h>

/*
 * The absolute path of an executable regular file: `given` if not NULL, else `name` in the standard
 * directories. NULL: there is none. The caller frees.
 */
char *launcher_find(const char *given, const char *name);

/*
 * First word with a digit of what `path --version` prints within two seconds ("0.8.0"), "" if there
 * is none. The caller frees.
 */
char *launcher_version(const char *path);

/*
 * Does the program get rights that its caller has not: is it setuid or setgid, or has it file
 * capabilities (capabilities(7))? no_new_privs would take them.
 */
bool launcher_raises(const char *path);

#endif
