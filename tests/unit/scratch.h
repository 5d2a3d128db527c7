/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch: a private directory for each unit test, as an ordinary user.
 *
 * Started as root, a test program goes on as user 65534 (root would hide every trouble with
 * permissions) and becomes root again in scratch_end. Use as the setup and teardown of a group:
 *     cmocka_run_group_tests(tests, scratch_begin, scratch_end)
 */
#ifndef KERND_TESTS_UNIT_SCRATCH_H
#define KERND_TESTS_UNIT_SCRATCH_H

#include <stddef.h>

int scratch_begin(void **state);
int scratch_end(void **state);

/* Setup of one test: an empty directory, open as scratch_fd, at the absolute path scratch_path. */
int scratch_fresh(void **state);

extern int scratch_fd;
extern char scratch_path[64];

/* Makes a file below dir with this text, and the directories on its way. */
void scratch_file(int dir, const char *path, const char *text);

/* The directory of workspaces in it, made if it is not there: the caller closes it. */
int scratch_workspaces(void);

/* Is there anything (also a dangling link) at that path below dir? */
int scratch_has(int dir, const char *path);

/* The text of a small file below dir, in static storage; "" if it can't be read. */
const char *scratch_text(int dir, const char *path);

#endif
