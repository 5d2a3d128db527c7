/* SPDX-License-Identifier: Apache-2.0 */
/*
 * box_internal: one box's fields, for the files of this room only.
 */
#ifndef KERND_BOX_BOX_INTERNAL_H
#define KERND_BOX_BOX_INTERNAL_H

#include "lib/base/id.h"
#include "lib/box/box.h"
#include "lib/box/boxes_internal.h"
#include "lib/box/diskwatch.h"
#include "lib/box/initlink.h"
#include "lib/box/spawn.h"
#include "lib/box/watchdog.h"

enum output_stream { OUTPUT_STDOUT, OUTPUT_STDERR, OUTPUT_STREAMS };

/* What may wait for the first pump, per stream (see output.h). */
#define BOX_HELD_MAX ((size_t)1024 * 1024)

struct box {
    struct boxes *boxes;
    struct boxes_engine *engine;
    char id[ID_SIZE];
    int dir;               /* the per-box directory */
    const char *code_name; /* of the last file that was put there as code, static; or NULL */
    struct box_limits limits;
    struct strv pins;            /* see init_wire.h */
    const char *fork_workspaces; /* not NULL: a template */
    const char *fork_workspace;  /* of a template: the one that its boxes have, NULL: any */
    const char *fork_layers;
    atomic_size_t forks;  /* made of it, and not ended yet */
    struct box *template; /* that it was forked of, or NULL: the launcher is not there */
    struct spawn_child launcher;
    int init_listener;
    struct initlink link;
    int driver_listener; /* -1: none, or taken */
    int driver;
    int stdin_fd; /* -1 once closed */
    int stdout_fd;
    int stderr_fd;
    int words_fd;  /* what the launcher itself says, of an engine with images; else -1 */
    int report_fd; /* its last word, struct engine_report; else -1 */
    size_t stdin_sent;
    bool stdin_waits; /* bytes wait until the program reads */
    char *scratch;    /* for reading pipes */
    struct buf held[OUTPUT_STREAMS];
    bool begun;
    bool told_started; /* SINK_STARTED was emitted */
    bool pumped;
    enum box_stop stop; /* why the last pump ended, valid if pumped */
    int64_t begun_ns;
    struct watchdog watchdog;
    struct diskwatch diskwatch;
    int cgroup;                 /* its directory, -1: none */
    bool frozen;                /* by its cgroup */
    bool fork_readonly;         /* of a template: the workspaces of its boxes are */
    int64_t cpu_user_before_us; /* of the cgroup when the program began */
    int64_t cpu_system_before_us;
};

/* The parts of box_start that box_fork shares; -1 with err, and then the box is to be abandoned. */
struct box *box_start_new(struct boxes *boxes, const struct box_spec *spec);
int box_start_dir(struct box *box, const struct box_spec *spec, struct err *err);
struct ends;
int box_start_await(struct box *box, const struct box_spec *spec, const struct ends *ends,
                    struct err *err);
void box_start_abandon(struct box *box);

/* Frees a box in any state of construction; its processes must be gone. */
void box_release(struct box *box);

#endif
