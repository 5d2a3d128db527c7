/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: drive bubblewrap (bwrap 0.7 or later: --size).
 * Owns: nothing.
 * Threads: any.
 * May include: base, engine.
 */
#include <inttypes.h>

#include "lib/base/text.h"
#include "lib/box/engine.h"
#include "lib/box/guest_etc.h"
#include "lib/box/init_wire.h"
#include "lib/box/seccomp.h"
#include "lib/box/template_wire.h"

static bool is_template(const struct engine_plan *plan)
{
    return plan->spec->fork_workspaces != NULL;
}

static void add_user(struct strv *argv, int user)
{
    strv_add(argv, "--uid");
    strv_addf(argv, "%d", user);
    strv_add(argv, "--gid");
    strv_addf(argv, "%d", user);
}

/*
 * A template forks boxes, and needs the rights for that in its own user namespace. With user 0 that
 * is the one its other namespaces belong to: for any other, bwrap makes a second. Cgroups it has to
 * see whole, since it puts boxes into theirs.
 */
static void add_rights(const struct engine_plan *plan, struct strv *argv)
{
    if (is_template(plan)) {
        strv_add_all(argv, "--cap-add", "ALL", NULL);
        add_user(argv, 0);
        return;
    }
    strv_add_all(argv, "--unshare-cgroup-try", "--cap-drop", "ALL", NULL);
    add_user(argv, GUEST_ETC_UID);
    for (int i = 0; i < SECCOMP_PROGRAMS; i++) {
        strv_add(argv, "--add-seccomp-fd");
        strv_addf(argv, "%d", ENGINE_FIRST_SECCOMP_FD + i);
    }
}

static void add_namespaces(const struct engine_plan *plan, struct strv *argv)
{
    strv_add_all(argv, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", NULL);
    if (!plan->spec->network) {
        strv_add(argv, "--unshare-net");
    }
    strv_add_all(argv, "--as-pid-1", "--die-with-parent", "--new-session", "--hostname",
                 GUEST_ETC_HOSTNAME, "--clearenv", NULL);
    add_rights(plan, argv);
}

static void add_system(const struct engine_plan *plan, struct strv *argv)
{
    strv_add_all(argv, "--ro-bind", "/usr", "/usr", NULL);
    for (size_t i = 0; i < plan->root_count; i++) {
        const struct engine_root *root = &plan->root[i];

        if (root->present && root->link != NULL) {
            strv_add_all(argv, "--symlink", root->link, root->path, NULL);
        } else if (root->present) {
            strv_add_all(argv, "--ro-bind", root->path, root->path, NULL);
        }
    }
    strv_add_all(argv, "--ro-bind", plan->etc_dir, "/etc", NULL);
    if (plan->spec->network && plan->resolv_conf != NULL) {
        strv_add_all(argv, "--ro-bind", plan->resolv_conf, "/etc/resolv.conf", NULL);
    }
    strv_add_all(argv, "--proc", "/proc", "--dev", "/dev", NULL);
}

/* Memory-backed, so never larger than the box's memory. */
static void add_tmpfs(const struct engine_plan *plan, struct strv *argv, const char *mode,
                      const char *path)
{
    if (plan->spec->limits.memory_bytes > 0) {
        strv_add(argv, "--size");
        strv_addf(argv, "%" PRIu64, plan->spec->limits.memory_bytes);
    }
    strv_add_all(argv, "--perms", mode, "--tmpfs", path, NULL);
}

static void add_private(const struct engine_plan *plan, struct strv *argv)
{
    if (is_template(plan)) {
        /* On each of them the boxes get a file system of their own. */
        strv_add_all(argv, "--perms", "1777", "--dir", "/tmp", "--dir", GUEST_ETC_HOME, "--dir",
                     "/dev/mqueue", NULL);
    } else {
        add_tmpfs(plan, argv, "1777", "/tmp");
        add_tmpfs(plan, argv, "0755", GUEST_ETC_HOME);
        add_tmpfs(plan, argv, "1777", "/dev/shm");
        /* mq_open(3) needs no mount, but Landlock needs a path to allow what lies there. */
        strv_add_all(argv, "--mqueue", "/dev/mqueue", NULL);
    }
    /* Devices and terminals are mounts of their own beneath: only the directory gets read-only. */
    strv_add_all(argv, "--remount-ro", "/dev", "--symlink", "../tmp", "/var/tmp", NULL);
}

static void add_kernd(const struct engine_plan *plan, struct strv *argv)
{
    strv_add_all(argv, "--ro-bind", plan->box_dir, "/run/kernd", "--symlink",
                 "kernd/" ENGINE_SECRETS, "/run/secrets", NULL);
    if (text_starts_with(plan->library_dir, "/usr/")) {
        /* There already: a link is cheaper than a mount. */
        strv_add_all(argv, "--symlink", plan->library_dir, "/run/kernd-lib", NULL);
    } else {
        strv_add_all(argv, "--ro-bind", plan->library_dir, "/run/kernd-lib", NULL);
    }
}

static void add_workspace(const struct box_spec *spec, const char *target, struct strv *argv)
{
    strv_add_all(argv, spec->workspace_readonly ? "--ro-bind" : "--bind", spec->workspace, target,
                 NULL);
}

/*
 * What boxes take one of each from (template_wire.h), and their mounts, aside: what a caller hands
 * over is nowhere where a template imports from. "/" stays writable until there are some.
 */
static void add_shelves(const struct engine_plan *plan, struct strv *argv)
{
    const struct box_spec *spec = plan->spec;

    strv_add_all(argv, "--perms", "0700", "--tmpfs", TEMPLATE_WIRE_PRIVATE, "--ro-bind",
                 plan->boxes_dir, TEMPLATE_WIRE_BOXES, NULL);
    if (spec->workspace != NULL) {
        add_workspace(spec, TEMPLATE_WIRE_WORKSPACES "/" TEMPLATE_WIRE_OWN, argv);
    } else {
        strv_add_all(argv, "--bind", spec->fork_workspaces, TEMPLATE_WIRE_WORKSPACES, NULL);
    }
    if (spec->fork_layers != NULL) {
        strv_add_all(argv, "--ro-bind", spec->fork_layers, TEMPLATE_WIRE_LAYERS, NULL);
    }
    for (size_t i = 0; i < spec->mount_count; i++) {
        strv_add_all(argv, spec->mounts[i].writable ? "--bind" : "--ro-bind",
                     spec->mounts[i].source, NULL);
        strv_addf(argv, TEMPLATE_WIRE_MOUNT, i + 1);
        strv_add_all(argv, "--dir", spec->mounts[i].target, NULL);
    }
    strv_add_all(argv, "--dir", TEMPLATE_WIRE_LEFT, "--dir", TEMPLATE_WIRE_LAYER_AT, "--dir",
                 "/workspace", "--chdir", "/workspace", NULL);
}

static void add_mounts(const struct engine_plan *plan, struct strv *argv)
{
    add_workspace(plan->spec, "/workspace", argv);
    for (size_t i = 0; i < plan->spec->mount_count; i++) {
        const struct box_mount *mount = &plan->spec->mounts[i];

        strv_add_all(argv, mount->writable ? "--bind" : "--ro-bind", mount->source, mount->target,
                     NULL);
    }
    strv_add_all(argv, "--remount-ro", "/", "--chdir", "/workspace", NULL);
}

static void make_argv(const struct engine_plan *plan, struct strv *ret_argv)
{
    strv_add(ret_argv, "bwrap");
    add_namespaces(plan, ret_argv);
    add_system(plan, ret_argv);
    add_private(plan, ret_argv);
    add_kernd(plan, ret_argv);
    if (is_template(plan)) {
        add_shelves(plan, ret_argv);
    } else {
        add_mounts(plan, ret_argv);
    }
    strv_add_all(ret_argv, "--", "/run/kernd-lib/kernd-init",
                 is_template(plan) ? INIT_WIRE_TEMPLATE : NULL, NULL);
}

const struct engine engine_bwrap = {
    .name = "bubblewrap",
    .launcher_name = "bwrap",
    .package = "bubblewrap",
    .seccomp = true,
    .ends_with_parent = true,
    .argv = make_argv,
    .explain = remedy_explain,
};
