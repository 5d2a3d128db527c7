/* SPDX-License-Identifier: Apache-2.0 */
/* How kern is driven: its arguments and environment, word for word, and what its words mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/strv.h"
#include "lib/box/engine.h"
#include "lib/box/remedy_kern.h"

static struct engine_plan plan_of(const struct box_spec *spec)
{
    return (struct engine_plan){ .spec = spec,
                                 .box_name = "box_b",
                                 .box_dir = "/run/k/boxes/box_b",
                                 .library_dir = "/usr/libexec/kernd",
                                 .image = "python:3.12-slim",
                                 .private_dir = "/run/k/engine",
                                 .cache_dir = "/var/cache" };
}

static char *as_text(const struct strv *list)
{
    struct buf text = BUF_INIT(65536);

    for (size_t i = 0; i < list->count; i++) {
        assert_int_equal(buf_printf(&text, "%s%s", i == 0 ? "" : " ", list->items[i]), 0);
    }
    return buf_take(&text, NULL);
}

static void assert_arguments(const struct box_spec *spec, const char *wanted)
{
    const struct engine_plan plan = plan_of(spec);
    CLEANUP_STRV struct strv argv = { 0 };
    char *text;

    engine_kern.argv(&plan, &argv);
    text = as_text(&argv);
    assert_string_equal(text, wanted);
    free(text);
}

#define KERND_MOUNTS                                        \
    " -v /w:/workspace -v /run/k/boxes/box_b:/run/kernd:ro" \
    " -v /run/k/boxes/box_b/secrets:/run/secrets:ro -v /usr/libexec/kernd:/run/kernd-lib:ro"
#define FIXED                                                                          \
    " --ro --pull never --no-uid-range --user 0:0 --stop-timeout 0 --hostname sandbox" \
    " --workdir /workspace" KERND_MOUNTS
#define PROGRAM " -- /run/kernd-lib/kernd-init in-image"

static void a_plain_box(void **state)
{
    const struct box_spec spec = {
        .workspace = "/w",
        .limits = { .memory_bytes = 536870912, .pids = 256, .cpus = 1.5 },
    };

    (void)state;
    assert_arguments(&spec, "kern box box_b --image python:3.12-slim" FIXED
                            " --tmpfs /tmp:536870912 --tmpfs /home/sandbox:536870912"
                            " --cap-drop ALL --memory 536870912 --cpus 1.5 --pids-limit 258"
                            " --net none" PROGRAM);
}

/* kern's defaults are caps: where none is wanted, one that can't be reached is asked for. */
static void without_caps(void **state)
{
    const struct box_spec spec = { .workspace = "/w", .network = true };

    (void)state;
    assert_arguments(&spec, "kern box box_b --image python:3.12-slim" FIXED
                            " --tmpfs /tmp --tmpfs /home/sandbox --cap-drop ALL"
                            " --memory 1024t --pids-limit 4194304 --net host" PROGRAM);
}

/* A profile is no value of --net, whose value may be left out. */
static void with_everything(void **state)
{
    CLEANUP_STRV struct strv profiles = { 0 };
    CLEANUP_STRV struct strv caps = { 0 };
    const struct box_mount mounts[] = {
        { .source = "/data", .target = "/data" },
        { .source = "/out", .target = "/workspace/out", .writable = true },
    };
    const struct box_spec spec = { .workspace = "/w",
                                   .network = true,
                                   .mounts = mounts,
                                   .mount_count = 2,
                                   .extras = { .image = "node:20-slim",
                                               .profiles = &profiles,
                                               .cap_drop = &caps,
                                               .security_profile = "untrusted",
                                               .apparmor = "kern-box" } };

    (void)state;
    strv_add_all(&profiles, "vcpu:small", "vdisk:data", NULL);
    strv_add_all(&caps, "NET_RAW", "CAP_CHOWN", NULL);
    assert_arguments(&spec, "kern box box_b --image node:20-slim" FIXED
                            " --tmpfs /tmp --tmpfs /home/sandbox"
                            " --cap-drop NET_RAW --cap-drop CAP_CHOWN"
                            " --security-profile untrusted --apparmor kern-box"
                            " --memory 1024t --pids-limit 4194304 --net host vcpu:small vdisk:data"
                            " -v /data:/data:ro -v /out:/workspace/out" PROGRAM);
}

static void a_workspace_that_is_only_read(void **state)
{
    const struct box_spec spec = { .workspace = "/w", .workspace_readonly = true };
    const struct engine_plan plan = plan_of(&spec);
    CLEANUP_STRV struct strv argv = { 0 };
    char *text;

    (void)state;
    engine_kern.argv(&plan, &argv);
    text = as_text(&argv);
    assert_non_null(strstr(text, " -v /w:/workspace:ro "));
    free(text);
}

static void domains_take_the_place_of_the_network(void **state)
{
    CLEANUP_STRV struct strv egress = { 0 };
    const struct strv none = { 0 };
    const struct box_spec spec = { .workspace = "/w",
                                   .extras = { .egress = &egress, .cap_drop = &none } };

    (void)state;
    strv_add_all(&egress, "pypi.org", "files.pythonhosted.org", NULL);
    assert_arguments(
        &spec, "kern box box_b --image python:3.12-slim" FIXED
               " --tmpfs /tmp --tmpfs /home/sandbox --memory 1024t"
               " --pids-limit 4194304 --egress-allow pypi.org,files.pythonhosted.org" PROGRAM);
}

/* ---- each option by itself, and what belongs together ---- */

#define HEAD "kern box box_b --image python:3.12-slim" FIXED
#define TMPFS " --tmpfs /tmp --tmpfs /home/sandbox"
#define UNCAPPED " --memory 1024t --pids-limit 4194304"

/* What each names, apart from where it stands: the fixed words are all there, in order. */
struct golden {
    const char *what;
    struct box_spec spec;
    const char *wanted;
};

static struct strv domains, profiles, caps;
static const struct strv nothing = { .count = 0 };
static const struct box_mount mounts[] = {
    { .source = "/a b", .target = "/run/x,y" },
    { .source = "/b", .target = "/workspace/b", .writable = true },
};

static int make_lists(void **state)
{
    (void)state;
    strv_add_all(&domains, "pypi.org", NULL);
    strv_add_all(&profiles, "vgpio:pins", "vcpu:small", NULL);
    strv_add_all(&caps, "SYS_ADMIN", "CAP_NET_BIND_SERVICE", "ALL", NULL);
    return 0;
}

static int free_lists(void **state)
{
    (void)state;
    strv_done(&domains);
    strv_done(&profiles);
    strv_done(&caps);
    return 0;
}

static const struct golden goldens[] = {
    { "nothing", { .workspace = "/w" }, HEAD TMPFS " --cap-drop ALL" UNCAPPED " --net none" },
    { "image",
      { .workspace = "/w", .extras = { .image = "a/b@sha256:00" } },
      "kern box box_b --image a/b@sha256:00" FIXED TMPFS " --cap-drop ALL" UNCAPPED " --net none" },
    { "no capability more to drop",
      { .workspace = "/w", .extras = { .cap_drop = &nothing } },
      HEAD TMPFS UNCAPPED " --net none" },
    { "capabilities, in their order",
      { .workspace = "/w", .extras = { .cap_drop = &caps } },
      HEAD TMPFS " --cap-drop SYS_ADMIN --cap-drop CAP_NET_BIND_SERVICE --cap-drop ALL" UNCAPPED
                 " --net none" },
    { "security profile: capabilities are dropped all the same",
      { .workspace = "/w", .extras = { .security_profile = "untrusted" } },
      HEAD TMPFS " --cap-drop ALL --security-profile untrusted" UNCAPPED " --net none" },
    { "AppArmor",
      { .workspace = "/w", .extras = { .apparmor = "docker-default" } },
      HEAD TMPFS " --cap-drop ALL --apparmor docker-default" UNCAPPED " --net none" },
    { "profiles without a network",
      { .workspace = "/w", .extras = { .profiles = &profiles } },
      HEAD TMPFS " --cap-drop ALL" UNCAPPED " --net none vgpio:pins vcpu:small" },
    { "profiles behind domains",
      { .workspace = "/w", .extras = { .profiles = &profiles, .egress = &domains } },
      HEAD TMPFS " --cap-drop ALL" UNCAPPED " --egress-allow pypi.org vgpio:pins vcpu:small" },
    { "an empty list of domains is none",
      { .workspace = "/w", .extras = { .egress = &nothing } },
      HEAD TMPFS " --cap-drop ALL" UNCAPPED " --net none" },
    { "domains never with the host's network",
      { .workspace = "/w", .network = true, .extras = { .egress = &domains } },
      HEAD TMPFS " --cap-drop ALL" UNCAPPED " --egress-allow pypi.org" },
    { "mounts, in their order",
      { .workspace = "/w", .mounts = mounts, .mount_count = 2 },
      HEAD TMPFS " --cap-drop ALL" UNCAPPED " --net none"
                 " -v /a b:/run/x,y:ro -v /b:/workspace/b" },
    { "memory holds for what lies in memory",
      { .workspace = "/w", .limits = { .memory_bytes = 1 } },
      HEAD " --tmpfs /tmp:1 --tmpfs /home/sandbox:1 --cap-drop ALL --memory 1"
           " --pids-limit 4194304 --net none" },
    { "processes",
      { .workspace = "/w", .limits = { .pids = 1 } },
      HEAD TMPFS " --cap-drop ALL --memory 1024t --pids-limit 3 --net none" },
    { "processors, without zeros behind",
      { .workspace = "/w", .limits = { .cpus = 0.5 } },
      HEAD TMPFS " --cap-drop ALL --memory 1024t --cpus 0.5 --pids-limit 4194304 --net none" },
};

static void each_option(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
        CLEANUP_FREE char *wanted = alloc_printf("%s" PROGRAM, goldens[i].wanted);

        print_message("    %s\n", goldens[i].what);
        assert_arguments(&goldens[i].spec, wanted);
    }
}

static bool has(const struct strv *argv, const char *word)
{
    for (size_t i = 0; i < argv->count; i++) {
        if (strcmp(argv->items[i], word) == 0) {
            return true;
        }
    }
    return false;
}

/* The network is one of three whatever else is asked for, and never left to kern. */
static void the_network_with_everything_else(void **state)
{
    (void)state;
    for (unsigned int bits = 0; bits < 64; bits++) {
        const struct box_spec spec = {
            .workspace = "/w",
            .network = (bits & 1) != 0,
            .extras = { .egress = (bits & 2) != 0 ? &domains : NULL,
                        .profiles = (bits & 4) != 0 ? &profiles : NULL,
                        .security_profile = (bits & 8) != 0 ? "untrusted" : NULL,
                        .cap_drop = (bits & 16) != 0 ? &caps : NULL,
                        .apparmor = (bits & 32) != 0 ? "kern-box" : NULL },
        };
        const struct engine_plan plan = plan_of(&spec);
        CLEANUP_STRV struct strv argv = { 0 };

        engine_kern.argv(&plan, &argv);
        assert_int_equal(has(&argv, "--egress-allow"), (bits & 2) != 0);
        assert_int_equal(has(&argv, "--net"), (bits & 2) == 0);
        assert_int_equal(has(&argv, "host"), (bits & 3) == 1);
        assert_int_equal(has(&argv, "none"), (bits & 3) == 0);
        assert_int_equal(has(&argv, "vgpio:pins"), (bits & 4) != 0);
        assert_int_equal(has(&argv, "--security-profile"), (bits & 8) != 0);
        assert_true(has(&argv, "--cap-drop"));
        assert_int_equal(has(&argv, "--apparmor"), (bits & 32) != 0);
        /* What makes a box safe and quick to end is in every one. */
        assert_true(has(&argv, "--ro") && has(&argv, "--no-uid-range") && has(&argv, "never"));
        assert_true(has(&argv, "--stop-timeout") && has(&argv, "--memory"));
        assert_false(has(&argv, "--privileged") || has(&argv, "--env-file") || has(&argv, "-e"));
        assert_false(has(&argv, "--require-limits") || has(&argv, "--allow-uncapped"));
    }
}

static void its_environment_is_made_anew(void **state)
{
    CLEANUP_STRV struct strv own = { 0 };
    const struct box_spec spec = { .workspace = "/w" };
    const struct engine_plan plan = plan_of(&spec);
    CLEANUP_STRV struct strv environment = { 0 };
    char *text;

    (void)state;
    strv_add_all(&own, "HOME=/home/me", "PATH=/bin", "SECRET=1", "KERN_SCOPE=1", "KERN_EXIT_KEY=x",
                 "KERN_BUILD_STEP=1", "KERN_MANAGED=1", "KERN_DIRECT_CAPS=1", "KERN_STARTED_FD=9",
                 "KERN_SCOPE_READY_FD=8", "KERN_REQUIRE_LIMITS=1", "KERN_CONFIG=/etc/kern.toml",
                 "XDG_RUNTIME_DIR=/run/user/1", "XDG_CACHE_HOME=/elsewhere", "HOMER=1",
                 "LD_PRELOAD=/x.so", NULL);
    engine_kern.environment(&plan, strv_argv(&own), &environment);
    text = as_text(&environment);
    assert_string_equal(text, "HOME=/home/me PATH=/bin KERN_CONFIG=/etc/kern.toml "
                              "XDG_RUNTIME_DIR=/run/k/engine XDG_CACHE_HOME=/var/cache "
                              "KERN_NO_SCOPE=1 KERN_ALLOW_UNCAPPED=1");
    free(text);
}

static void a_colon_in_a_path_is_refused(void **state)
{
    const struct box_mount mount = { .source = "/a:b", .target = "/data" };
    const struct box_mount target = { .source = "/a", .target = "/da:ta" };
    struct box_spec spec = { .workspace = "/w" };
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(engine_kern.vet(&spec, &err), 0);
    spec.mount_count = 1;
    spec.mounts = &mount;
    assert_int_equal(engine_kern.vet(&spec, &err), -1);
    assert_int_equal(err.code, ERR_NOT_SUPPORTED_HERE);
    assert_string_equal(err.pointer, "/mounts");
    spec.mounts = &target;
    assert_int_equal(engine_kern.vet(&spec, &err), -1);
    spec.mount_count = 0;
    spec.workspace = "/w:x";
    assert_int_equal(engine_kern.vet(&spec, &err), -1);
    assert_string_equal(err.pointer, "/workspace");
}

/* ---- words ---- */

static const struct remedy_host plain = { .userns_clone = -1,
                                          .max_user_namespaces = 1000,
                                          .apparmor_userns = -1 };

static void assert_meaning(const char *words, enum err_code code, const char *detail)
{
    struct err err = ERR_INIT;

    assert_int_equal(remedy_kern_explain(words, "exit 1", &plain, &err), -1);
    assert_int_equal(err.code, code);
    if (strstr(err.msg, detail) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", detail, err.msg);
    }
}

#define WARNING "kern: warning: the memory cap is not enforced here\n"
#define HINT "\nhint: run `kern --help` for full usage\n"

static void its_words_are_told_apart(void **state)
{
    (void)state;
    assert_meaning(WARNING
                   "error: image 'a:1' is not usable locally and `--pull never` was given" HINT,
                   ERR_IMAGE_NOT_FOUND, "'a:1'");
    assert_meaning(WARNING "error: usage: kern --memory <size>" HINT, ERR_BAD_VALUE,
                   "kern refuses: error: usage: kern --memory <size>");
    assert_meaning("error: config: no [[vcpu]] profile named 'x' in kern.toml" HINT, ERR_BAD_VALUE,
                   "no [[vcpu]] profile named 'x'");
    assert_meaning("kern: sandbox setup failed: --apparmor x: could not enter\nkern: note: long",
                   ERR_BOX_START_FAILED, "kern ended (exit 1)");
    assert_meaning("kern: sandbox setup failed: unshare: Operation not permitted",
                   ERR_ENGINE_UNAVAILABLE, "no box can start here");
    assert_meaning("kernd-init: got no streams\n", ERR_BOX_START_FAILED, "got no streams");
    assert_meaning("something else", ERR_BOX_START_FAILED, "something else");
    assert_meaning("", ERR_BOX_START_FAILED, "it said nothing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_box),
        cmocka_unit_test(without_caps),
        cmocka_unit_test(with_everything),
        cmocka_unit_test(a_workspace_that_is_only_read),
        cmocka_unit_test(domains_take_the_place_of_the_network),
        cmocka_unit_test(each_option),
        cmocka_unit_test(the_network_with_everything_else),
        cmocka_unit_test(its_environment_is_made_anew),
        cmocka_unit_test(a_colon_in_a_path_is_refused),
        cmocka_unit_test(its_words_are_told_apart),
    };

    return cmocka_run_group_tests(tests, make_lists, free_lists);
}
