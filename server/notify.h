/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify: tells a service manager how far the daemon is (sd_notify(3)). Main thread.
 */
#ifndef KERND_SERVER_NOTIFY_H
#define KERND_SERVER_NOTIFY_H

/* One state line, "READY=1" or "STOPPING=1". Nothing happens without a manager. */
void notify_send(const char *state);

#endif
