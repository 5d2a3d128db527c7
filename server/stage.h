/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage: kernd-init, its siblings and the drivers where the daemon's account can read them.
 *
 * When root starts the daemon out of a directory that is closed to others (a build tree in /root),
 * the account it becomes can't reach them. They are opened as root, and copied into the runtime
 * directory after the change if it turns out to be necessary. Nothing else is ever copied.
 */
#ifndef KERND_SERVER_STAGE_H
#define KERND_SERVER_STAGE_H

#include "lib/base/err.h"

struct stage;

/* Opens the files of the library directory, as root. NULL with err. */
struct stage *stage_open(const char *library_dir, struct err *err);

/*
 * As the account: checks that the library directory can be used; where not, copies the files to
 * `<runtime_dir>/library` and replaces *library_dir. 0, or -1 with err.
 */
int stage_finish(struct stage *stage, const char *runtime_dir, char **library_dir, struct err *err);

void stage_free(struct stage *stage);

#endif
