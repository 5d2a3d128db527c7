/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: what a session is made with and every call in it inherits. A plain owned value.
 */
#ifndef KERND_SANDBOX_OPTIONS_H
#define KERND_SANDBOX_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/strv.h"
#include "lib/sandbox/choice.h"
#include "lib/sandbox/limits.h"
#include "lib/sandbox/run.h"

/* The encoded form is at most this big; a session with more is refused when it is made. */
#define OPTIONS_ENCODED_MAX ((size_t)1 << 20)

struct options {
    struct limits limits;
    bool network;
    bool boot; /* as struct run_request */
    bool track_files;
    bool deps_readonly;
    bool require_limits;
    double idle_timeout_s;   /* 0: never */
    double ttl_s;            /* 0: never */
    uint64_t prewarm;        /* spares kept for this session's runCode */
    bool prewarm_set;        /* false: the default policy decides */
    struct choice choice;    /* of the engine */
    char *workspace;         /* host directory given by the caller, NULL: an owned one */
    bool workspace_readonly; /* nothing writes there, in boxes or through kernd */
    char *setup;             /* NULL: none */
    char *snapshot;          /* what the files come from, by id or name, NULL: none */
    char *environment;       /* what its boxes see besides, by id, NULL: none */
    struct strv preload;     /* modules that its spares import */
    struct strv env;         /* "K=V" */
    struct run_mount *mounts;
    size_t mount_count;
    struct strv labels; /* "key=value" */
};

void options_init(struct options *options, const struct limits *defaults);
void options_done(struct options *options);
void options_copy(struct options *to, const struct options *from);

/* Sets limits, env, mounts, network ... of a fresh request to what the session says. */
void options_apply(const struct options *options, struct run_request *request);

/* A self-contained text form for the store. 0, or -1 BAD_VALUE when it would be too big. */
int options_encode(const struct options *options, struct buf *out, struct err *err);

/* What stands in the text form of options with this environment, a fresh string. */
char *options_text_of_environment(const char *id);

/* Reads the text form; unknown names are skipped (a newer kernd wrote them). 0, or -1 INTERNAL. */
int options_decode(const char *text, size_t size, struct options *ret_options, struct err *err);

#endif
