/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read the choice of an engine and of what only kern can do.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, lib/sandbox, json-c.
 */
#include "api/engine_in.h"

#include <stdlib.h>

#include "api/grammar.h"
#include "api/run_in.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static struct choice *choice_of(void *target)
{
    return &((struct options_in *)target)->run.choice;
}

/* Remembers the first one only: like every refusal, it is one at a time. */
static int kern_only(void *target, const char *pointer, const char *what)
{
    struct options_in *in = target;

    if (in->unsupported.code == ERR_NONE) {
        (void)err_field(&in->unsupported, ERR_NOT_SUPPORTED_HERE, pointer,
                        "the engine " ENGINE_IN_PLAIN " %s", what);
    }
    return 0;
}

/* A later null takes back what came before. */
static int read_text(char **slot, struct json_object *value, const char *pointer,
                     const struct grammar_rule *rule, struct err *err)
{
    if (options_in_text(value, pointer, rule, err) < 0) {
        return -1;
    }
    free(*slot);
    *slot = alloc_text(json_object_get_string(value));
    return 0;
}

const char *const engine_in_names[] = { "auto", "kern", "bubblewrap", NULL };

void engine_in_choose(void *target, size_t index)
{
    struct choice *choice = choice_of(target);

    free(CLEANUP_TAKE(choice->engine));
    choice->engine = index == 0 ? NULL : alloc_text(engine_in_names[index]);
}

int engine_in_read_image(void *target, struct json_object *value, const char *pointer,
                         struct err *err)
{
    return read_text(&choice_of(target)->image, value, pointer, &grammar_image, err) < 0
               ? -1
               : kern_only(target, pointer, "runs no images: its boxes see the host's /usr");
}

static int read_profiles(void *target, struct json_object *value, const char *pointer,
                         struct err *err)
{
    struct strv *profiles = &choice_of(target)->profiles;

    if (options_in_texts(value, pointer, &grammar_profile, profiles, err) < 0) {
        return -1;
    }
    return profiles->count == 0 ? 0 : kern_only(target, pointer, "has no profiles");
}

static int read_egress(void *target, struct json_object *value, const char *pointer,
                       struct err *err)
{
    struct strv *domains = &choice_of(target)->egress;

    if (options_in_texts(value, pointer, &grammar_domain, domains, err) < 0) {
        return -1;
    }
    return domains->count == 0 ? 0
                               : kern_only(target, pointer, "can't let through some domains only");
}

static const char *const security_profiles[] = { "untrusted", NULL };

/* Of bubblewrap's boxes it is true anyway: an allow-list of system calls, no capabilities, a
 * read-only root. */
static void choose_security_profile(void *target, size_t index)
{
    struct choice *choice = choice_of(target);

    free(choice->security_profile);
    choice->security_profile = alloc_text(security_profiles[index]);
}

static int read_apparmor(void *target, struct json_object *value, const char *pointer,
                         struct err *err)
{
    return read_text(&choice_of(target)->apparmor, value, pointer, &grammar_apparmor, err) < 0
               ? -1
               : kern_only(target, pointer, "takes no AppArmor profile");
}

static bool has_all(const struct strv *capabilities)
{
    for (size_t i = 0; i < capabilities->count; i++) {
        if (text_equal(capabilities->items[i], "ALL")) {
            return true;
        }
    }
    return false;
}

static int read_cap_drop(void *target, struct json_object *value, const char *pointer,
                         struct err *err)
{
    struct choice *choice = choice_of(target);

    if (options_in_texts(value, pointer, &grammar_capability, &choice->cap_drop, err) < 0) {
        return -1;
    }
    if (has_all(&choice->cap_drop)) {
        strv_done(&choice->cap_drop);
        return 0;
    }
    choice->some_caps = true;
    return kern_only(target, pointer, "always drops all capabilities: [\"ALL\"]");
}

/* To kern false means that its own caps may be missing; kernd's are in force all the same. */
static int read_enforce(void *target, struct json_object *value, const char *pointer,
                        struct err *err)
{
    if (!json_object_is_type(value, json_type_boolean)) {
        return field_wrong_type(pointer, "true or false", value, err);
    }
    ((struct options_in *)target)->unenforced = json_object_get_boolean(value) == 0;
    return json_object_get_boolean(value) == 0
               ? kern_only(target, pointer, "always puts limits in force as far as it can")
               : 0;
}

static const struct field fields[] = {
    { .name = "engine",
      .type = FIELD_CHOICE,
      .choices = engine_in_names,
      .choose = engine_in_choose },
    { .name = "image", .type = FIELD_OTHER, .read = engine_in_read_image },
    { .name = "profiles", .type = FIELD_OTHER, .read = read_profiles },
    { .name = "egressAllow", .type = FIELD_OTHER, .read = read_egress },
    { .name = "securityProfile",
      .type = FIELD_CHOICE,
      .choices = security_profiles,
      .choose = choose_security_profile },
    { .name = "apparmor", .type = FIELD_OTHER, .read = read_apparmor },
    { .name = "capDrop", .type = FIELD_OTHER, .read = read_cap_drop },
    { .name = "enforceLimits", .type = FIELD_OTHER, .read = read_enforce },
};
const struct field_table engine_in_table = { fields, COUNT_OF(fields), &run_in_shared_table };

/* Walls and what the owner of the host has configured are not for a narrow token to choose. */
static int check_narrow(const struct options_in *in, struct err *err)
{
    const struct choice *choice = &in->run.choice;

    if (choice->engine != NULL) {
        return err_field(err, ERR_FORBIDDEN, "/engine", "this token may not choose the engine");
    }
    if (choice->egress.count > 0) {
        return err_field(err, ERR_NETWORK_DENIED, "/egressAllow",
                         "this token may not give a box the network");
    }
    if (choice->some_caps) {
        return err_field(err, ERR_FORBIDDEN, "/capDrop", "this token may not keep capabilities");
    }
    if (choice->profiles.count > 0) {
        return err_field(err, ERR_FORBIDDEN, "/profiles", "this token may not choose profiles");
    }
    if (in->unenforced) {
        return err_field(err, ERR_FORBIDDEN, "/enforceLimits", "this token may not loosen limits");
    }
    return choice->apparmor == NULL ? 0
                                    : err_field(err, ERR_FORBIDDEN, "/apparmor",
                                                "this token may not choose the AppArmor profile");
}

static int refuse_unsupported(const struct options_in *in, struct err *err)
{
    if (err != NULL) {
        *err = in->unsupported;
    }
    return -1;
}

/* Environments are made with the files of the server's own engine and image. */
static int check_environment(const struct options_in *in, struct err *err)
{
    const struct choice *choice = &in->run.choice;
    bool own =
        choice->image == NULL && (choice->engine == NULL || text_equal(choice->engine, in->engine));

    if (own || (in->run.environment == NULL && in->run.preload.count == 0)) {
        return 0;
    }
    return err_field(
        err, ERR_NOT_SUPPORTED_HERE, in->run.environment != NULL ? "/environment" : "/preload",
        "environments go with the server's own engine, %s, and its own image", in->engine);
}

int engine_in_check(struct options_in *in, struct err *err)
{
    struct choice *choice = &in->run.choice;
    const char *engine = choice->engine == NULL ? in->engine : choice->engine;

    if (in->narrow && check_narrow(in, err) < 0) {
        return -1;
    }
    if (choice->egress.count > 0 && in->run.network) {
        return err_field(err, ERR_BAD_VALUE, "/egressAllow",
                         "/egressAllow and /network can't both be given");
    }
    if (!text_equal(engine, in->engine) && !text_equal(engine, in->other_engine)) {
        return err_field(err, ERR_NOT_SUPPORTED_HERE, "/engine",
                         "the engine of this server, %s, is the only one it has", in->engine);
    }
    if (in->unsupported.code != ERR_NONE && !text_equal(engine, ENGINE_IN_IMAGES)) {
        if (choice->engine != NULL || !text_equal(in->other_engine, ENGINE_IN_IMAGES)) {
            return refuse_unsupported(in, err);
        }
        if (in->narrow) {
            return err_field(err, ERR_FORBIDDEN, in->unsupported.pointer,
                             "this would choose the engine " ENGINE_IN_IMAGES
                             ", which this token may not");
        }
        choice->engine = alloc_text(ENGINE_IN_IMAGES);
    }
    return check_environment(in, err);
}
