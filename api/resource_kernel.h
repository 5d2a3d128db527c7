/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_kernel: kernels of a session: warm interpreters that keep their variables between cells.
 */
#ifndef KERND_API_RESOURCE_KERNEL_H
#define KERND_API_RESOURCE_KERNEL_H

#include "api/api.h"

void resource_kernel_open(struct api_call *call);
void resource_kernel_list(struct api_call *call);
void resource_kernel_get(struct api_call *call);
void resource_kernel_delete(struct api_call *call);
void resource_kernel_cell(struct api_call *call);
void resource_kernel_interrupt(struct api_call *call);
void resource_kernel_restart(struct api_call *call);

#endif
