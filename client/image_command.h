/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_command: `kernd image`: what the kern engine has of images, and how it gets more.
 */
#ifndef KERND_CLIENT_IMAGE_COMMAND_H
#define KERND_CLIENT_IMAGE_COMMAND_H

#include "client/flags.h"

/* The process's exit status. */
int image_command(const struct flags *options);

#endif
