/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link: is a symbolic link harmless in an archive? Pure functions, any thread.
 */
#ifndef KERND_WORK_LINK_H
#define KERND_WORK_LINK_H

#include <stdbool.h>

/*
 * Would a link at `path` (parsed) with this target lead to a place below the tree's root, judged by
 * the letters alone? Absolute targets and ones with more ".." than directories above them do not.
 * Other links on the way may lead elsewhere: nothing of the server follows links, and in a box they
 * reach no more than the box does.
 */
bool link_stays_inside(const char *path, const char *target);

#endif
