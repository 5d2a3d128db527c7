/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run: what a caller asks of one execution, and what came of it.
 */
#ifndef KERND_SANDBOX_RUN_H
#define KERND_SANDBOX_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/steps.h"
#include "lib/base/strv.h"
#include "lib/cell/bundle.h" /* readers of a result need its form */
#include "lib/sandbox/choice.h"
#include "lib/sandbox/limits.h"

enum run_kind { RUN_COMMAND, RUN_CODE, RUN_SETUP, RUN_CELL, RUN_PULL };
enum run_language { RUN_PYTHON, RUN_BASH, RUN_NODE, RUN_LANGUAGE_MAX };

const char *run_kind_text(enum run_kind kind); /* "run", "runCode", "setup", "cell", "pull" */
/* 0 and the value, or -1. */
int run_kind_parse(const char *text, enum run_kind *ret_kind);
const char *run_language_text(enum run_language language); /* "python", "bash", "node" */
/* 0 and the value, or -1. */
int run_language_parse(const char *text, enum run_language *ret_language);

struct run_file {
    char *path; /* relative to the workspace; UTF-8 or raw bytes */
    char *data;
    size_t size;
};

struct run_mount {
    char *source; /* host path, validated and resolved */
    char *target; /* absolute path in the box */
    bool writable;
    uint64_t device; /* of the source when it was judged; inode 0: not yet */
    uint64_t inode;
};

struct environment_use;
struct session_hold;

/* What becomes of an execution whose client leaves. */
enum run_disconnect { RUN_DISCONNECT_DEFAULT, RUN_DISCONNECT_CANCEL, RUN_DISCONNECT_CONTINUE };

/* Owned by whoever holds it; run_request_free frees all. Plain fields are set by the decoder. */
struct run_request {
    enum run_kind kind;
    enum run_language language;
    struct strv command; /* RUN_COMMAND */
    char *code;          /* RUN_CODE */
    size_t code_size;
    char *stdin_data; /* NULL: empty */
    size_t stdin_size;
    struct strv env; /* "K=V", keys validated */
    char *cwd;       /* absolute path in the box, NULL: /workspace */
    struct run_file *files;
    size_t file_count;
    struct strv fetch;        /* paths to return after */
    struct run_file *secrets; /* by name: files of this box alone, told nowhere */
    size_t secret_count;
    char *workspace; /* of a one-shot: host directory of the caller, NULL: a fresh one */
    struct run_mount *mounts;
    size_t mount_count;
    struct limits limits;
    struct choice choice; /* of the engine; of RUN_PULL: the image to fetch */
    bool require_limits;  /* refuse rather than run with a cap that is not in force */
    bool network;
    bool boot; /* a box of its own boot, never one forked of a template */
    bool track_files;
    bool deps_readonly;                      /* what setup installed can't be changed */
    bool workspace_readonly;                 /* of a session with a caller's own */
    char *environment;                       /* id (before vetting: or name), NULL: none */
    struct environment_use *environment_use; /* keeps it; given back by run_request_free */
    struct strv preload;                     /* modules that an interpreter booted ahead imports */
    char *builds;                            /* id of the environment that this fills, NULL: none */
    bool stdout_base64;                      /* presentation only: carried for the reply */
    enum run_disconnect on_disconnect;       /* the same */
    char *id;                                /* the caller's own execution id, NULL: one is made */
    char fingerprint[65];   /* hash of the body, to know the same request again; "": none */
    double queue_timeout_s; /* 0: waits as long as it takes */
    char *cell_session;     /* of a cell: where it runs */
    char *cell_kernel;
    bool kill_at_end; /* of a cell: its deadline and cancel kill the kernel at once */
    bool interactive; /* stdin stays open for execution_write_stdin */
    bool detach;      /* a background process: no deadline but its session's end */
    bool live_output; /* somebody follows: python flushes at each line end */
    bool announced;   /* its id is told before its end: its record is in the store by then */
    uint64_t caller;
    bool all;                     /* the caller may see executions and sessions of others */
    struct session_hold *session; /* NULL: a one-shot; given back by run_request_free */
    struct steps steps;           /* of the call that asks, until now; zeroed: none */
};

/* Appends copies of both paths to an owned array of mounts. */
void run_mount_add(struct run_mount **mounts, size_t *count, const char *source, const char *target,
                   bool writable);
void run_mounts_free(struct run_mount *mounts, size_t count);

struct run_request *run_request_new(void); /* zeroed, track_files true */
void run_request_free(struct run_request *request);
/* Frees what is in one that is part of something else. */
void run_request_done(struct run_request *request);

enum run_fault {
    RUN_FAULT_NONE,
    RUN_FAULT_TIMEOUT,
    RUN_FAULT_OOM,
    RUN_FAULT_ESCAPE_BLOCKED,
    RUN_FAULT_KILLED,
    RUN_FAULT_STARTUP_FAILED,
    RUN_FAULT_OUTPUT_LIMIT,
    RUN_FAULT_DISK_FULL,
    RUN_FAULT_CANCELLED,
    RUN_FAULT_LOST,
};
const char *run_fault_text(enum run_fault fault); /* "timeout", ...; NULL for none */
/* 0 and the value, "" for none; or -1. */
int run_fault_parse(const char *text, enum run_fault *ret_fault);

enum run_change { RUN_CREATED, RUN_MODIFIED, RUN_DELETED };

struct run_change_row {
    char *path; /* raw bytes */
    uint64_t size;
    enum run_change change;
};

struct run_fetched {
    char *path;
    char *data; /* NULL: not there, reason says why */
    size_t size;
    const char *reason; /* static: "not_found", "not_a_file", "too_large" */
};

/* Numbers that could not be measured are negative. */
struct run_usage {
    double wall_ms;
    double queue_ms;
    double start_ms;
    double cpu_user_ms;
    double cpu_system_ms;
    int64_t peak_memory_bytes;
    int64_t peak_pids;
    const char *source; /* static: "cold", "spare", "template" */
};

struct run_enforced { /* static texts, as struct box_enforced */
    const char *memory;
    const char *pids;
    const char *cpu;
    const char *disk;
};

struct run_result {
    bool has_exit_code;
    int exit_code; /* 0-255; 128 + n after a signal */
    int signal;    /* 0, or the signal that ended the program */
    struct buf stdout_data;
    struct buf stderr_data;
    bool truncated_stdout;
    bool truncated_stderr;
    bool state_kept;        /* of a cell that began: the kernel lives and has its variables */
    struct buf late_stdout; /* of a kernel: written after the end of the cell before */
    struct buf late_stderr;
    enum run_fault fault;
    char fault_message[256];
    char fault_evidence[160];
    struct buf *results; /* encoded bundles (lib/cell/bundle.h), one each */
    size_t result_count;
    bool results_truncated;
    struct run_change_row *changes;
    size_t change_count;
    bool changes_truncated;
    struct run_fetched *fetched;
    size_t fetched_count;
    struct run_usage usage;
    struct run_enforced enforced;
    int64_t started_wall_ms; /* 0: never started */
    int64_t finished_wall_ms;
};

void run_result_init(struct run_result *result);
void run_result_done(struct run_result *result);

#endif
