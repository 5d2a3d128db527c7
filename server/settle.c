/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: user, directories, lock and token, in the one order in which they work.
 * Owns: the lock descriptor, the token's memory.
 * Threads: main.
 * May include: server, lib/base.
 */
#include "server/settle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "server/dirs.h"
#include "server/places.h"
#include "server/privilege.h"
#include "server/scope.h"
#include "server/stage.h"

#define DEFAULT_ACCOUNT "nobody"
#define LEAVING_MS 10000 /* a predecessor that was just leaving is gone by then */
#define LOOKING_MS 100   /* so is who looked whether there is one (dirs_lock_owner) */

static int make_directories(const struct config *config, const struct privilege_account *account,
                            struct err *err)
{
    if (dirs_make_private(config->state_dir, account->uid, account->gid, err) < 0) {
        return err_prefix(err, "state directory");
    }
    if (dirs_make_private(config->runtime_dir, account->uid, account->gid, err) < 0) {
        return err_prefix(err, "runtime directory");
    }
    return 0;
}

/* After the change of user: can the directories be reached at all? */
static int check_reach(const char *path, const struct privilege_account *account, struct err *err)
{
    if (access(path, R_OK | W_OK | X_OK) == 0) {
        return 0;
    }
    (void)err_set(err, ERR_IO, errno, "account %s can't use %s: %s", account->name, path,
                  err_errno_text(errno));
    return err_remedy(err, "a directory above it is closed to that account: choose another place "
                           "with --state and --runtime");
}

static int become(struct config *config, const struct privilege_account *account,
                  struct stage *stage, struct err *err)
{
    if (make_directories(config, account, err) < 0) {
        return -1;
    }
    scope_enter(account);
    if (privilege_drop(account, err) < 0) {
        return -1;
    }
    places_clean_environment(account->name, account->home);
    if (check_reach(config->state_dir, account, err) < 0 ||
        check_reach(config->runtime_dir, account, err) < 0) {
        return -1;
    }
    log_line(LOG_INFO, "gave root away", "account", account->name, NULL);
    return stage_finish(stage, config->runtime_dir, &config->library_dir, err);
}

static int settle_as_account(struct config *config, struct err *err)
{
    const char *name = config->user != NULL ? config->user : DEFAULT_ACCOUNT;
    struct privilege_account account;
    struct stage *stage;
    int result;

    if (privilege_lookup(name, &account, err) < 0 ||
        places_resolve(config, account.name, err) < 0) {
        return -1;
    }
    stage = stage_open(config->library_dir, err);
    if (stage == NULL) {
        return -1;
    }
    result = become(config, &account, stage, err);
    stage_free(stage);
    return result;
}

static int settle_as_self(struct config *config, struct err *err)
{
    struct privilege_account account;

    privilege_current(&account);
    if (config->user != NULL && !text_equal(config->user, account.name)) {
        return err_set(err, ERR_BAD_VALUE, 0, "only root can become another user (--user %.60s)",
                       config->user);
    }
    if (places_resolve(config, NULL, err) < 0) {
        return -1;
    }
    scope_enter(&account);
    return make_directories(config, &account, err);
}

int settle_open(struct config *config, struct settle *ret_settle, struct err *err)
{
    struct settle settle = { .lock = -1 };
    bool gives_root_away = geteuid() == 0 && !config->allow_root;

    if ((gives_root_away ? settle_as_account(config, err) : settle_as_self(config, err)) < 0) {
        return -1;
    }
    /* All paths are absolute now: don't pin, or depend on, the directory we were started in. */
    if (chdir("/") < 0) {
        return err_set(err, ERR_IO, errno, "/: %s", err_errno_text(errno));
    }
    settle.lock = dirs_lock(config->state_dir, config->on_demand ? LEAVING_MS : LOOKING_MS, err);
    if (settle.lock < 0) {
        return -1;
    }
    settle.token_path = alloc_printf("%s/token", config->runtime_dir);
    if (token_load(settle.token_path, &settle.token, err) < 0) {
        settle_done(&settle);
        return -1;
    }
    *ret_settle = settle;
    return 0;
}

void settle_done(struct settle *settle)
{
    explicit_bzero(&settle->token, sizeof(settle->token));
    free(settle->token_path);
    settle->token_path = NULL;
    fd_clear(&settle->lock);
}
