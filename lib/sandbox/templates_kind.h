/* SPDX-License-Identifier: Apache-2.0 */
/*
 * templates_kind: what templates are told apart by. For lib/sandbox/templates*.c; any thread. Looks
 * at the request's directories, changes nothing.
 *
 * That is what can't be changed in an interpreter that runs, or in the mounts that it was started
 * with: the variables that follow from `cpus`, the modules of `preload`, and the places of the host
 * that a caller named, which a template for others must not reach.
 */
#ifndef KERND_SANDBOX_TEMPLATES_KIND_H
#define KERND_SANDBOX_TEMPLATES_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/strv.h"
#include "lib/sandbox/boxing.h"

struct templates_kind {
    double cpus;
    struct strv preload;      /* of the host's own modules */
    struct run_mount *mounts; /* each with what it was when it was judged */
    size_t mount_count;
    char *workspace; /* a caller's own directory, NULL: any below the sandbox's workspaces */
    bool readonly;   /* that */
    uint64_t device; /* what that was */
    uint64_t inode;
};

/*
 * The kind for a request's box. False: no template makes such boxes (another engine or language, a
 * network, a working directory of its own, mounts of files or at places that can't be made ahead,
 * or too many, "isolation": "boot").
 */
bool templates_kind_of(const struct boxing *boxing, struct templates_kind *ret_kind);

void templates_kind_copy(struct templates_kind *to, const struct templates_kind *from);
bool templates_kind_equal(const struct templates_kind *a, const struct templates_kind *b);

/* Is it for calls that name this very place of the host? Others come from everybody. */
bool templates_kind_is_private(const struct templates_kind *kind);

void templates_kind_done(struct templates_kind *kind);

#endif
