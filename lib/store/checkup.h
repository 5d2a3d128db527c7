/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkup: reads the whole database in the background after an unclean stop, on a connection and a
 * thread of its own, so that neither start-up nor anybody's call waits for it. For lib/store alone.
 */
#ifndef KERND_STORE_CHECKUP_H
#define KERND_STORE_CHECKUP_H

#include "lib/base/err.h"

struct checkup;

/* Starts one for the database at path. NULL with err if the thread can't be made. */
struct checkup *checkup_new(const char *path, struct err *err);

/* 0 while nothing bad is known, or -1 NOT_READY with what is damaged. NULL is fine. */
int checkup_verdict(struct checkup *checkup, struct err *err);

/* Stops it early if it still runs. NULL is fine. */
void checkup_free(struct checkup *checkup);

#endif
