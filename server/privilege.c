/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: give root away before anything of a client is read.
 * Owns: nothing.
 * Threads: main, before any other starts.
 * May include: lib/base.
 *
 * PR_SET_NO_NEW_PRIVS is left alone on purpose: launchers set it for every payload, the daemon
 * starts nothing but launchers, and where bwrap is installed setuid (systems without unprivileged
 * user namespaces), or kern maps an id range with newuidmap, it would keep boxes from starting.
 */
#include "server/privilege.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"

#define ENTRY_BYTES 16384 /* more than any passwd line that fits the fields above */

static void copy_entry(const struct passwd *entry, struct privilege_account *ret_account)
{
    *ret_account = (struct privilege_account){ .uid = entry->pw_uid, .gid = entry->pw_gid };
    (void)snprintf(ret_account->name, sizeof(ret_account->name), "%s", entry->pw_name);
    (void)snprintf(ret_account->home, sizeof(ret_account->home), "%s", entry->pw_dir);
}

int privilege_lookup(const char *name, struct privilege_account *ret_account, struct err *err)
{
    CLEANUP_FREE char *storage = alloc_zero(1, ENTRY_BYTES);
    struct passwd entry;
    struct passwd *found = NULL;
    int error = getpwnam_r(name, &entry, storage, ENTRY_BYTES, &found);

    if (found == NULL) {
        (void)err_set(err, ERR_BAD_VALUE, error, "there is no account called %.60s", name);
        return err_remedy(err, "name an existing unprivileged account with --user");
    }
    if (entry.pw_uid == 0 || entry.pw_gid == 0) {
        (void)err_set(err, ERR_BAD_VALUE, 0, "account %.60s is as powerful as root", name);
        return err_remedy(err, "name an unprivileged account, or use --allow-root");
    }
    copy_entry(found, ret_account);
    return 0;
}

void privilege_current(struct privilege_account *ret_account)
{
    CLEANUP_FREE char *storage = alloc_zero(1, ENTRY_BYTES);
    struct passwd entry;
    struct passwd *found = NULL;

    if (getpwuid_r(geteuid(), &entry, storage, ENTRY_BYTES, &found) == 0 && found != NULL) {
        copy_entry(found, ret_account);
        return;
    }
    *ret_account = (struct privilege_account){ .home = "/", .uid = geteuid(), .gid = getegid() };
}

static int check_no_way_back(const struct privilege_account *account, struct err *err)
{
    uid_t uids[3];
    gid_t gids[3];
    bool is_gone;

    if (getresuid(&uids[0], &uids[1], &uids[2]) < 0 ||
        getresgid(&gids[0], &gids[1], &gids[2]) < 0) {
        return err_set(err, ERR_INTERNAL, errno, "cannot read my own ids");
    }
    is_gone = uids[0] == account->uid && uids[1] == account->uid && uids[2] == account->uid &&
              gids[0] == account->gid && gids[1] == account->gid && gids[2] == account->gid &&
              getgroups(0, NULL) == 0 && setuid(0) < 0 && setgid(0) < 0;
    return is_gone ? 0 : err_set(err, ERR_INTERNAL, 0, "root's privileges could not be given away");
}

int privilege_drop(const struct privilege_account *account, struct err *err)
{
    /* Leaving uid 0 for good clears all capability sets but the bounding one (capabilities(7)). */
    if (setgroups(0, NULL) < 0 || setresgid(account->gid, account->gid, account->gid) < 0 ||
        setresuid(account->uid, account->uid, account->uid) < 0) {
        return err_set(err, ERR_INTERNAL, errno, "becoming %s: %s", account->name,
                       err_errno_text(errno));
    }
    /*
     * The kernel made /proc/self root's (prctl(2), PR_SET_DUMPABLE), which would keep a child that
     * has not exec'd yet from writing its id maps. Nothing secret was read as root; from here on
     * the process is like one that the account had started.
     */
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0) {
        return err_set(err, ERR_INTERNAL, errno, "PR_SET_DUMPABLE: %s", err_errno_text(errno));
    }
    return check_no_way_back(account, err);
}
