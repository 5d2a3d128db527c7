/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine: how one launcher is driven, as a table of pure functions: a plan in, an argument vector
 * out. Nothing here touches the system.
 *
 * Every engine has to: give the box the namespaces of its own, run kernd-init as its PID 1 with
 * descriptors 0, 1 and 2 as they come, show box_dir read-only at /run/kernd and library_dir at
 * /run/kernd-lib, mount the workspace at /workspace, and end with the box. Never may a secret, an
 * environment value or code be in the arguments: they are visible to every process of the host.
 */
#ifndef KERND_BOX_ENGINE_H
#define KERND_BOX_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/strv.h"
#include "lib/box/box.h"

/* A directory in box_dir that need not be there; /run/secrets leads to it. */
#define ENGINE_SECRETS "secrets"

/* What the launcher finds at these descriptors, when the engine takes them (see engine.seccomp). */
#define ENGINE_FIRST_SECCOMP_FD 3

/* A top-level name of the host that leads to programs or libraries, e.g. /bin -> usr/bin. */
struct engine_root {
    const char *path;
    char *link; /* NULL: a real directory */
    bool present;
};

struct engine_plan {
    const struct box_spec *spec;
    const char *box_dir;
    const char *library_dir;
    const char *etc_dir;
    const char *resolv_conf; /* host file, NULL: none; used with a network only */
    const struct engine_root *root;
    size_t root_count;
};

struct engine {
    const char *name;          /* as in struct boxes_config */
    const char *launcher_name; /* looked up in the standard directories */
    const char *package;       /* what to install */
    bool seccomp;              /* takes the filter from kernd */
    bool ends_with_parent;     /* the launcher itself sees to it that it dies with kernd */
    /* The whole argument vector, argv[0] included. */
    void (*argv)(const struct engine_plan *plan, struct strv *ret_argv);
};

extern const struct engine engine_bwrap;

#endif
