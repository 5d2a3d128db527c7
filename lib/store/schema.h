/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema: the tables, and the steps from every older version to the newest.
 *
 * The version is SQLite's user_version. A step is one transaction, so that a crash leaves either
 * version. Steps that were released are never changed; new ones are added at the end.
 */
#ifndef KERND_STORE_SCHEMA_H
#define KERND_STORE_SCHEMA_H

#include "lib/base/err.h"

struct store;

/* The newest version; tests build older ones by migrating up to a lower number. */
int schema_newest(void);

/*
 * Within store_enter. Brings the database to version `to`. 0, or -1 NOT_READY if it is newer than
 * schema_newest, else the store's errors.
 */
int schema_migrate(struct store *store, int to, struct err *err);

#endif
