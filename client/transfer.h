/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer: files between this side and the server, of any size and any bytes, with progress on a
 * terminal. For one thread. 0, or -1 as functions of ask.
 */
#ifndef KERND_CLIENT_TRANSFER_H
#define KERND_CLIENT_TRANSFER_H

#include "client/ask.h"

/*
 * GET into a file, which is replaced in one step when all of it is there; "" or "-": to standard
 * output.
 */
int transfer_get_file(struct ask *ask, const char *target, const char *path);

/* GET into an open file. */
int transfer_get(struct ask *ask, const char *target, int file, const char *name);

/* PUT of a file; "" or "-": of standard input. With --json the answer is printed. */
int transfer_put_file(struct ask *ask, const char *target, const char *path);

/* PUT of an open file of that many bytes from its present offset. */
int transfer_put(struct ask *ask, const char *target, int file, const char *name);

/* A file without a name, on disk, that is gone when it is closed. -1 with the failure kept. */
int transfer_spool(struct ask *ask);

#endif
