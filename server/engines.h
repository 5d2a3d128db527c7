/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engines: what the configuration says of engines, as the sandbox wants it.
 */
#ifndef KERND_SERVER_ENGINES_H
#define KERND_SERVER_ENGINES_H

#include "lib/sandbox/sandbox.h"
#include "server/config.h"

/* Sets the fields that concern engines and images; they borrow from config. */
void engines_configure(const struct config *config, struct sandbox_config *sandbox_config);

#endif
