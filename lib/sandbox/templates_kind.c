/* SPDX-License-Identifier: Apache-2.0 */
/*
 * templates_kind: which template a call needs.
 * Owns: nothing.
 * Threads: any.
 * May include: all of lib.
 */
#include "lib/sandbox/templates_kind.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/work/path.h"

#define MOUNTS_MAX 16

/*
 * The directories that mounts are to cover are made as the template starts: in what it has of the
 * host nothing can be made, and where each box gets something new it would not be seen.
 */
static const char *const needed[] = { "/usr",   "/bin",   "/sbin",         "/lib",
                                      "/lib32", "/lib64", "/libx32",       "/etc",
                                      "/dev",   "/proc",  "/sys",          "/run",
                                      "/tmp",   "/var",   "/home/sandbox", "/workspace" };

static bool is_apart(const char *target)
{
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (path_is_beneath(target, needed[i]) || path_is_beneath(needed[i], target)) {
            return false;
        }
    }
    return true;
}

static bool is_directory(const struct run_mount *mount)
{
    struct stat status;

    return stat(mount->source, &status) == 0 && S_ISDIR(status.st_mode) &&
           status.st_dev == mount->device && status.st_ino == mount->inode;
}

static bool can_be_mounted(const struct run_request *request)
{
    for (size_t i = 0; i < request->mount_count; i++) {
        if (!is_apart(request->mounts[i].target) || !is_directory(&request->mounts[i])) {
            return false;
        }
    }
    return request->mount_count <= MOUNTS_MAX;
}

/* Is its workspace one of kernd's own, which every template can reach? */
static bool is_owned(const struct boxing *boxing)
{
    const char *parent = boxing->sandbox->workspaces_path;
    const size_t size = strlen(parent);

    return text_starts_with(boxing->workspace, parent) && boxing->workspace[size] == '/' &&
           strchr(boxing->workspace + size + 1, '/') == NULL;
}

/* Templates are bubblewrap's, of the host's own files. */
static bool is_plain(const struct boxing *boxing)
{
    const struct choice *choice = &boxing->request->choice;
    const char *standard;
    const char *other;

    boxes_engines_names(boxing->sandbox->boxes, &standard, &other);
    return text_equal(choice->engine == NULL ? standard : choice->engine, "bubblewrap");
}

static bool can_be_forked(const struct boxing *boxing)
{
    const struct run_request *request = boxing->request;

    return is_plain(boxing) && boxing->driver &&
           (request->kind == RUN_CODE || request->kind == RUN_CELL) &&
           request->language == RUN_PYTHON && !request->network && request->cwd == NULL &&
           !request->boot && boxing->root >= 0 && can_be_mounted(request);
}

static void copy_mounts(struct templates_kind *to, const struct run_mount *mounts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        run_mount_add(&to->mounts, &to->mount_count, mounts[i].source, mounts[i].target,
                      mounts[i].writable);
        to->mounts[i].device = mounts[i].device;
        to->mounts[i].inode = mounts[i].inode;
    }
}

bool templates_kind_of(const struct boxing *boxing, struct templates_kind *ret_kind)
{
    const struct run_request *request = boxing->request;
    const bool packages = request->environment != NULL || boxing_has_deps(boxing);
    struct stat status;

    if (!can_be_forked(boxing) || fstat(boxing->root, &status) < 0) {
        return false;
    }
    *ret_kind = (struct templates_kind){ .cpus = request->limits.cpus };
    if (!packages) {
        strv_copy(&ret_kind->preload, &request->preload);
    }
    copy_mounts(ret_kind, request->mounts, request->mount_count);
    if (!is_owned(boxing)) {
        ret_kind->workspace = alloc_text(boxing->workspace);
        ret_kind->readonly = request->workspace_readonly;
        ret_kind->device = status.st_dev;
        ret_kind->inode = status.st_ino;
    }
    return true;
}

void templates_kind_copy(struct templates_kind *to, const struct templates_kind *from)
{
    *to = *from;
    to->preload = (struct strv){ 0 };
    to->mounts = NULL;
    to->mount_count = 0;
    strv_copy(&to->preload, &from->preload);
    copy_mounts(to, from->mounts, from->mount_count);
    to->workspace = from->workspace == NULL ? NULL : alloc_text(from->workspace);
}

static bool is_same_mount(const struct run_mount *a, const struct run_mount *b)
{
    return text_equal(a->source, b->source) && text_equal(a->target, b->target) &&
           a->writable == b->writable && a->device == b->device && a->inode == b->inode;
}

bool templates_kind_equal(const struct templates_kind *a, const struct templates_kind *b)
{
    bool equal = !(a->cpus < b->cpus) && !(a->cpus > b->cpus) && a->readonly == b->readonly &&
                 a->device == b->device && a->inode == b->inode &&
                 a->mount_count == b->mount_count && text_equal(a->workspace, b->workspace) &&
                 strv_equal(&a->preload, &b->preload);

    for (size_t i = 0; equal && i < a->mount_count; i++) {
        equal = is_same_mount(&a->mounts[i], &b->mounts[i]);
    }
    return equal;
}

bool templates_kind_is_private(const struct templates_kind *kind)
{
    return kind->mount_count > 0 || kind->workspace != NULL;
}

void templates_kind_done(struct templates_kind *kind)
{
    strv_done(&kind->preload);
    run_mounts_free(kind->mounts, kind->mount_count);
    free(kind->workspace);
    *kind = (struct templates_kind){ 0 };
}
