/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_file: reads a configuration file (server/config.h) into a layer of its own.
 */
#ifndef KERND_SERVER_CONFIG_FILE_H
#define KERND_SERVER_CONFIG_FILE_H

#include "lib/base/err.h"
#include "server/config.h"

/*
 * Reads "key = value" lines. Blank lines and lines that start with '#' or ';' are skipped, and so
 * is a ';' after a blank with all that follows it. Sections, unknown keys, keys given twice (but
 * lists), bad values and lines above 198 bytes (what libinih takes) are refused as "name:line:
 * ...". Pure.
 */
int config_file_parse(struct config *config, const char *name, const char *text, struct err *err);

/* config_file_parse of a file of at most 1 MiB. -1 also with IO when it can't be read. */
int config_file_load(struct config *config, const char *path, struct err *err);

#endif
