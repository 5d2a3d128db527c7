/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_box: starts real boxes, in a state directory of its own that is removed afterwards. Main
 * thread.
 */
#ifndef KERND_SERVER_DOCTOR_BOX_H
#define KERND_SERVER_DOCTOR_BOX_H

#include <stdbool.h>

#include "server/config.h"
#include "server/doctor_report.h"

/*
 * Engine, a box and how long it takes, what enforces the limits, interpreters. config: its state
 * and runtime directories are for this alone, and made; its library is resolved. Does a box start?
 */
bool doctor_box_check(struct doctor_report *report, const struct config *config);

#endif
