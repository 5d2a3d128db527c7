/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings: puts a configuration together from its layers: the file, the environment, the options.
 * Main thread, before any other starts.
 */
#ifndef KERND_SERVER_SETTINGS_H
#define KERND_SERVER_SETTINGS_H

#include "lib/base/err.h"
#include "server/config.h"

/*
 * Reads into an initialised config, the later winning over the earlier:
 *  - the file that --config or KERND_CONFIG names, which must be there; else the first there is of
 *    $XDG_CONFIG_HOME/kernd/kernd.conf (~/.config/kernd/kernd.conf) and /etc/kernd/kernd.conf;
 *  - variables of the environment: KERND_LOG_LEVEL for log_level; a list's entries with commas
 *    between;
 *  - options, "--name value" or "--name=value", '-' for '_'.
 * 0, or -1 with err BAD_VALUE (wrong usage, a bad value, told with where it stands) or IO.
 */
int settings_read(int count, char *const *arguments, struct config *config, struct err *err);

/* The file that settings_read would read without --config: a fresh text, NULL when there is none.
 */
char *settings_default_file(void);

#endif
