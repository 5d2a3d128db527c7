/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_host: what the host is like: kernel, settings, clock, the user's systemd; the places that
 * the daemon uses. Looks only, changes nothing. Main thread.
 */
#ifndef KERND_SERVER_DOCTOR_HOST_H
#define KERND_SERVER_DOCTOR_HOST_H

#include "server/config.h"
#include "server/doctor_report.h"
#include "server/privilege.h"

/* Kernel, descriptors, clock, linger. */
void doctor_host_check(struct doctor_report *report);

/*
 * The settings that decide about user namespaces. Whether boxes start all the same is known by now:
 * then nothing of it is worse than a warning.
 */
void doctor_host_check_namespaces(struct doctor_report *report, bool box_starts);

/*
 * State and runtime directory (whose they are, who can get in), the disk below, a server that runs.
 * config: its directories are resolved. account: whose the daemon's process is.
 */
void doctor_host_check_places(struct doctor_report *report, const struct config *config,
                              const struct privilege_account *account);

/* Can it listen where it is to? Says so of the server that does already. */
void doctor_host_check_addresses(struct doctor_report *report, const struct config *config);

#endif
