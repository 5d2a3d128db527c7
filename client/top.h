/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top: `kernd top`.
 */
#ifndef KERND_CLIENT_TOP_H
#define KERND_CLIENT_TOP_H

#include "client/flags.h"

/* The process's exit status. */
int top_run(const struct flags *options);

#endif
