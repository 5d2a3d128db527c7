/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: hand on what the configuration says of engines.
 * Owns: nothing.
 * Threads: main.
 * May include: config.h, sandbox.h.
 */
#include "server/engines.h"

void engines_configure(const struct config *config, struct sandbox_config *sandbox_config)
{
    sandbox_config->engine = config->engine;
    sandbox_config->launcher = config->launcher;
    sandbox_config->kern = config->kern;
    sandbox_config->image = config->image;
    sandbox_config->image_cache = config->image_cache;
    sandbox_config->image_pull = config->image_pull;
}
