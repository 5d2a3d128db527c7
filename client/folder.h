/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder: directories of this side as archives. For one thread. 0, or -1 as functions of ask.
 */
#ifndef KERND_CLIENT_FOLDER_H
#define KERND_CLIENT_FOLDER_H

#include "client/ask.h"

/* Writes what is in a directory to an open file, and goes back to its start. Says what it left out.
 */
int folder_pack(struct ask *ask, const char *directory, int file);

/*
 * Makes a directory of an archive, or adds to one that is there: files of the same name are
 * replaced, everything else stays. Nothing changes if the archive is bad.
 */
int folder_unpack(struct ask *ask, int file, const char *directory);

#endif
