/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal: the table of open logs, their files, and expiry.
 * Owns: the directory of logs.
 * Threads: any.
 * May include: base.
 */
#include "lib/journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/journal/filer.h"
#include "lib/journal/journal_internal.h"
#include "lib/journal/shelf.h"
#include "lib/journal/tape_internal.h"

#define MIB (UINT64_C(1) << 20)
#define TAPE_MAX_DEFAULT (160 * MIB)
#define TOTAL_MAX_DEFAULT (4096 * MIB)
#define AGE_MAX_DEFAULT_MS (INT64_C(7) * 24 * 3600 * 1000)

void journal_file_soon(struct journal *journal, struct tape *tape)
{
    filer_submit(journal->filer, tape);
}

void journal_save_later(struct journal *journal, struct tape *tape)
{
    filer_save_later(journal->filer, tape);
}

/* Under the lock: where the tape of this name hangs in the table; *link is NULL if there is none.
 */
static struct tape **find_link(struct journal *journal, const char *id)
{
    struct tape **link = &journal->table[shelf_bucket(id)];

    while (*link != NULL && !text_equal((*link)->id, id)) {
        link = &(*link)->next;
    }
    return link;
}

void journal_forget(struct journal *journal, struct tape *tape)
{
    struct tape **link;

    (void)pthread_mutex_lock(&journal->lock);
    link = find_link(journal, tape->id);
    if (*link == tape) {
        *link = tape->next;
    } else {
        tape = NULL;
    }
    (void)pthread_mutex_unlock(&journal->lock);
    tape_unref(tape);
}

int journal_open(const struct journal_config *config, struct journal **ret_journal, struct err *err)
{
    struct journal *journal;
    int directory;

    if (mkdir(config->directory, S_IRWXU) < 0 && errno != EEXIST) {
        return err_set(err, errno == ENOSPC ? ERR_STORE_FULL : ERR_IO, errno,
                       "the journal's directory can't be made: %s", err_errno_text(errno));
    }
    directory = open(config->directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0) {
        return err_set(err, ERR_IO, errno, "the journal's directory can't be opened: %s",
                       err_errno_text(errno));
    }
    journal = alloc_zero(1, sizeof(*journal));
    journal->directory = directory;
    journal->tape_max_bytes =
        config->tape_max_bytes > 0 ? config->tape_max_bytes : TAPE_MAX_DEFAULT;
    journal->total_max_bytes =
        config->total_max_bytes > 0 ? config->total_max_bytes : TOTAL_MAX_DEFAULT;
    journal->age_max_ms = config->age_max_ms > 0 ? config->age_max_ms : AGE_MAX_DEFAULT_MS;
    (void)pthread_mutex_init(&journal->lock, NULL);
    journal->filer = filer_new(journal, err);
    if (journal->filer == NULL) {
        journal_close(journal);
        return -1;
    }
    *ret_journal = journal;
    return 0;
}

void journal_close(struct journal *journal)
{
    if (journal == NULL) {
        return;
    }
    filer_free(journal->filer);
    for (size_t i = 0; i < JOURNAL_TABLE_SIZE; i++) {
        while (journal->table[i] != NULL) {
            struct tape *tape = journal->table[i];

            journal->table[i] = tape->next;
            tape_unref(tape);
        }
    }
    fd_close(journal->directory);
    (void)pthread_mutex_destroy(&journal->lock);
    free(journal);
}

struct tape *journal_start(struct journal *journal, const char *id, struct err *err)
{
    struct tape *tape = tape_new(journal, id, journal->tape_max_bytes);
    struct tape **link;
    bool taken;

    (void)pthread_mutex_lock(&journal->lock);
    link = find_link(journal, id);
    taken = *link != NULL;
    if (!taken) {
        *link = tape_ref(tape);
    }
    (void)pthread_mutex_unlock(&journal->lock);
    if (taken) {
        tape_unref(tape);
        (void)err_set(err, ERR_EXECUTION_EXISTS, 0, "an execution by that id has a log");
        return NULL;
    }
    shelf_remove(journal->directory, id);
    return tape;
}

static struct tape *find_in_table(struct journal *journal, const char *id)
{
    struct tape *tape;

    (void)pthread_mutex_lock(&journal->lock);
    tape = *find_link(journal, id);
    if (tape != NULL) {
        (void)tape_ref(tape);
    }
    (void)pthread_mutex_unlock(&journal->lock);
    return tape;
}

struct tape *journal_find(struct journal *journal, const char *id, struct err *err)
{
    struct tape *tape = find_in_table(journal, id);
    int fd;

    if (tape != NULL) {
        return tape;
    }
    fd = shelf_open(journal->directory, id);
    if (fd < 0 && errno == ENOENT) {
        (void)err_set(err, ERR_EVENTS_EXPIRED, 0,
                      "the events of this execution are not kept any more");
        return NULL;
    }
    if (fd < 0) {
        (void)err_set(err, ERR_IO, errno, "the log can't be opened: %s", err_errno_text(errno));
        return NULL;
    }
    return tape_load(journal, id, fd);
}

void journal_remove(struct journal *journal, const char *id)
{
    shelf_remove(journal->directory, id);
}

static bool in_use(void *context, const char *id)
{
    struct journal *journal = context;
    bool open;

    (void)pthread_mutex_lock(&journal->lock);
    open = *find_link(journal, id) != NULL;
    (void)pthread_mutex_unlock(&journal->lock);
    return open;
}

void journal_expire(struct journal *journal, int64_t now_ms, struct journal_usage *ret_usage)
{
    struct shelf_rules rules = { .oldest_ms = now_ms - journal->age_max_ms,
                                 .max_bytes = journal->total_max_bytes,
                                 .in_use = in_use,
                                 .context = journal };
    struct shelf_usage usage;

    shelf_expire(journal->directory, &rules, &usage);
    *ret_usage = (struct journal_usage){ .files = usage.files,
                                         .bytes = usage.bytes,
                                         .expired = usage.expired,
                                         .failed = filer_failed(journal->filer) };
}

void journal_flush(struct journal *journal)
{
    filer_flush(journal->filer);
}
