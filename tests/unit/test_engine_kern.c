/* SPDX-License-Identifier: Apache-2.0 */
/* How kern is driven: its arguments and environment, word for word, and what its words mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/strv.h"
#include "lib/box/boxes_internal.h"
#include "lib/box/ends.h"
#include "lib/box/engine.h"
#include "lib/box/remedy_kern.h"
#include "tests/unit/logkit.h"

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

#define GOLDENS "tests/http/kern_arguments.txt"

/* The words of a list, with quotes around those that hold a blank. */
static char *as_text(const struct strv *list)
{
    struct buf text = BUF_INIT(65536);

    for (size_t i = 0; i < list->count; i++) {
        const char *quote = strchr(list->items[i], ' ') == NULL ? "" : "'";

        assert_int_equal(
            buf_printf(&text, "%s%s%s%s", i == 0 ? "" : " ", quote, list->items[i], quote), 0);
    }
    return buf_take(&text, NULL);
}

/* ---- arguments: the stand-in of tests/http takes the same file, word for word ---- */

static struct strv domains, more_domains, profiles, more_profiles, caps, two_caps;
static const struct strv nothing = { .count = 0 };
static const struct box_mount mounts[] = {
    { .source = "/a b", .target = "/run/x,y" },
    { .source = "/b", .target = "/workspace/b", .writable = true },
};

static int make_lists(void **state)
{
    (void)state;
    strv_add_all(&domains, "pypi.org", NULL);
    strv_add_all(&more_domains, "pypi.org", "files.pythonhosted.org", NULL);
    strv_add_all(&profiles, "vgpio:pins", NULL);
    strv_add_all(&more_profiles, "vcpu:small", "vdisk:data", NULL);
    strv_add_all(&caps, "SYS_ADMIN", "CAP_NET_BIND_SERVICE", "ALL", NULL);
    strv_add_all(&two_caps, "NET_RAW", "CAP_CHOWN", NULL);
    return 0;
}

static int free_lists(void **state)
{
    (void)state;
    strv_done(&domains);
    strv_done(&more_domains);
    strv_done(&profiles);
    strv_done(&more_profiles);
    strv_done(&caps);
    strv_done(&two_caps);
    return 0;
}

/* Each option by itself, and what belongs together. */
static const struct {
    const char *name; /* of its paragraph in GOLDENS */
    struct box_spec spec;
} goldens[] = {
    { "nothing", { .workspace = "/w" } },
    { "the usual limits",
      { .workspace = "/w", .limits = { .memory_bytes = 536870912, .pids = 256, .cpus = 1.5 } } },
    { "a network", { .workspace = "/w", .network = true } },
    { "a workspace that is only read", { .workspace = "/w", .workspace_readonly = true } },
    { "an image", { .workspace = "/w", .extras = { .image = "a/b@sha256:00" } } },
    { "no capability more to drop", { .workspace = "/w", .extras = { .cap_drop = &nothing } } },
    { "capabilities, in their order", { .workspace = "/w", .extras = { .cap_drop = &caps } } },
    { "a security profile: capabilities are dropped all the same",
      { .workspace = "/w", .extras = { .security_profile = "untrusted" } } },
    { "AppArmor", { .workspace = "/w", .extras = { .apparmor = "docker-default" } } },
    { "a profile without a network", { .workspace = "/w", .extras = { .profiles = &profiles } } },
    { "a profile behind domains",
      { .workspace = "/w", .extras = { .profiles = &profiles, .egress = &domains } } },
    { "domains take the place of the network",
      { .workspace = "/w", .extras = { .egress = &more_domains, .cap_drop = &nothing } } },
    { "an empty list of domains is none", { .workspace = "/w", .extras = { .egress = &nothing } } },
    { "domains never with the host's network",
      { .workspace = "/w", .network = true, .extras = { .egress = &domains } } },
    { "mounts, in their order", { .workspace = "/w", .mounts = mounts, .mount_count = 2 } },
    { "memory holds for what lies in memory",
      { .workspace = "/w", .limits = { .memory_bytes = 1 } } },
    { "processes", { .workspace = "/w", .limits = { .pids = 1 } } },
    { "processors, without zeros behind", { .workspace = "/w", .limits = { .cpus = 0.5 } } },
    { "everything: a profile is no value of --net, whose value may be left out",
      { .workspace = "/w",
        .network = true,
        .mounts = mounts,
        .mount_count = 2,
        .limits = { .memory_bytes = 67108864, .pids = 32, .cpus = 1 },
        .extras = { .image = "node:20-slim",
                    .profiles = &more_profiles,
                    .cap_drop = &two_caps,
                    .security_profile = "untrusted",
                    .apparmor = "kern-box" } } },
};

/* The paragraph of that name, its lines joined by blanks. The caller frees. */
static char *find_golden(const char *all, const char *name)
{
    CLEANUP_FREE char *head = alloc_printf("\n[%s]\n", name);
    const char *found = strstr(all, head);
    const char *end;
    char *text;

    assert_non_null(found);
    found += strlen(head);
    end = strstr(found, "\n\n");
    text =
        alloc_printf("%.*s", (int)(end != NULL ? (size_t)(end - found) : strlen(found) - 1), found);
    for (char *at = strchr(text, '\n'); at != NULL; at = strchr(at, '\n')) {
        *at = ' ';
    }
    return text;
}

static size_t count_goldens(const char *all)
{
    size_t count = 0;

    for (const char *at = strstr(all, "\n["); at != NULL; at = strstr(at + 1, "\n[")) {
        count++;
    }
    return count;
}

static void each_option(void **state)
{
    CLEANUP_FREE char *all = fd_read_file(GOLDENS, 1 << 20, NULL);

    (void)state;
    assert_non_null(all); /* from the root of the source tree */
    for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
        const struct engine_plan plan = plan_of(&goldens[i].spec);
        CLEANUP_STRV struct strv argv = { 0 };
        CLEANUP_FREE char *wanted = NULL;
        CLEANUP_FREE char *text = NULL;

        print_message("    %s\n", goldens[i].name);
        wanted = find_golden(all, goldens[i].name);
        engine_kern.argv(&plan, &argv);
        text = as_text(&argv);
        assert_string_equal(text, wanted);
    }
    assert_int_equal(count_goldens(all), sizeof(goldens) / sizeof(goldens[0]));
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
    struct engine_plan plan = plan_of(&spec);
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
                              "KERN_NO_SCOPE=1 KERN_ALLOW_UNCAPPED=1 KERN_QUIET=1");
    free(text);
    /* Ours, not the one that was there. */
    strv_done(&environment);
    plan.report_fd = 3;
    engine_kern.environment(&plan, strv_argv(&own), &environment);
    assert_string_equal(environment.items[environment.count - 1], "KERN_STARTED_FD=3");
    assert_false(has(&environment, "KERN_STARTED_FD=9"));
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

static const char *remedy_of(const char *words)
{
    static struct err err;

    err = (struct err)ERR_INIT;
    (void)remedy_kern_explain(words, "exit 1", &plain, &err);
    return err.remedy;
}

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
    assert_string_equal(remedy_of("something else"),
                        "if the image has an entry point, that must end by executing what it is "
                        "given (exec \"$@\")");
    assert_string_equal(remedy_of("error: sandbox: no"), "");
    assert_string_equal(remedy_of(""), "");
    assert_meaning("", ERR_BOX_START_FAILED, "it said nothing");
}

/* ---- its last word: how the memory cap stood ---- */

static struct boxes factory;
static struct box capped;

/* What is logged of a box whose launcher ends with these bytes; the caller frees. */
static char *logged_of(const void *word, size_t size)
{
    CLEANUP_FD int reader = -1;
    CLEANUP_FD int writer = -1;

    assert_int_equal(fd_pipe(&reader, &writer), 0);
    assert_int_equal(write(writer, word, size), (ssize_t)size);
    fd_clear(&writer);
    capped.report_fd = reader;
    logkit_start();
    ends_hear_report(&capped);
    capped.report_fd = -1;
    return logkit_end();
}

static void assert_told(uint8_t cap, enum engine_cap known, bool warned)
{
    const struct engine_report report = { .came_to_its_end = 1, .cap = cap };
    CLEANUP_FREE char *line = logged_of(&report, sizeof(report));

    assert_int_equal(atomic_load(&factory.engines[0].cap), known);
    if (warned) {
        assert_non_null(strstr(line, " level=warning event=cap_not_seen_by_launcher box=box_b\n"));
    } else {
        assert_string_equal(line, "");
    }
}

static void a_cap_it_does_not_see_is_logged_once(void **state)
{
    CLEANUP_FREE char *cut_short = NULL;

    (void)state;
    factory.cgroups.memory = true;
    capped.boxes = &factory;
    capped.engine = &factory.engines[0];
    capped.limits.memory_bytes = 1 << 20;
    capped.cgroup = 0; /* it has one of kernd's, which has the cap */
    (void)snprintf(capped.id, sizeof(capped.id), "box_b");
    assert_told(ENGINE_CAP_BOUND, ENGINE_CAP_BOUND, false);
    assert_told(ENGINE_CAP_UNKNOWN, ENGINE_CAP_BOUND, false);
    assert_told(ENGINE_CAP_UNBOUND + 1, ENGINE_CAP_BOUND, false); /* of a later kern */
    assert_told(ENGINE_CAP_UNBOUND, ENGINE_CAP_UNBOUND, true);
    assert_told(ENGINE_CAP_UNBOUND, ENGINE_CAP_UNBOUND, false);
    assert_told(ENGINE_CAP_BOUND, ENGINE_CAP_BOUND, false);
    assert_told(ENGINE_CAP_UNBOUND, ENGINE_CAP_UNBOUND, true); /* anew: it had been in force */
    assert_told(ENGINE_CAP_BOUND, ENGINE_CAP_BOUND, false);
    cut_short = logged_of("\1", 1); /* of a launcher that was killed */
    assert_string_equal(cut_short, "");
    assert_int_equal(atomic_load(&factory.engines[0].cap), ENGINE_CAP_BOUND);
}

static void a_cap_that_nobody_keeps_or_asked_for_is_no_news(void **state)
{
    (void)state;
    atomic_store(&factory.engines[0].cap, ENGINE_CAP_BOUND);
    capped.limits.memory_bytes = 0; /* no cap: what it tells is of one out of reach */
    assert_told(ENGINE_CAP_UNBOUND, ENGINE_CAP_BOUND, false);
    capped.limits.memory_bytes = 1 << 20;
    capped.cgroup = -1; /* kernd has none to give, which is told at its start */
    assert_told(ENGINE_CAP_UNBOUND, ENGINE_CAP_UNBOUND, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_option),
        cmocka_unit_test(the_network_with_everything_else),
        cmocka_unit_test(its_environment_is_made_anew),
        cmocka_unit_test(a_colon_in_a_path_is_refused),
        cmocka_unit_test(its_words_are_told_apart),
        cmocka_unit_test(a_cap_it_does_not_see_is_logged_once),
        cmocka_unit_test(a_cap_that_nobody_keeps_or_asked_for_is_no_news),
    };

    return cmocka_run_group_tests(tests, make_lists, free_lists);
}
