/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: ask for all that the daemon depends on, in an order in which the first failure explains the
 * next.
 * Owns: a scratch directory while it looks.
 * Threads: main.
 * May include: server, lib/base.
 */
#include "server/doctor.h"

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/id.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "lib/base/text.h"
#include "server/config.h"
#include "server/doctor_box.h"
#include "server/doctor_host.h"
#include "server/doctor_report.h"
#include "server/places.h"
#include "server/process.h"
#include "server/settings.h"
#include "server/settle.h"

#define NAME "doctor"
#define TREE_DESCRIPTORS 16

static void add_error(struct doctor_report *report, const char *name, const struct err *err)
{
    doctor_report_add(report, name, DOCTOR_FAIL, "%s", err->msg);
    doctor_report_fix(report, err->remedy);
}

/* ---- the account and its places ---- */

/* Whose the daemon will be; root's becomes another's. */
static int find_account(const struct config *config, struct privilege_account *ret_account,
                        const char **ret_name, struct err *err)
{
    if (geteuid() != 0 || config->allow_root) {
        *ret_name = NULL;
        privilege_current(ret_account);
        return 0;
    }
    *ret_name = config->user != NULL ? config->user : "nobody";
    return privilege_lookup(*ret_name, ret_account, err);
}

static int check_places(struct doctor_report *report, struct config *config)
{
    struct privilege_account account;
    struct err err = ERR_INIT;
    const char *name = NULL;

    if (find_account(config, &account, &name, &err) < 0) {
        add_error(report, "account", &err);
        return -1;
    }
    doctor_report_add(report, "account", DOCTOR_OK, "%s (%u)", account.name, (unsigned)account.uid);
    if (places_resolve(config, name, &err) < 0) {
        /* The state is the first that is looked for. */
        add_error(report, config->state_dir == NULL ? "state" : "library", &err);
        return -1;
    }
    doctor_host_check_places(report, config, &account);
    return 0;
}

/* ---- boxes ---- */

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status;
    (void)kind;
    (void)at;
    (void)remove(path);
    return 0;
}

static int use_scratch(struct config *config, const char *scratch, struct err *err)
{
    CLEANUP_FREE char *state = alloc_printf("%s/state", scratch);
    CLEANUP_FREE char *runtime = alloc_printf("%s/runtime", scratch);

    return config_set(config, "state", state, NAME, err) < 0 ||
                   config_set(config, "runtime", runtime, NAME, err) < 0
               ? -1
               : 0;
}

/*
 * Becomes what the daemon would be, in a place of its own, so that a server that runs is left
 * alone. Does a box start?
 */
static bool check_boxes(struct doctor_report *report, int count, char *const *options)
{
    char suffix[ID_SIZE];
    CLEANUP_FREE char *scratch = alloc_printf("/tmp/%s", id_make("kernd-doctor", suffix));
    struct settle settle = { .lock = -1 };
    struct err err = ERR_INIT;
    struct config config;
    bool starts = false;

    config_init(&config);
    if (settings_read(count, options, &config, &err) < 0 ||
        use_scratch(&config, scratch, &err) < 0 || settle_open(&config, &settle, &err) < 0) {
        add_error(report, "account", &err);
    } else {
        starts = doctor_box_check(report, &config);
        settle_done(&settle);
    }
    (void)nftw(scratch, remove_entry, TREE_DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
    config_done(&config);
    return starts;
}

/* ---- all ---- */

static void check_all(struct doctor_report *report, int count, char *const *options)
{
    struct err err = ERR_INIT;
    struct config config;

    doctor_host_check(report);
    config_init(&config);
    if (settings_read(count, options, &config, &err) < 0) {
        add_error(report, "settings", &err);
    } else if (check_places(report, &config) == 0) {
        const bool starts = check_boxes(report, count, options);

        doctor_host_check_namespaces(report, starts);
        doctor_host_check_addresses(report, &config);
    }
    config_done(&config);
}

static int exit_status(const struct doctor_report *report)
{
    switch (doctor_report_worst(report)) {
    case DOCTOR_OK:
        return EXIT_SUCCESS;
    case DOCTOR_WARN:
        return 1;
    case DOCTOR_FAIL:
        break;
    }
    return 2;
}

int doctor_main(int count, char *const *arguments)
{
    CLEANUP_STRV struct strv options = { .count = 0 };
    struct doctor_report report = { .count = 0 };
    bool as_json = false;
    int status;

    for (int i = 0; i < count; i++) {
        if (text_equal(arguments[i], "--json")) {
            as_json = true;
        } else {
            strv_add(&options, arguments[i]);
        }
    }
    process_prepare(0);
    log_setup(LOG_ERROR, false);
    check_all(&report, (int)options.count, strv_argv(&options));
    status = exit_status(&report);
    if (!as_json) {
        doctor_report_print(&report, stdout);
    } else if (doctor_report_print_json(&report, stdout) < 0) {
        status = 2;
    }
    doctor_report_done(&report);
    return fflush(stdout) == 0 ? status : 2;
}
