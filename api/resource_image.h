/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_image: the images that boxes can have.
 */
#ifndef KERND_API_RESOURCE_IMAGE_H
#define KERND_API_RESOURCE_IMAGE_H

#include "api/api.h"

void resource_image_list(struct api_call *call); /* GET /v1/images */
void resource_image_pull(struct api_call *call); /* POST /v1/images/pull */
void resource_image_load(struct api_call *call); /* POST /v1/images/load */

#endif
