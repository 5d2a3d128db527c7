/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boxes: what all boxes share: the engine, the runtime directory, the seccomp program, the cgroup
 * subtree; probing, sweeping of leftovers, live counts. Any thread.
 */
#ifndef KERND_BOX_BOXES_H
#define KERND_BOX_BOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct boxes;

#define BOXES_FILES_MAX UINT64_C(1000000)
#define BOXES_IMAGE "python:3.12-slim"
#define BOXES_ENGINES_MAX ((size_t)2)
#define BOXES_VERSION_SIZE 48

/* What is known of one engine. */
struct boxes_engine_view {
    const char *name;
    char version[BOXES_VERSION_SIZE]; /* as its program says, "" unknown */
    bool standard;                    /* of calls that name none */
    bool ready;
    bool images;
    /*
     * Was the memory cap in force over the box that ended last, as the launcher itself saw it? 1 a
     * ceiling at or below the cap, 0 none, -1 not told.
     */
    int cap_bound;
    struct err failure; /* valid unless ready */
};

struct boxes_config {
    const char *runtime_dir; /* private (0700); boxes/ is made below it */
    const char *library_dir; /* holds kernd-init, driver.py, driver.js */
    const char *engine;      /* "auto", "bubblewrap" or "kern" */
    const char *launcher;    /* of that engine (auto: bwrap), NULL: in the standard directories */
    const char *kern;        /* with auto: path of kern, NULL: in the standard directories */
    const char *image;       /* for calls that name none, NULL: BOXES_IMAGE */
    const char *image_cache; /* where kern keeps images, NULL: none can be used */
    uint64_t files_max;      /* files and directories of a workspace, 0: BOXES_FILES_MAX */
    bool confine;            /* the caller's thread, as one that starts boxes (confine.h) */
};

/* How limits and walls hold on this host; texts are static or live as long as boxes. */
struct boxes_abilities {
    const char *engine;                      /* the standard one: "bubblewrap" or "kern" */
    char engine_version[BOXES_VERSION_SIZE]; /* "0.8.0", "" unknown */
    const char *memory;                      /* as struct box_enforced */
    const char *pids;
    const char *cpu;
    const char *disk;
    const char *cgroup_missing; /* why boxes get no cgroup, "" if they do */
    bool seccomp;
    int landlock_abi; /* the kernel's, 0: none */
    bool landlock;    /* is in force in the boxes started last; false before the first */
    uint64_t files_max;
    unsigned io_weight; /* 0: the disks of this host are not shared by weight */
};

/*
 * Makes the directories, builds the seccomp program, finds the launcher, sweeps what a killed
 * predecessor left. Confines the caller's thread if config says so, and with it all it makes later:
 * confine_starter, unless a launcher is setuid. Then makes two threads, which a stricter
 * confinement of the caller that comes after does not reach. 0, or -1 when the configuration is
 * unusable. A host where no box can start is not an error here: boxes_ready tells, and box_start
 * fails with ENGINE_UNAVAILABLE. CONFLICT: another process uses the runtime directory.
 */
int boxes_open(const struct boxes_config *config, struct boxes **ret_boxes, struct err *err);
void boxes_close(struct boxes *boxes);

/* Confines the caller's thread further, and all that it makes later: it starts no templates. */
void boxes_confine_rest(const struct boxes *boxes);

/*
 * Can a box start here? Starts a trivial one the first time and remembers success; a failure is
 * probed again at most once a second. 0, or -1 ENGINE_UNAVAILABLE with a remedy that names the
 * sysctl, the AppArmor profile or the package.
 */
int boxes_ready(struct boxes *boxes, struct err *err);

/*
 * Those that the configuration allows and that are installed, or the one that it names; each is
 * probed as boxes_ready does, again when its program has changed. How many.
 */
size_t boxes_engines(struct boxes *boxes, struct boxes_engine_view ret_views[BOXES_ENGINES_MAX]);

/* The program of the engine with images and where those are; NULL: there is none here. */
const char *boxes_engines_image_program(const struct boxes *boxes, const char **ret_cache_dir);

/*
 * The engine of calls that name none, and another one that is installed (NULL: there is none).
 * Static texts.
 */
void boxes_engines_names(const struct boxes *boxes, const char **ret_own, const char **ret_other);

/* Is an engine of this name to be had, by the configuration and what is installed? */
bool boxes_engines_have(const struct boxes *boxes, const char *name);

void boxes_abilities(struct boxes *boxes, struct boxes_abilities *ret_abilities);

/*
 * Has run(context) done on a thread that may start boxes, and waits for it: for callers that are
 * confined (confine.h). Boxes that it starts have to end before it does. 0 or -1 SHUTTING_DOWN.
 */
int boxes_errand(struct boxes *boxes, void (*run)(void *context), void *context, struct err *err);

/* Can the standard engine make templates (box_spec.fork_workspaces)? */
bool boxes_can_fork(const struct boxes *boxes);

/* Live boxes now. */
size_t boxes_running(struct boxes *boxes);

#endif
