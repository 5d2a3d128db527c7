/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_etc: the /etc of every box: one prepared directory, mounted read-only (one mount instead of
 * twenty). Accounts, hosts and the like are generated; certificates, fonts, the dynamic linker's
 * cache and such are copied from the host for the first box of a server. Nothing private, nothing
 * that identifies the host.
 */
#ifndef KERND_BOX_GUEST_ETC_H
#define KERND_BOX_GUEST_ETC_H

#include "lib/base/err.h"

#define GUEST_ETC_HOSTNAME "sandbox"
#define GUEST_ETC_USER "sandbox"
#define GUEST_ETC_HOME "/home/sandbox"
#define GUEST_ETC_UID 1000

/* Makes directory `name` in dir; one that is current already is kept (name.stamp tells). 0 or -1
 * IO. */
int guest_etc_build(int dir, const char *name, struct err *err);

#endif
