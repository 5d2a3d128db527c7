/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container: from a pointer to an embedded member back to the object around it.
 */
#ifndef KERND_BASE_CONTAINER_H
#define KERND_BASE_CONTAINER_H

#include <stddef.h>

/* `member` must be a member of `type`; the pointer must point to that member of a live object. */
#define CONTAINER_OF(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
