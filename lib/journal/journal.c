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
#include "lib/journal/binder.h"
#include "lib/journal/filer.h"
#include "lib/journal/journal_internal.h"
#include "lib/journal/shelf.h"
#include "lib/journal/tape_internal.h"

#define MIB (UINT64_C(1) << 20)
#define TAPE_MAX_DEFAULT (160 * MIB)
#define TOTAL_MAX_DEFAULT (4096 * MIB)
#define BINDER_SPANS 28 /* of the maximum age, after which a binder is written to no more */
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
    journal->binders = binder_new(directory, journal->age_max_ms / BINDER_SPANS);
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
    binder_free(journal->binders);
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
    return tape;
}

struct tape *journal_start_again(struct journal *journal, const char *id, struct err *err)
{
    const struct buf nothing = BUF_INIT(0);
    struct binder_place nowhere = { .number = 0 };
    struct tape *tape = journal_start(journal, id, err);

    if (tape == NULL) {
        return NULL;
    }
    shelf_remove(journal->directory, id);
    if (binder_write(journal->binders, id, &nothing, 0, &nowhere) < 0) {
        (void)err_set(err, errno == ENOSPC ? ERR_STORE_FULL : ERR_IO, errno,
                      "a log can't be begun: %s", err_errno_text(errno));
        journal_forget(journal, tape);
        tape_unref(tape);
        return NULL;
    }
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

static struct tape *find_short(struct journal *journal, const char *id)
{
    CLEANUP_BUF struct buf log = BUF_INIT(BINDER_LOG_MAX);

    return binder_find(journal->binders, id, &log) ? tape_load_short(journal, id, &log) : NULL;
}

/* A crash may have cut its file short just when it became too long for a binder, which has more. */
static struct tape *find_long(struct journal *journal, const char *id, int fd)
{
    struct tape *tape = tape_load(journal, id, fd);
    struct tape *bound =
        tape->finished || tape->filed > BINDER_LOG_MAX ? NULL : find_short(journal, id);

    if (bound != NULL && bound->memory.size > tape->filed) {
        tape_unref(tape);
        return bound;
    }
    tape_unref(bound);
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
    if (fd < 0 && errno != ENOENT) {
        (void)err_set(err, ERR_IO, errno, "the log can't be opened: %s", err_errno_text(errno));
        return NULL;
    }
    tape = fd >= 0 ? find_long(journal, id, fd) : find_short(journal, id);
    if (tape == NULL) {
        (void)err_set(err, ERR_EVENTS_EXPIRED, 0,
                      "the events of this execution are not kept any more");
    }
    return tape;
}

void journal_drop(struct journal *journal, struct tape *tape)
{
    (void)pthread_mutex_lock(&tape->lock);
    tape_erase(tape);
    (void)pthread_mutex_unlock(&tape->lock);
    journal_forget(journal, tape);
}

/* Under the lock: does a log that is in the table begin in this binder? */
static bool is_begun_in(const struct journal *journal, uint64_t binder)
{
    for (size_t i = 0; i < JOURNAL_TABLE_SIZE; i++) {
        for (const struct tape *tape = journal->table[i]; tape != NULL; tape = tape->next) {
            if (atomic_load(&tape->binder) == binder) {
                return true;
            }
        }
    }
    return false;
}

static bool in_use(void *context, const char *name)
{
    struct journal *journal = context;
    uint64_t binder = binder_number(name);
    bool open;

    (void)pthread_mutex_lock(&journal->lock);
    open = binder > 0 ? is_begun_in(journal, binder) : *find_link(journal, name) != NULL;
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
