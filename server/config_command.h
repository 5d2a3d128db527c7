/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_command: `kernd config show` and `kernd config check`. Main thread.
 */
#ifndef KERND_SERVER_CONFIG_COMMAND_H
#define KERND_SERVER_CONFIG_COMMAND_H

/*
 * show [options of serve]: every setting and where it came from, as a configuration file.
 * check [FILE]: is the file (the default one) in order? The exit status: 0, 1 (the file or a
 * setting is wrong) or 2 (wrong usage).
 */
int config_command_main(int count, char *const *arguments);

#endif
