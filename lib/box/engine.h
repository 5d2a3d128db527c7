/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine: how one launcher is driven, as a table of pure functions: a plan in, an argument vector
 * out. Nothing here touches the system.
 *
 * Every engine has to: give the box the namespaces of its own, run kernd-init as its PID 1, show
 * box_dir read-only at /run/kernd and library_dir at /run/kernd-lib, mount the workspace at
 * /workspace, and end with the box. Never may a secret, an environment value or code be in the
 * arguments: they are visible to every process of the host.
 */
#ifndef KERND_BOX_ENGINE_H
#define KERND_BOX_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/strv.h"
#include "lib/box/box.h"
#include "lib/box/remedy.h"

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

/* How a memory cap stood over a box, as its launcher saw it. */
enum engine_cap { ENGINE_CAP_UNKNOWN, ENGINE_CAP_BOUND, ENGINE_CAP_UNBOUND };

/* In one piece, when the program has ended. Whoever kills the launcher gets none. */
struct engine_report {
    uint8_t came_to_its_end; /* 1; also when set-up inside the box failed */
    uint8_t cap;             /* enum engine_cap */
};

struct engine_plan {
    const struct box_spec *spec;
    const char *box_name; /* of this box alone */
    const char *box_dir;
    const char *library_dir;
    const char *etc_dir;
    const char *resolv_conf; /* host file, NULL: none; used with a network only */
    const struct engine_root *root;
    size_t root_count;
    const char *image;       /* for a spec that names none */
    const char *private_dir; /* the engine's own, in the runtime directory */
    const char *cache_dir;   /* where it keeps images */
    const char *boxes_dir;   /* parent of all box_dirs, for templates */
    int report_fd;           /* of the launcher: it tells there what it saw; 0: none */
};

struct engine {
    const char *name;          /* as in struct boxes_config */
    const char *launcher_name; /* looked up in the standard directories */
    const char *package;       /* what to install */
    bool seccomp;              /* takes the filter from kernd */
    uint32_t tasks;            /* of the launcher that RLIMIT_NPROC counts with the box's */
    bool ends_with_parent;     /* the launcher itself sees to it that it dies with kernd */
    /*
     * Boxes have an image's files, and an environment that the launcher makes. What it says of its
     * own must not get between the program's words, so kernd-init gets the program's streams by its
     * connection, and the launcher's 0, 1 and 2 are /dev/null and a file of kernd's.
     */
    bool images;
    /* It writes to engine_plan.report_fd, when the box has ended, struct engine_report. */
    bool reports;
    /* Can it be done at all? 0, or -1 NOT_SUPPORTED_HERE with the field. NULL: always. */
    int (*vet)(const struct box_spec *spec, struct err *err);
    /* The whole argument vector, argv[0] included. */
    void (*argv)(const struct engine_plan *plan, struct strv *ret_argv);
    /* The launcher's environment, from kernd's own. NULL: it gets an empty one. */
    void (*environment)(const struct engine_plan *plan, char *const *own, struct strv *ret_env);
    /* Why did it end before the box was up, in its own words? Sets err, returns -1. */
    int (*explain)(const char *words, const char *exit_text, const struct remedy_host *host,
                   struct err *err);
};

/* For a box that shall see nothing but kernd-init: a probe. */
#define ENGINE_IMAGE_EMPTY "scratch"

extern const struct engine engine_bwrap;
extern const struct engine engine_kern;

#endif
