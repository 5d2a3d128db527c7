/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: count what came of executions; find out what the sandbox holds.
 * Owns: the counters of struct tally.
 * Threads: any; counters without a lock, read one after another while others count on.
 * May include: all of lib.
 */
#include "lib/sandbox/tally.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/warm.h"
#include "lib/store/rows_snapshot.h"

void tally_end(struct tally *tally, enum run_kind kind, enum run_fault fault)
{
    (void)atomic_fetch_add_explicit(&tally->ends[kind][fault], 1, memory_order_relaxed);
}

void tally_error(struct tally *tally, enum run_kind kind)
{
    (void)atomic_fetch_add_explicit(&tally->errors[kind], 1, memory_order_relaxed);
}

static void count_kernels(struct sandbox *sandbox, struct tally_view *view)
{
    size_t count = 0;
    struct warm **all = kernels_table_collect(&sandbox->kernels, NULL, &count);

    for (size_t i = 0; i < count; i++) {
        struct kernels_view kernel;

        warm_view(all[i], &kernel);
        view->kernels[kernel.state]++;
        warm_unref(all[i]);
    }
    free(all);
}

/* Only their status: to open and close the database here would drop SQLite's locks on it. */
static uint64_t store_bytes(const struct sandbox *sandbox)
{
    static const char *const names[] = { "../kernd.db", "../kernd.db-wal" };
    struct stat status;
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (fstatat(sandbox->workspaces, names[i], &status, AT_SYMLINK_NOFOLLOW) == 0) {
            sum += (uint64_t)status.st_size;
        }
    }
    return sum;
}

void tally_read(struct sandbox *sandbox, struct tally_view *ret_view)
{
    struct tally *tally = &sandbox->tally;

    *ret_view = (struct tally_view){ .store_bytes = store_bytes(sandbox),
                                     .journal_bytes = atomic_load(&tally->journal_bytes) };
    for (size_t kind = 0; kind < TALLY_KINDS; kind++) {
        ret_view->errors[kind] = atomic_load(&tally->errors[kind]);
        for (size_t fault = 0; fault < TALLY_FAULTS; fault++) {
            ret_view->ends[kind][fault] = atomic_load(&tally->ends[kind][fault]);
        }
    }
    count_kernels(sandbox, ret_view);
    (void)rows_snapshot_total(sandbox->store, false, &ret_view->snapshot_bytes, NULL);
}
