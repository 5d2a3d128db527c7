/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_wire: what kernd says to a template over the template's one connection.
 *
 * An order is one struct template_wire_fork, with descriptors beside it (SCM_RIGHTS, unix(7)): the
 * program's 0, 1 and 2, and the cgroup it is to be born in if there is one. The template answers
 * nothing: the box that it makes reports over a connection of its own (init_wire.h), and words
 * about a failure go to that box's standard error, whose end tells kernd as well. Integers have the
 * host's order. Header-only, since both programs need it.
 */
#ifndef KERND_BOX_TEMPLATE_WIRE_H
#define KERND_BOX_TEMPLATE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TEMPLATE_WIRE_VERSION UINT32_C(2)
#define TEMPLATE_WIRE_NAME_SIZE ((size_t)256)
#define TEMPLATE_WIRE_FDS_MAX 4

/*
 * In a template's mounts: a memory file system with the directory of all per-box directories
 * (read-only), that of all owned workspaces, or in its place one workspace that is the caller's
 * own, and that of all environments (read-only). A forked box takes one of each and loses the rest.
 */
#define TEMPLATE_WIRE_PRIVATE "/run/kernd-private"
#define TEMPLATE_WIRE_BOXES TEMPLATE_WIRE_PRIVATE "/boxes"
#define TEMPLATE_WIRE_WORKSPACES TEMPLATE_WIRE_PRIVATE "/workspaces"
#define TEMPLATE_WIRE_LAYERS TEMPLATE_WIRE_PRIVATE "/environments"
/* The one workspace of a template of its own (box_spec.workspace), in the place of all owned ones.
 */
#define TEMPLATE_WIRE_OWN "own"
/* The mounts of all its boxes, by the number of their pin; their targets are empty directories. */
#define TEMPLATE_WIRE_MOUNT TEMPLATE_WIRE_PRIVATE "/mounts/%zu"
/* Where a box has its environment; an empty directory in one that has none. */
#define TEMPLATE_WIRE_LAYER_AT "/run/environment"
/* Empty in the template. A box moves mounts there that it loses. */
#define TEMPLATE_WIRE_LEFT TEMPLATE_WIRE_PRIVATE "/left"

/*
 * Files of the template's own per-box directory: the system call filter that it loads itself before
 * it serves, and that which is loaded in each of its boxes on top (seccomp_table.h).
 */
#define TEMPLATE_WIRE_FILTER "filter"
#define TEMPLATE_WIRE_WALLS "filter-of-boxes"
/*
 * And what a box has beside what every box has: pins (init_wire.h), each with its NUL byte. The
 * first is that of the workspace, the others are of mounts.
 */
#define TEMPLATE_WIRE_PINS "pins"

struct template_wire_fork {
    uint32_t version;
    uint32_t has_cgroup;  /* the fourth descriptor */
    uint32_t tasks;       /* RLIMIT_NPROC of the program and its children, 0: as it is */
    uint32_t files;       /* RLIMIT_NOFILE, soft */
    uint64_t file_bytes;  /* RLIMIT_FSIZE, 0: as it is */
    uint64_t tmpfs_bytes; /* size of each memory file system, 0: the kernel's default */
    uint64_t device;      /* what the workspace has to be, by stat(2) */
    uint64_t inode;
    char box[TEMPLATE_WIRE_NAME_SIZE];       /* name below TEMPLATE_WIRE_BOXES */
    char workspace[TEMPLATE_WIRE_NAME_SIZE]; /* name below TEMPLATE_WIRE_WORKSPACES */
    /* "": none. A directory right below /workspace that is mounted over itself, read-only. */
    char locked[TEMPLATE_WIRE_NAME_SIZE];
    uint64_t locked_device; /* what it has to be */
    uint64_t locked_inode;
    char layer[TEMPLATE_WIRE_NAME_SIZE]; /* "": none. Name below TEMPLATE_WIRE_LAYERS */
    uint32_t prepares; /* kernd has something to say to the driver before it is ready (wire.h) */
    uint32_t ahead;    /* of its code, which may take a while to come */
};

/* One component, terminated, that leads nowhere else. */
static inline bool template_wire_is_name(const char *name)
{
    size_t size = strnlen(name, TEMPLATE_WIRE_NAME_SIZE);

    return size > 0 && size < TEMPLATE_WIRE_NAME_SIZE && memchr(name, '/', size) == NULL &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static inline bool template_wire_is_order(const struct template_wire_fork *order)
{
    return order->version == TEMPLATE_WIRE_VERSION && order->has_cgroup <= 1 && order->inode != 0 &&
           template_wire_is_name(order->box) && template_wire_is_name(order->workspace) &&
           (order->locked[0] == '\0' ||
            (template_wire_is_name(order->locked) && order->locked_inode != 0)) &&
           (order->layer[0] == '\0' || template_wire_is_name(order->layer)) &&
           order->prepares <= 1 && order->ahead <= 1;
}

#endif
