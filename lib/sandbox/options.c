/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: copying, inheriting and storing session options.
 * Owns: the memory inside an options value.
 * Threads: any, one at a time per value.
 * May include: lib/base, lib/sandbox/run.h.
 *
 * The stored form is a row of "name size\nbytes\n" entries: names are ours, bytes may be anything.
 */
#include "lib/sandbox/options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"

#define NAME_MAX_SIZE 32
#define NUMBER_MAX_SIZE 64
#define ENVIRONMENT "environment"

void options_init(struct options *options, const struct limits *defaults)
{
    *options = (struct options){ .limits = *defaults, .track_files = true };
}

void options_done(struct options *options)
{
    choice_done(&options->choice);
    free(options->workspace);
    free(options->setup);
    free(options->snapshot);
    free(options->environment);
    strv_done(&options->preload);
    strv_done(&options->env);
    strv_done(&options->labels);
    run_mounts_free(options->mounts, options->mount_count);
    *options = (struct options){ 0 };
}

static void copy_mounts(const struct run_mount *from, size_t from_count, struct run_mount **to,
                        size_t *to_count)
{
    for (size_t i = 0; i < from_count; i++) {
        run_mount_add(to, to_count, from[i].source, from[i].target, from[i].writable);
    }
}

void options_copy(struct options *to, const struct options *from)
{
    *to = *from;
    choice_copy(&to->choice, &from->choice);
    to->workspace = alloc_text(from->workspace);
    to->setup = alloc_text(from->setup);
    to->snapshot = alloc_text(from->snapshot);
    to->environment = alloc_text(from->environment);
    to->preload = (struct strv){ 0 };
    strv_copy(&to->preload, &from->preload);
    to->env = (struct strv){ 0 };
    strv_copy(&to->env, &from->env);
    to->labels = (struct strv){ 0 };
    strv_copy(&to->labels, &from->labels);
    to->mounts = NULL;
    to->mount_count = 0;
    copy_mounts(from->mounts, from->mount_count, &to->mounts, &to->mount_count);
}

void options_apply(const struct options *options, struct run_request *request)
{
    request->limits = options->limits;
    request->network = options->network;
    request->boot = options->boot;
    request->track_files = options->track_files;
    request->require_limits = options->require_limits;
    choice_done(&request->choice);
    choice_copy(&request->choice, &options->choice);
    request->deps_readonly = options->deps_readonly;
    request->workspace_readonly = options->workspace_readonly;
    request->environment = alloc_text(options->environment);
    strv_copy(&request->preload, &options->preload);
    strv_copy(&request->env, &options->env);
    copy_mounts(options->mounts, options->mount_count, &request->mounts, &request->mount_count);
}

static int put(struct buf *out, const char *name, const void *data, size_t size)
{
    return buf_printf(out, "%s %zu\n", name, size) < 0 || buf_append(out, data, size) < 0 ||
                   buf_append(out, "\n", 1) < 0
               ? -1
               : 0;
}

static int put_text(struct buf *out, const char *name, const char *text)
{
    return text == NULL ? 0 : put(out, name, text, strlen(text));
}

static int put_number(struct buf *out, const char *name, double value)
{
    CLEANUP_BUF struct buf text = BUF_INIT(NUMBER_MAX_SIZE);

    /* 17 significant digits bring a double back exactly. */
    return buf_printf(&text, "%.17g", value) < 0 ? -1 : put(out, name, text.data, text.size);
}

static int put_count(struct buf *out, const char *name, uint64_t value)
{
    CLEANUP_BUF struct buf text = BUF_INIT(NUMBER_MAX_SIZE);

    return buf_printf(&text, "%" PRIu64, value) < 0 ? -1 : put(out, name, text.data, text.size);
}

static int put_all(struct buf *out, const char *name, const struct strv *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        if (put_text(out, name, texts->items[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* A mount is its mode letter, its source, a line end (which no path here has) and its target. */
static int put_mount(struct buf *out, const struct run_mount *mount)
{
    CLEANUP_BUF struct buf text = BUF_INIT(OPTIONS_ENCODED_MAX);

    return buf_append(&text, mount->writable ? "w" : "r", 1) < 0 ||
                   buf_append_text(&text, mount->source) < 0 || buf_append_text(&text, "\n") < 0 ||
                   buf_append_text(&text, mount->target) < 0 ||
                   put(out, "mount", text.data, text.size) < 0
               ? -1
               : 0;
}

static int put_limits(struct buf *out, const struct limits *limits)
{
    return put_number(out, "timeoutS", limits->timeout_s) < 0 ||
                   put_count(out, "memoryMb", limits->memory_mb) < 0 ||
                   put_number(out, "cpus", limits->cpus) < 0 ||
                   put_count(out, "pids", limits->pids) < 0 ||
                   put_count(out, "diskMb", limits->disk_mb) < 0 ||
                   put_count(out, "maxOutputBytes", limits->max_output_bytes) < 0
               ? -1
               : 0;
}

static int put_choice(struct buf *out, const struct choice *choice)
{
    return put_text(out, "engine", choice->engine) < 0 ||
                   put_text(out, "image", choice->image) < 0 ||
                   put_text(out, "securityProfile", choice->security_profile) < 0 ||
                   put_text(out, "apparmor", choice->apparmor) < 0 ||
                   put_all(out, "profile", &choice->profiles) < 0 ||
                   put_all(out, "egressAllow", &choice->egress) < 0 ||
                   (choice->some_caps && put_count(out, "someCaps", 1) < 0) ||
                   put_all(out, "capDrop", &choice->cap_drop) < 0
               ? -1
               : 0;
}

static int put_rest(struct buf *out, const struct options *options)
{
    for (size_t i = 0; i < options->mount_count; i++) {
        if (put_mount(out, &options->mounts[i]) < 0) {
            return -1;
        }
    }
    return put_count(out, "network", options->network) < 0 ||
                   put_count(out, "boot", options->boot) < 0 ||
                   put_count(out, "trackFiles", options->track_files) < 0 ||
                   put_count(out, "depsReadonly", options->deps_readonly) < 0 ||
                   put_count(out, "workspaceReadonly", options->workspace_readonly) < 0 ||
                   put_count(out, "requireLimits", options->require_limits) < 0 ||
                   put_number(out, "idleTimeoutS", options->idle_timeout_s) < 0 ||
                   put_number(out, "ttlS", options->ttl_s) < 0 ||
                   (options->prewarm_set && put_count(out, "prewarm", options->prewarm) < 0) ||
                   put_choice(out, &options->choice) < 0 ||
                   put_text(out, "workspace", options->workspace) < 0 ||
                   put_text(out, "setup", options->setup) < 0 ||
                   put_text(out, "snapshot", options->snapshot) < 0 ||
                   put_text(out, ENVIRONMENT, options->environment) < 0 ||
                   put_all(out, "preload", &options->preload) < 0 ||
                   put_all(out, "env", &options->env) < 0 ||
                   put_all(out, "label", &options->labels) < 0
               ? -1
               : 0;
}

int options_encode(const struct options *options, struct buf *out, struct err *err)
{
    if (put_limits(out, &options->limits) < 0 || put_rest(out, options) < 0) {
        return err_set(err, ERR_BAD_VALUE, 0, "the options are above 1 MiB in all");
    }
    return 0;
}

char *options_text_of_environment(const char *id)
{
    CLEANUP_BUF struct buf text = BUF_INIT(OPTIONS_ENCODED_MAX);

    (void)put_text(&text, ENVIRONMENT, id);
    return buf_take(&text, NULL);
}

static void set_flag(const char *text, bool *ret_flag)
{
    *ret_flag = text_equal(text, "1");
}

static void take_mount(const char *text, size_t size, struct options *options)
{
    const char *target = memchr(text, '\n', size);
    CLEANUP_FREE char *source = NULL;

    if (size > 1 && target != NULL) {
        source = alloc_copy(text + 1, (size_t)(target - text) - 1);
        run_mount_add(&options->mounts, &options->mount_count, source, target + 1, text[0] == 'w');
    }
}

static bool take_limit(const char *name, const char *text, struct limits *limits)
{
    if (text_equal(name, "timeoutS")) {
        (void)text_parse_double(text, &limits->timeout_s);
    } else if (text_equal(name, "memoryMb")) {
        (void)text_parse_u64(text, &limits->memory_mb);
    } else if (text_equal(name, "cpus")) {
        (void)text_parse_double(text, &limits->cpus);
    } else if (text_equal(name, "pids")) {
        (void)text_parse_u64(text, &limits->pids);
    } else if (text_equal(name, "diskMb")) {
        (void)text_parse_u64(text, &limits->disk_mb);
    } else if (text_equal(name, "maxOutputBytes")) {
        (void)text_parse_u64(text, &limits->max_output_bytes);
    } else {
        return false;
    }
    return true;
}

static bool take_flag(const char *name, const char *text, struct options *options)
{
    if (text_equal(name, "network")) {
        set_flag(text, &options->network);
    } else if (text_equal(name, "boot")) {
        set_flag(text, &options->boot);
    } else if (text_equal(name, "trackFiles")) {
        set_flag(text, &options->track_files);
    } else if (text_equal(name, "depsReadonly")) {
        set_flag(text, &options->deps_readonly);
    } else if (text_equal(name, "workspaceReadonly")) {
        set_flag(text, &options->workspace_readonly);
    } else if (text_equal(name, "requireLimits")) {
        set_flag(text, &options->require_limits);
    } else {
        return false;
    }
    return true;
}

static void replace(char **slot, const char *text)
{
    free(*slot);
    *slot = alloc_text(text);
}

static bool take_choice(const char *name, const char *text, struct choice *choice)
{
    if (text_equal(name, "engine")) {
        replace(&choice->engine, text);
    } else if (text_equal(name, "image")) {
        replace(&choice->image, text);
    } else if (text_equal(name, "securityProfile")) {
        replace(&choice->security_profile, text);
    } else if (text_equal(name, "apparmor")) {
        replace(&choice->apparmor, text);
    } else if (text_equal(name, "profile")) {
        strv_add(&choice->profiles, text);
    } else if (text_equal(name, "egressAllow")) {
        strv_add(&choice->egress, text);
    } else if (text_equal(name, "someCaps")) {
        set_flag(text, &choice->some_caps);
    } else if (text_equal(name, "capDrop")) {
        strv_add(&choice->cap_drop, text);
    } else {
        return false;
    }
    return true;
}

static void take(const char *name, const char *text, size_t size, struct options *options)
{
    if (take_limit(name, text, &options->limits) || take_flag(name, text, options) ||
        take_choice(name, text, &options->choice)) {
        return;
    }
    if (text_equal(name, "idleTimeoutS")) {
        (void)text_parse_double(text, &options->idle_timeout_s);
    } else if (text_equal(name, "ttlS")) {
        (void)text_parse_double(text, &options->ttl_s);
    } else if (text_equal(name, "prewarm")) {
        options->prewarm_set = text_parse_u64(text, &options->prewarm) == 0;
    } else if (text_equal(name, "workspace")) {
        replace(&options->workspace, text);
    } else if (text_equal(name, "setup")) {
        replace(&options->setup, text);
    } else if (text_equal(name, "snapshot")) {
        replace(&options->snapshot, text);
    } else if (text_equal(name, ENVIRONMENT)) {
        replace(&options->environment, text);
    } else if (text_equal(name, "preload")) {
        strv_add(&options->preload, text);
    } else if (text_equal(name, "env")) {
        strv_add(&options->env, text);
    } else if (text_equal(name, "label")) {
        strv_add(&options->labels, text);
    } else if (text_equal(name, "mount")) {
        take_mount(text, size, options);
    }
}

/* Reads "name size\n" at text; 0 and the header's length, the name and the size. */
static int read_header(const char *text, size_t size, char name[static NAME_MAX_SIZE],
                       size_t *ret_header, uint64_t *ret_value)
{
    const char *end = memchr(text, '\n', size);
    const char *blank = end == NULL ? NULL : memchr(text, ' ', (size_t)(end - text));
    CLEANUP_FREE char *digits = NULL;

    if (blank == NULL || blank - text >= NAME_MAX_SIZE) {
        return -1;
    }
    memcpy(name, text, (size_t)(blank - text));
    name[blank - text] = '\0';
    digits = alloc_copy(blank + 1, (size_t)(end - blank - 1));
    if (text_parse_u64(digits, ret_value) < 0) {
        return -1;
    }
    *ret_header = (size_t)(end - text) + 1;
    return 0;
}

int options_decode(const char *text, size_t size, struct options *ret_options, struct err *err)
{
    struct limits defaults;

    limits_defaults(&defaults);
    options_init(ret_options, &defaults);
    while (size > 0) {
        char name[NAME_MAX_SIZE];
        size_t header;
        uint64_t value_size;
        CLEANUP_FREE char *value = NULL;

        if (read_header(text, size, name, &header, &value_size) < 0 ||
            value_size >= size - header) {
            options_done(ret_options);
            return err_set(err, ERR_INTERNAL, 0, "a stored session can't be read");
        }
        value = alloc_copy(text + header, (size_t)value_size);
        take(name, value, (size_t)value_size, ret_options);
        text += header + value_size + 1;
        size -= header + (size_t)value_size + 1;
    }
    return 0;
}
