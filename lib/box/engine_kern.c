/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: drive kern, which runs OCI images.
 * Owns: nothing.
 * Threads: any.
 * May include: base, engine.
 *
 * Of what kern offers, kernd takes the box and leaves the rest: no stop grace (kernd has its own
 * ladder), no registry in a call (a pull is a step of its own), no sub-ids (files that the user
 * could not delete), no cgroup of kern's (kernd-made ones hold the launcher from its birth, and
 * kernd tells what is in force).
 */
#include <inttypes.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/box/engine.h"
#include "lib/box/guest_etc.h"
#include "lib/box/init_wire.h"
#include "lib/box/remedy_kern.h"

/* kern's own defaults would hold where no flag is given. */
#define NO_MEMORY_CAP "1024t"
#define NO_PIDS_CAP "4194304" /* the kernel's largest pid_max (proc(5)) */

static void add_volume(struct strv *argv, const char *source, const char *target, bool writable)
{
    strv_add(argv, "-v");
    strv_addf(argv, "%s:%s%s", source, target, writable ? "" : ":ro");
}

static void add_kernd(const struct engine_plan *plan, struct strv *argv)
{
    CLEANUP_FREE char *secrets = alloc_printf("%s/" ENGINE_SECRETS, plan->box_dir);

    add_volume(argv, plan->spec->workspace, "/workspace", !plan->spec->workspace_readonly);
    add_volume(argv, plan->box_dir, "/run/kernd", false);
    add_volume(argv, secrets, "/run/secrets", false);
    add_volume(argv, plan->library_dir, "/run/kernd-lib", false);
}

/* Memory-backed, so never larger than the box's memory. */
static void add_tmpfs(const struct engine_plan *plan, struct strv *argv, const char *path)
{
    strv_add(argv, "--tmpfs");
    if (plan->spec->limits.memory_bytes > 0) {
        strv_addf(argv, "%s:%" PRIu64, path, plan->spec->limits.memory_bytes);
    } else {
        strv_add(argv, path);
    }
}

static void add_limits(const struct box_limits *limits, struct strv *argv)
{
    strv_add(argv, "--memory");
    if (limits->memory_bytes > 0) {
        strv_addf(argv, "%" PRIu64, limits->memory_bytes);
    } else {
        strv_add(argv, NO_MEMORY_CAP);
    }
    if (limits->cpus > 0) {
        strv_add(argv, "--cpus");
        strv_addf(argv, "%g", limits->cpus);
    }
    strv_add(argv, "--pids-limit");
    if (limits->pids > 0) {
        /* kernd-init and kern itself are not the caller's. */
        strv_addf(argv, "%" PRIu64, (uint64_t)limits->pids + 2);
    } else {
        strv_add(argv, NO_PIDS_CAP);
    }
}

static char *joined(const struct strv *list)
{
    CLEANUP_BUF struct buf text = BUF_INIT(SIZE_MAX);

    for (size_t i = 0; i < list->count; i++) {
        (void)buf_printf(&text, "%s%s", i == 0 ? "" : ",", list->items[i]);
    }
    return buf_take(&text, NULL);
}

static void add_walls(const struct box_extras *extras, struct strv *argv)
{
    if (extras->cap_drop == NULL) {
        strv_add_all(argv, "--cap-drop", "ALL", NULL);
    }
    for (size_t i = 0; extras->cap_drop != NULL && i < extras->cap_drop->count; i++) {
        strv_add_all(argv, "--cap-drop", extras->cap_drop->items[i], NULL);
    }
    if (extras->security_profile != NULL) {
        strv_add_all(argv, "--security-profile", extras->security_profile, NULL);
    }
    if (extras->apparmor != NULL) {
        strv_add_all(argv, "--apparmor", extras->apparmor, NULL);
    }
}

/* Profiles are words of their own: never behind a flag whose value may be left out. */
static void add_network(const struct engine_plan *plan, struct strv *argv)
{
    const struct box_extras *extras = &plan->spec->extras;

    if (extras->egress != NULL && extras->egress->count > 0) {
        CLEANUP_FREE char *domains = joined(extras->egress);

        strv_add_all(argv, "--egress-allow", domains, NULL);
    } else {
        strv_add_all(argv, "--net", plan->spec->network ? "host" : "none", NULL);
    }
    if (extras->profiles != NULL) {
        for (size_t i = 0; i < extras->profiles->count; i++) {
            strv_add(argv, extras->profiles->items[i]);
        }
    }
}

static void make_argv(const struct engine_plan *plan, struct strv *ret_argv)
{
    const struct box_extras *extras = &plan->spec->extras;

    strv_add_all(ret_argv, "kern", "box", plan->box_name, "--image",
                 extras->image != NULL ? extras->image : plan->image, NULL);
    strv_add_all(ret_argv, "--ro", "--pull", "never", "--no-uid-range", "--user", "0:0",
                 "--stop-timeout", "0", "--hostname", GUEST_ETC_HOSTNAME, "--workdir", "/workspace",
                 NULL);
    add_kernd(plan, ret_argv);
    add_tmpfs(plan, ret_argv, "/tmp");
    add_tmpfs(plan, ret_argv, GUEST_ETC_HOME);
    add_walls(extras, ret_argv);
    add_limits(&plan->spec->limits, ret_argv);
    add_network(plan, ret_argv);
    for (size_t i = 0; i < plan->spec->mount_count; i++) {
        const struct box_mount *mount = &plan->spec->mounts[i];

        add_volume(ret_argv, mount->source, mount->target, mount->writable);
    }
    strv_add_all(ret_argv, "--", "/run/kernd-lib/kernd-init", INIT_WIRE_IN_IMAGE, NULL);
}

/* What of kernd's own environment is kern's business. Its internal variables are not, whoever set
 * them, nor those that would undo what kernd asks for. */
static const char *const passed_on[] = { "HOME",         "PATH",           "KERN_CONFIG",
                                         "KERN_SECCOMP", "LANG",           "KERN_MAX_CONCURRENT",
                                         "HTTPS_PROXY",  "XDG_CONFIG_HOME" };

static void make_environment(const struct engine_plan *plan, char *const *own, struct strv *ret_env)
{
    for (; *own != NULL; own++) {
        size_t name_size = strcspn(*own, "=");

        for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++) {
            if (strlen(passed_on[i]) == name_size && strncmp(*own, passed_on[i], name_size) == 0) {
                strv_add(ret_env, *own);
            }
        }
    }
    /* Boxes of other programs are none of ours, and theirs not of us. */
    strv_addf(ret_env, "XDG_RUNTIME_DIR=%s", plan->private_dir);
    strv_addf(ret_env, "XDG_CACHE_HOME=%s", plan->cache_dir);
    /* Quiet: which of its caps hold it would find out for each box, to tell it in prose. */
    strv_add_all(ret_env, "KERN_NO_SCOPE=1", "KERN_ALLOW_UNCAPPED=1", "KERN_QUIET=1", NULL);
    if (plan->report_fd > 0) {
        strv_addf(ret_env, "KERN_STARTED_FD=%d", plan->report_fd);
    }
}

/* kern takes "source:target[:ro]", and has no way to write a colon. */
static int vet_path(const char *path, const char *field, struct err *err)
{
    return strchr(path, ':') == NULL ? 0
                                     : err_field(err, ERR_NOT_SUPPORTED_HERE, field,
                                                 "the engine kern can't mount a path with a colon");
}

static int vet(const struct box_spec *spec, struct err *err)
{
    for (size_t i = 0; i < spec->mount_count; i++) {
        if (vet_path(spec->mounts[i].source, "/mounts", err) < 0 ||
            vet_path(spec->mounts[i].target, "/mounts", err) < 0) {
            return -1;
        }
    }
    return vet_path(spec->workspace, "/workspace", err);
}

const struct engine engine_kern = {
    .name = "kern",
    .launcher_name = "kern",
    .package = "kern",
    .tasks = 1, /* the one that made the user namespace waits in it */
    .images = true,
    .reports = true,
    .vet = vet,
    .argv = make_argv,
    .environment = make_environment,
    .explain = remedy_kern_explain,
};
