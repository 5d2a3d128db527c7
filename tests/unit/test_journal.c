/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/journal/binder.h"
#include "lib/journal/journal.h"
#include "lib/journal/reader.h"
#include "lib/journal/shelf.h"
#include "lib/journal/stream.h"
#include "tests/unit/scratch.h"

#define OUT 2
#define ERR 3
#define EXIT 9

static struct journal *journal;
static struct journal_config config;

static int open_journal(void **state)
{
    if (scratch_fresh(state) < 0) {
        return -1;
    }
    config = (struct journal_config){ .directory = scratch_path };
    return journal_open(&config, &journal, NULL);
}

static int close_journal(void **state)
{
    (void)state;
    journal_close(journal);
    journal = NULL;
    return 0;
}

static void reopen(void)
{
    journal_close(journal);
    assert_int_equal(journal_open(&config, &journal, NULL), 0);
}

static bool put(struct tape *tape, uint32_t kind, const char *text, uint64_t value)
{
    struct tape_event event = {
        .kind = kind, .value = value, .data = text, .size = strlen(text), .droppable = kind != EXIT
    };

    return tape_append(tape, &event);
}

/* "0:2:abc 1:9: END" of what can be read from this seq on. */
static void assert_events(struct tape *tape, uint64_t seq, const char *expected)
{
    static const char *const ends[] = {
        [READER_WAIT] = "WAIT", [READER_END] = "END", [READER_LOST] = "LOST"
    };
    struct reader *reader = reader_new(tape, seq, NULL, NULL);
    struct buf out = BUF_INIT(100000);
    struct tape_event event;
    enum reader_state state;

    while ((state = reader_next(reader, &event)) == READER_EVENT) {
        assert_int_equal(buf_printf(&out, "%d:%u:%.*s ", (int)event.seq, event.kind,
                                    (int)event.size, (const char *)event.data),
                         0);
    }
    assert_int_equal(buf_append_text(&out, ends[state]), 0);
    assert_string_equal(out.data, expected);
    buf_done(&out);
    reader_free(reader);
}

static void from_life_to_file(void **state)
{
    struct tape *tape = journal_start(journal, "exe_1", NULL);
    struct tape *again;
    struct err err = ERR_INIT;

    (void)state;
    assert_true(put(tape, OUT, "a", 0));
    assert_true(put(tape, ERR, "", 0));
    assert_events(tape, 0, "0:2:a 1:3: WAIT");
    assert_null(journal_start(journal, "exe_1", &err));
    assert_int_equal(err.code, ERR_EXECUTION_EXISTS);
    again = journal_find(journal, "exe_1", NULL);
    assert_ptr_equal(again, tape);
    assert_true(put(again, EXIT, "end", 7));
    tape_finish(tape);
    tape_finish(tape);
    assert_false(put(tape, OUT, "too late", 0));
    assert_events(tape, 0, "0:2:a 1:3: 2:9:end END");
    tape_unref(again);
    journal_flush(journal);
    assert_events(tape, 1, "1:3: 2:9:end END");
    tape_unref(tape);
    reopen();
    tape = journal_find(journal, "exe_1", NULL);
    assert_true(tape_is_finished(tape));
    assert_false(tape_is_capped(tape));
    assert_int_equal(tape_count(tape), 3);
    assert_events(tape, 0, "0:2:a 1:3: 2:9:end END");
    assert_events(tape, 2, "2:9:end END");
    assert_events(tape, 3, "END");
    assert_events(tape, 99, "END");
    tape_unref(tape);
    tape_unref(NULL);
    assert_null(journal_find(journal, "exe_2", &err));
    assert_int_equal(err.code, ERR_EVENTS_EXPIRED);
}

static void an_empty_log(void **state)
{
    struct tape *tape = journal_start(journal, "exe_1", NULL);

    (void)state;
    assert_events(tape, 0, "WAIT");
    tape_finish(tape);
    assert_events(tape, 0, "END");
    tape_unref(tape);
    reopen();
    tape = journal_find(journal, "exe_1", NULL);
    assert_events(tape, 0, "END");
    tape_unref(tape);
}

static void small_output_is_joined(void **state)
{
    struct tape *tape = journal_start(journal, "exe_1", NULL);
    struct tape_event event = { .kind = OUT, .joinable = true, .data = "x", .size = 1 };

    (void)state;
    for (event.value = 0; event.value < 1000; event.value++) {
        assert_true(tape_append(tape, &event));
    }
    assert_true(tape_count(tape) < 1000);
    assert_int_equal(tape_bytes_of(tape, OUT), 1000);
    event.kind = ERR;
    assert_true(tape_append(tape, &event));
    tape_finish(tape);
    tape_unref(tape);
}

/* What a reader has passed stays as it was, also when it was only passed on the way. */
static void nothing_is_joined_behind_a_reader(void **state)
{
    struct tape *tape = journal_start(journal, "exe_1", NULL);
    struct tape_event event = { .kind = OUT, .joinable = true, .data = "x", .size = 1 };
    struct reader *seen = reader_new(tape, 0, NULL, NULL);
    struct reader *passed = reader_new(tape, 1, NULL, NULL);

    (void)state;
    assert_true(tape_append(tape, &event));
    assert_int_equal(reader_next(passed, &event), READER_WAIT);
    event = (struct tape_event){ .kind = OUT, .joinable = true, .data = "y", .size = 1 };
    assert_true(tape_append(tape, &event));
    assert_int_equal(tape_count(tape), 2);
    assert_int_equal(reader_next(passed, &event), READER_EVENT);
    assert_memory_equal(event.data, "y", 1);
    assert_int_equal(reader_next(seen, &event), READER_EVENT);
    assert_memory_equal(event.data, "x", 1);
    reader_free(seen);
    reader_free(passed);
    reader_free(NULL);
    tape_finish(tape);
    tape_unref(tape);
}

static char piece[100001];

static void fill_piece(void)
{
    for (size_t i = 0; i < sizeof(piece) - 1; i++) {
        piece[i] = (char)('a' + i % 26);
    }
}

/* Much longer than what is kept in memory: every seq can be started from, live and after. */
static void long_logs(void **state)
{
    struct tape *tape = journal_start(journal, "exe_1", NULL);
    struct tape_event event;

    (void)state;
    fill_piece();
    for (uint64_t i = 0; i < 60; i++) {
        event = (struct tape_event){
            .kind = OUT, .value = i, .data = piece, .size = (size_t)(i * 1000)
        };
        assert_true(tape_append(tape, &event));
    }
    for (int round = 0; round < 3; round++) {
        for (uint64_t seq = 0; seq < 60; seq++) {
            struct reader *reader = reader_new(tape, seq, NULL, NULL);

            for (uint64_t next = seq; next < 60; next += 1 + seq / 4) {
                assert_int_equal(reader_next(reader, &event), READER_EVENT);
                if (next == seq) {
                    assert_int_equal(event.seq, seq);
                    assert_int_equal(event.value, seq);
                    assert_int_equal(event.size, seq * 1000);
                    assert_memory_equal(event.data, piece, event.size);
                }
            }
            reader_free(reader);
        }
        if (round == 0) {
            tape_finish(tape);
        } else if (round == 1) {
            tape_unref(tape);
            reopen();
            tape = journal_find(journal, "exe_1", NULL);
        }
    }
    tape_unref(tape);
}

static void output_above_the_maximum(void **state)
{
    struct tape *tape;

    (void)state;
    config.tape_max_bytes = 200;
    reopen();
    tape = journal_start(journal, "exe_1", NULL);
    assert_true(put(tape, OUT, "0123456789", 0));
    assert_true(put(tape, ERR, "0123456789", 0));
    assert_false(tape_is_capped(tape));
    assert_false(put(tape, OUT, "this is more than what is left of the two hundred bytes", 10));
    assert_true(tape_is_capped(tape));
    assert_false(put(tape, OUT, "", 66)); /* would fit, but would leave a hole */
    assert_true(put(tape, EXIT, "always kept", 0));
    tape_finish(tape);
    tape_unref(tape);
    reopen();
    tape = journal_find(journal, "exe_1", NULL);
    assert_true(tape_is_capped(tape));
    assert_events(tape, 0, "0:2:0123456789 1:3:0123456789 2:9:always kept END");
    tape_unref(tape);
}

/* As a process that comes after a crash would find it. 0: there is nothing. */
static size_t read_log(const char *id, char *out, size_t size)
{
    struct binders *binders = binder_new(scratch_fd, 1000);
    struct buf log = BUF_INIT(size);
    size_t got = 0;

    if (binder_find(binders, id, &log)) {
        got = log.size;
        memcpy(out, log.data, got);
    }
    buf_done(&log);
    binder_free(binders);
    return got;
}

static void write_log(const char *id, const char *data, size_t size)
{
    int fd = shelf_make(scratch_fd, id);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, data, size), 0);
    fd_close(fd);
}

/* A log cut at any byte holds a whole number of events, and is told to be cut. */
static void torn_logs(void **state)
{
    struct tape *tape = journal_start(journal, "exe_1", NULL);
    char log[1000];
    size_t size;
    uint64_t most = 0;

    (void)state;
    assert_true(put(tape, OUT, "first", 0));
    assert_true(put(tape, OUT, "second", 5));
    assert_true(put(tape, EXIT, "", 0));
    tape_finish(tape);
    tape_unref(tape);
    journal_flush(journal);
    size = read_log("exe_1", log, sizeof(log));
    for (size_t cut = 0; cut < size; cut++) {
        write_log("exe_2", log, cut);
        tape = journal_find(journal, "exe_2", NULL);
        assert_false(tape_is_finished(tape));
        assert_true(tape_count(tape) >= most);
        most = tape_count(tape);
        assert_events(tape, 0,
                      most == 0   ? "LOST"
                      : most == 1 ? "0:2:first LOST"
                      : most == 2 ? "0:2:first 1:2:second LOST"
                                  : "0:2:first 1:2:second 2:9: LOST");
        tape_unref(tape);
    }
    assert_int_equal(most, 3);
    /* Any byte gone bad: never other data, never more events. */
    for (size_t at = 0; at < size; at++) {
        struct reader *reader;
        struct tape_event event;

        log[at] = (char)(log[at] ^ 0x10);
        write_log("exe_2", log, size);
        log[at] = (char)(log[at] ^ 0x10);
        tape = journal_find(journal, "exe_2", NULL);
        reader = reader_new(tape, 0, NULL, NULL);
        while (reader_next(reader, &event) == READER_EVENT) {
            assert_true(event.seq < 3);
            assert_memory_equal(event.data, event.seq == 0 ? "first" : "second", event.size);
        }
        reader_free(reader);
        tape_unref(tape);
    }
}

/* A log that goes on is in its file before long, for whoever comes after a crash. */
static void running_logs_are_saved(void **state)
{
    struct tape *tape = journal_start(journal, "exe_1", NULL);
    int64_t deadline = clock_deadline_after_s(30);
    char log[1000];

    (void)state;
    assert_true(put(tape, OUT, "so far", 0));
    while (read_log("exe_1", log, sizeof(log)) == 0) {
        assert_false(clock_passed(deadline));
    }
    write_log("exe_2", log, read_log("exe_1", log, sizeof(log)));
    assert_true(put(tape, OUT, " and on", 6));
    tape_finish(tape);
    assert_events(tape, 0, "0:2:so far 1:2: and on END");
    tape_unref(tape);
    tape = journal_find(journal, "exe_2", NULL);
    assert_events(tape, 0, "0:2:so far LOST");
    tape_unref(tape);
}

static void quiet(void *context)
{
    (void)context;
}

/* What a reader was told is in the file by then; so is what one that waits is about to be told. */
static void what_is_told_is_saved(void **state)
{
    struct tape *tape = journal_start(journal, "exe_1", NULL);
    struct tape_event event;
    struct reader *reader;
    char log[1000];

    (void)state;
    assert_true(put(tape, OUT, "first", 0));
    reader = reader_new(tape, 0, quiet, NULL);
    assert_true(put(tape, OUT, "second", 5));
    assert_int_equal(reader_next(reader, &event), READER_EVENT);
    assert_int_equal(reader_next(reader, &event), READER_EVENT);
    assert_memory_equal(event.data, "second", event.size);
    write_log("exe_2", log, read_log("exe_1", log, sizeof(log)));
    assert_int_equal(reader_next(reader, &event), READER_WAIT);
    assert_true(put(tape, ERR, "third", 0));
    write_log("exe_3", log, read_log("exe_1", log, sizeof(log)));
    assert_int_equal(reader_next(reader, &event), READER_EVENT);
    assert_memory_equal(event.data, "third", event.size);
    reader_free(reader);
    tape_finish(tape);
    tape_unref(tape);
    tape = journal_find(journal, "exe_2", NULL);
    assert_events(tape, 0, "0:2:first 1:2:second LOST");
    tape_unref(tape);
    tape = journal_find(journal, "exe_3", NULL);
    assert_events(tape, 0, "0:2:first 1:2:second 2:3:third LOST");
    tape_unref(tape);
}

static void ring(void *context)
{
    (void)atomic_fetch_add((atomic_int *)context, 1);
}

static void waking(void **state)
{
    struct tape *tape = journal_start(journal, "exe_1", NULL);
    atomic_int rung = 0;
    struct reader *reader = reader_new(tape, 0, ring, &rung);
    struct tape_event event;

    (void)state;
    assert_true(put(tape, OUT, "a", 0));
    assert_int_equal(rung, 0); /* it has not asked yet */
    assert_int_equal(reader_next(reader, &event), READER_EVENT);
    assert_int_equal(reader_next(reader, &event), READER_WAIT);
    assert_true(put(tape, OUT, "b", 0));
    assert_true(put(tape, OUT, "c", 0));
    assert_int_equal(rung, 1);
    assert_int_equal(reader_next(reader, &event), READER_EVENT);
    assert_int_equal(reader_next(reader, &event), READER_EVENT);
    assert_int_equal(reader_next(reader, &event), READER_WAIT);
    tape_finish(tape);
    assert_int_equal(rung, 2);
    assert_int_equal(reader_next(reader, &event), READER_END);
    reader_free(reader);
    tape_unref(tape);
}

#define FOLLOWED 3000

struct follower {
    pthread_t thread;
    struct tape *tape;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool awake;
    uint64_t seen;
    uint64_t bytes;
};

static void wake_follower(void *context)
{
    struct follower *follower = context;

    (void)pthread_mutex_lock(&follower->lock);
    follower->awake = true;
    (void)pthread_cond_signal(&follower->woken);
    (void)pthread_mutex_unlock(&follower->lock);
}

static void *follow(void *context)
{
    struct follower *follower = context;
    struct reader *reader = reader_new(follower->tape, 0, wake_follower, follower);
    struct tape_event event;
    enum reader_state state;

    while ((state = reader_next(reader, &event)) != READER_END) {
        if (state == READER_EVENT) {
            follower->seen += event.seq == follower->seen ? 1 : 0;
            follower->bytes += event.size;
            continue;
        }
        (void)pthread_mutex_lock(&follower->lock);
        while (!follower->awake) {
            (void)pthread_cond_wait(&follower->woken, &follower->lock);
        }
        follower->awake = false;
        (void)pthread_mutex_unlock(&follower->lock);
    }
    reader_free(reader);
    return NULL;
}

static void many_followers(void **state)
{
    struct tape *tape = journal_start(journal, "exe_1", NULL);
    struct follower followers[8];
    uint64_t bytes = 0;

    (void)state;
    fill_piece();
    for (size_t i = 0; i < 8; i++) {
        followers[i] = (struct follower){ .tape = tape,
                                          .lock = PTHREAD_MUTEX_INITIALIZER,
                                          .woken = PTHREAD_COND_INITIALIZER };
        assert_int_equal(pthread_create(&followers[i].thread, NULL, follow, &followers[i]), 0);
    }
    for (unsigned i = 0; i < FOLLOWED; i++) {
        struct tape_event event = {
            .kind = OUT, .data = piece, .size = i % 777, .joinable = i % 2 == 0
        };

        assert_true(tape_append(tape, &event));
        bytes += event.size;
    }
    tape_finish(tape);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(pthread_join(followers[i].thread, NULL), 0);
        assert_int_equal(followers[i].seen, tape_count(tape));
        assert_int_equal(followers[i].bytes, bytes);
    }
    tape_unref(tape);
}

static void raw_streams(void **state)
{
    struct tape *tape = journal_start(journal, "exe_1", NULL);
    struct stream *out = stream_new(tape, OUT);
    char got[64];

    (void)state;
    assert_int_equal(stream_read(out, 0, got, sizeof(got)), 0);
    assert_true(put(tape, OUT, "0123", 0));
    assert_true(put(tape, ERR, "errors", 0));
    assert_true(put(tape, OUT, "", 4));
    assert_int_equal(stream_read(out, 0, got, sizeof(got)), 4);
    assert_true(put(tape, OUT, "456789", 4));
    assert_int_equal(stream_read(out, 4, got, 2), 2);
    assert_memory_equal(got, "45", 2);
    assert_int_equal(tape_bytes_of(tape, OUT), 10);
    tape_finish(tape);
    journal_flush(journal);
    for (size_t from = 0; from <= 12; from++) {
        for (size_t size = 0; size <= 12; size++) {
            size_t expected = from >= 10 ? 0 : size < 10 - from ? size : 10 - from;

            assert_int_equal(stream_read(out, from, got, size), expected);
            assert_memory_equal(got, &"0123456789"[from < 10 ? from : 0], expected);
        }
    }
    stream_free(out);
    stream_free(NULL);
    tape_unref(tape);
}

static void set_age(const char *path, int64_t age_s)
{
    struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                 { .tv_sec = clock_wall_ms() / 1000 - age_s } };

    assert_int_equal(utimensat(scratch_fd, path, times, 0), 0);
}

/* A log that ended with so many bytes of output, written. */
static void keep(const char *id, size_t size)
{
    struct tape *tape = journal_start(journal, id, NULL);
    struct tape_event event = { .kind = OUT, .data = piece, .size = size };

    fill_piece();
    assert_true(tape_append(tape, &event));
    tape_finish(tape);
    tape_unref(tape);
    journal_flush(journal);
}

static void expiry(void **state)
{
    struct journal_usage usage;
    struct tape *live;
    char id[32];
    char path[SHELF_PATH_SIZE];

    (void)state;
    config.age_max_ms = 3600 * 1000;
    reopen();
    for (int i = 0; i < 10; i++) {
        (void)snprintf(id, sizeof(id), "exe_%d", i);
        keep(id, BINDER_LOG_MAX);
        shelf_path(id, path);
        set_age(path, i < 3 ? 4000 : 100 - i);
    }
    live = journal_start(journal, "exe_live", NULL);
    journal_expire(journal, clock_wall_ms(), &usage);
    assert_int_equal(usage.expired, 3);
    assert_int_equal(usage.files, 7);
    assert_int_equal(usage.failed, 0);
    assert_null(journal_find(journal, "exe_2", NULL));
    tape_finish(live);
    tape_unref(live);
    config.total_max_bytes = usage.bytes / 2;
    reopen();
    journal_expire(journal, clock_wall_ms(), &usage);
    assert_true(usage.bytes <= config.total_max_bytes);
    assert_null(journal_find(journal, "exe_3", NULL)); /* the oldest go first */
    live = journal_find(journal, "exe_live", NULL);
    assert_non_null(live);
    tape_unref(live);
}

/* The binders of an id, in their order; out has room for so many paths. */
static size_t find_binders(const char *id, char (*out)[SHELF_PATH_SIZE], size_t room)
{
    const unsigned bucket = shelf_bucket(id) % 64;
    DIR *dir = shelf_open_bucket(scratch_fd, bucket);
    const struct dirent *entry;
    size_t count = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (binder_number(entry->d_name) > 0) {
            assert_true(count < room);
            (void)snprintf(out[count++], SHELF_PATH_SIZE, "%02x/%.17s", bucket, entry->d_name);
        }
    }
    (void)closedir(dir);
    qsort(out, count, SHELF_PATH_SIZE, (int (*)(const void *, const void *))strcmp);
    return count;
}

/* Short logs are deleted with their binder, which stays as long as a log of it goes on. */
static void expiry_of_short_logs(void **state)
{
    struct journal_usage usage;
    struct tape *live = journal_start(journal, "exe_live", NULL);
    struct reader *reader = reader_new(live, 0, quiet, NULL);
    struct tape_event event;
    struct tape *old;
    char paths[2][SHELF_PATH_SIZE];

    (void)state;
    assert_true(put(live, OUT, "so far", 0));
    assert_int_equal(reader_next(reader, &event), READER_EVENT);
    keep("exe_old", 10);
    old = journal_find(journal, "exe_old", NULL);
    assert_int_equal(find_binders("exe_live", paths, 2), 1);
    set_age(paths[0], 8 * 24 * 3600);
    assert_int_equal(find_binders("exe_old", paths, 2), 1);
    set_age(paths[0], 8 * 24 * 3600);
    journal_expire(journal, clock_wall_ms(), &usage);
    assert_int_equal(usage.expired, 1);
    assert_int_equal(usage.files, 1);
    assert_null(journal_find(journal, "exe_old", NULL));
    assert_events(old, 0, "0:2:abcdefghij END"); /* whoever has it may go on */
    tape_unref(old);
    keep("exe_old", 3); /* into a binder that is made anew */
    old = journal_find(journal, "exe_old", NULL);
    assert_events(old, 0, "0:2:abc END");
    tape_unref(old);
    assert_true(put(live, OUT, " and on", 6));
    reader_free(reader);
    tape_finish(live);
    tape_unref(live);
    reopen();
    live = journal_find(journal, "exe_live", NULL);
    assert_events(live, 0, "0:2:so far 1:2: and on END");
    tape_unref(live);
}

/* However many short logs there are, they take few files, and each is found again as it was. */
static void short_logs_share_files(void **state)
{
    struct journal_usage usage;
    struct tape *tape;
    char id[32];
    char text[64];

    (void)state;
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(id, sizeof(id), "exe_%d", i);
        (void)snprintf(text, sizeof(text), "the output of %d", i);
        tape = journal_start(journal, id, NULL);
        assert_true(put(tape, OUT, text, 0));
        tape_finish(tape);
        tape_unref(tape);
        if (i % 1000 == 0) {
            reopen();
        }
    }
    reopen();
    journal_expire(journal, clock_wall_ms(), &usage);
    assert_true(usage.files <= 64 * 4);
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(id, sizeof(id), "exe_%d", i);
        (void)snprintf(text, sizeof(text), "0:2:the output of %d END", i);
        tape = journal_find(journal, id, NULL);
        assert_events(tape, 0, text);
        tape_unref(tape);
    }
}

/* It grows out of its binder while it is read; a crash at any time leaves what was told. */
static void a_log_that_becomes_long(void **state)
{
    struct tape *tape = journal_start(journal, "exe_1", NULL);
    struct reader *reader = reader_new(tape, 0, quiet, NULL);
    struct tape_event event = { .kind = OUT, .data = piece, .size = 10000 };
    struct tape *again;
    int fd;
    char log[BINDER_LOG_MAX];

    (void)state;
    fill_piece();
    assert_true(tape_append(tape, &event));
    assert_int_equal(reader_next(reader, &event), READER_EVENT);
    assert_true(read_log("exe_1", log, sizeof(log)) > 10000);
    event = (struct tape_event){ .kind = OUT, .data = piece, .size = 10000 };
    assert_true(tape_append(tape, &event));
    assert_int_equal(reader_next(reader, &event), READER_EVENT);
    assert_int_equal(event.seq, 1);
    assert_memory_equal(event.data, piece, 10000);
    fd = shelf_open(scratch_fd, "exe_1");
    assert_true(fd >= 0);
    fd_close(fd);
    tape_finish(tape);
    tape_unref(tape);
    reader_free(reader);
    reopen();
    again = journal_find(journal, "exe_1", NULL);
    assert_int_equal(tape_count(again), 2);
    assert_true(tape_is_finished(again));
    tape_unref(again);
    write_log("exe_1", "", 0); /* as if the crash came before the new file was written */
    again = journal_find(journal, "exe_1", NULL);
    assert_int_equal(tape_count(again), 1);
    assert_false(tape_is_finished(again));
    tape_unref(again);
}

/* Another id whose short logs are in the same binders. */
static const char *neighbour_of(const char *id)
{
    static char other[32];
    int i = 0;

    do {
        (void)snprintf(other, sizeof(other), "exe_other%d", i++);
    } while (shelf_bucket(other) % 64 != shelf_bucket(id) % 64);
    return other;
}

static void assert_whole_or(const char *id, const char *whole, bool other)
{
    struct tape *tape = journal_find(journal, id, NULL);

    if (tape != NULL) {
        assert_events(tape, 0, whole);
    } else {
        assert_true(other);
    }
    tape_unref(tape);
}

/* A binder cut or damaged at any byte: whole logs or none, never another's, and writing goes on. */
static void torn_binders(void **state)
{
    const char *other = neighbour_of("exe_1");
    char paths[300][SHELF_PATH_SIZE];
    char bytes[1000];
    size_t size;
    int fd;

    (void)state;
    keep("exe_1", 5);
    keep(other, 7);
    assert_int_equal(find_binders("exe_1", paths, 300), 1);
    fd = openat(scratch_fd, paths[0], O_RDWR | O_CLOEXEC);
    size = (size_t)pread(fd, bytes, sizeof(bytes), 0);
    assert_true(size > 100 && size < sizeof(bytes));
    for (size_t at = 0; at < size; at++) {
        const char bad = (char)(bytes[at] ^ 0x10);

        assert_int_equal(pwrite(fd, &bad, 1, (off_t)at), 1);
        assert_whole_or("exe_1", "0:2:abcde END", true);
        assert_whole_or(other, "0:2:abcdefg END", true);
        assert_int_equal(pwrite(fd, &bytes[at], 1, (off_t)at), 1);
    }
    for (size_t cut = size - 1; cut > size / 2; cut--) {
        assert_int_equal(ftruncate(fd, (off_t)cut), 0);
        assert_whole_or("exe_1", "0:2:abcde END", false);
        assert_null(journal_find(journal, other, NULL));
    }
    fd_close(fd);
    reopen(); /* it does not write behind what was cut short */
    keep(other, 3);
    assert_whole_or("exe_1", "0:2:abcde END", false);
    assert_whole_or(other, "0:2:abc END", false);
    assert_int_equal(find_binders("exe_1", paths, 300), 2);
}

/* An id whose record is long gone is used again: nothing of the old log is ever seen. */
static void an_id_that_is_used_again(void **state)
{
    struct tape *tape;

    (void)state;
    for (int round = 0; round < 4; round++) {
        keep("exe_1", round % 2 == 0 ? 10 : 50000);
        tape = journal_start_again(journal, "exe_1", NULL);
        assert_events(tape, 0, "WAIT");
        journal_drop(journal, tape); /* as if the process had been killed here */
        tape_unref(tape);
        reopen();
        assert_null(journal_find(journal, "exe_1", NULL));
    }
    tape = journal_start_again(journal, "exe_1", NULL);
    assert_true(put(tape, OUT, "new", 0));
    tape_finish(tape);
    tape_unref(tape);
    reopen();
    tape = journal_find(journal, "exe_1", NULL);
    assert_events(tape, 0, "0:2:new END");
    tape_unref(tape);
}

/* One that the queue would not take leaves nothing, whether it was written before or not. */
static void a_log_that_is_dropped(void **state)
{
    struct tape *tape;

    (void)state;
    for (int round = 0; round < 3; round++) {
        tape = journal_start(journal, "exe_1", NULL);
        assert_true(put(tape, OUT, round == 2 ? piece : "short", 0));
        tape_finish(tape);
        if (round > 0) {
            journal_flush(journal);
        }
        journal_drop(journal, tape);
        journal_flush(journal);
        assert_null(journal_find(journal, "exe_1", NULL));
        assert_true(tape_count(tape) == 1);
        tape_unref(tape);
    }
}

/* Files can't be made: the log can be read as long as it is held, then it is gone, never half. */
static void a_full_disk(void **state)
{
    struct tape *tape = journal_start(journal, "exe_1", NULL);
    struct journal_usage usage;
    struct tape_event event = { .kind = OUT, .data = piece, .size = 100000, .droppable = true };
    int kept = 0;

    (void)state;
    fill_piece();
    assert_int_equal(fchmod(scratch_fd, 0500), 0);
    while (tape_append(tape, &event)) {
        kept++;
        assert_true(kept < 10);
    }
    assert_true(put(tape, EXIT, "", 0));
    tape_finish(tape);
    assert_int_equal(tape_count(tape), kept + 1);
    journal_flush(journal);
    journal_expire(journal, clock_wall_ms(), &usage);
    assert_int_equal(usage.failed, 1);
    assert_int_equal(fchmod(scratch_fd, 0700), 0);
    assert_null(journal_find(journal, "exe_1", NULL));
    tape_unref(tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(from_life_to_file, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(an_empty_log, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(small_output_is_joined, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(nothing_is_joined_behind_a_reader, open_journal,
                                        close_journal),
        cmocka_unit_test_setup_teardown(long_logs, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(output_above_the_maximum, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(torn_logs, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(running_logs_are_saved, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(what_is_told_is_saved, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(waking, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(many_followers, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(raw_streams, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(expiry, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(expiry_of_short_logs, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(short_logs_share_files, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(a_log_that_becomes_long, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(torn_binders, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(an_id_that_is_used_again, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(a_log_that_is_dropped, open_journal, close_journal),
        cmocka_unit_test_setup_teardown(a_full_disk, open_journal, close_journal),
    };

    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
