/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: run kern for its images.
 * Owns: nothing.
 * Threads: any; a starter of the factory runs the program, or for a pull the caller himself.
 * May include: base, boxes, engine, remedy, spawn.
 */
#include "lib/box/images.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "lib/box/boxes_internal.h"
#include "lib/box/remedy_kern.h"
#include "lib/box/spawn.h"

/* The archive is its descriptor 3. */
#define ARCHIVE_PATH "/proc/self/fd/3"
#define LOADED "loaded '"
#define LIST_S 20
#define LOAD_S 600
#define END_MS 2000
#define SAID_MAX ((size_t)1 << 20)

/* One run of kern. What it says on stdout and stderr goes to said and words. */
struct errand_of_kern {
    struct boxes *boxes;
    const char *program;
    const struct strv *argv;
    int file; /* its descriptor 3, -1: none */
    int64_t deadline;
    struct images_watch *watch; /* of a pull, NULL: nobody watches */
    struct buf said;
    struct buf words;
    int status;  /* wait(2) form, -1: it did not end */
    int failure; /* errno of what kept it from starting */
};

static void tell_start(struct images_watch *watch)
{
    static const struct sink_event started = { .kind = SINK_STARTED };

    if (watch != NULL) {
        sink_emit(watch->sink, &started);
    }
}

/* The watcher is told up to the end of his room; the reason stands in what is kept here. */
static void tell(struct images_watch *watch, const char *data, size_t size)
{
    struct sink_event event = { .kind = SINK_STDERR, .data = data, .value = watch->words->size };

    event.size = buf_append_some(watch->words, data, size);
    if (event.size > 0) {
        sink_emit(watch->sink, &event);
    }
    if (event.size < size && !watch->truncated) {
        const struct sink_event cut = { .kind = SINK_TRUNCATED, .value = 2 };

        watch->truncated = true;
        sink_emit(watch->sink, &cut);
    }
}

/* Takes what is there; closes at the end. What is too much is read and dropped. */
static void take(int *fd, struct buf *out, struct images_watch *watch)
{
    char piece[4096];
    ssize_t got = read(*fd, piece, sizeof(piece));

    if (got > 0) {
        (void)buf_append_some(out, piece, (size_t)got);
        if (watch != NULL) {
            tell(watch, piece, (size_t)got);
        }
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        fd_clear(fd);
    }
}

static const struct cancel *cancel_of(const struct errand_of_kern *run)
{
    return run->watch == NULL ? NULL : run->watch->cancel;
}

/* It ends now, whatever it does. */
static bool is_over(const struct errand_of_kern *run)
{
    return clock_passed(run->deadline) || cancel_get(cancel_of(run)) != CANCEL_NONE;
}

static void collect(struct errand_of_kern *run, int *out, int *words)
{
    while ((*out >= 0 || *words >= 0) && !is_over(run)) {
        struct pollfd watched[] = { { .fd = *out, .events = POLLIN },
                                    { .fd = *words, .events = POLLIN },
                                    { .fd = cancel_poll_fd(cancel_of(run)), .events = POLLIN } };

        (void)poll(watched, 3, clock_poll_ms(run->deadline, -1));
        if (watched[0].revents != 0) {
            take(out, &run->said, NULL);
        }
        if (watched[1].revents != 0) {
            take(words, &run->words, run->watch);
        }
    }
}

static bool reap(struct errand_of_kern *run, struct spawn_child *child)
{
    const int64_t deadline = clock_deadline_after_ms(END_MS);
    struct pollfd dead = { .fd = child->pidfd, .events = POLLIN };

    while (!spawn_reap(child, &run->status)) {
        if (clock_passed(deadline)) {
            return false;
        }
        (void)poll(&dead, 1, clock_poll_ms(deadline, -1));
    }
    return true;
}

/* Nothing of it goes on behind the answer. */
static void await_end(struct errand_of_kern *run, struct spawn_child *child)
{
    if (is_over(run) || !reap(run, child)) {
        spawn_kill(child);
        (void)reap(run, child);
    }
    if (run->failure == 0) {
        run->failure = spawn_exec_errno(child);
    }
    spawn_done(child);
}

static void run_kern(void *context)
{
    struct errand_of_kern *run = context;
    const struct engine_plan plan = { .private_dir = run->boxes->engine_dir,
                                      .cache_dir = run->boxes->cache_dir };
    CLEANUP_STRV struct strv environment = { 0 };
    CLEANUP_FD int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    CLEANUP_FD int out = -1;
    CLEANUP_FD int out_theirs = -1;
    CLEANUP_FD int words = -1;
    CLEANUP_FD int words_theirs = -1;
    struct spawn_child child = { .pidfd = -1, .exec_error = -1 };

    engine_kern.environment(&plan, environ, &environment);
    if (null_fd >= 0 && fd_pipe(&out, &out_theirs) == 0 && fd_pipe(&words, &words_theirs) == 0) {
        const int fds[] = { null_fd, out_theirs, words_theirs, run->file };
        const struct spawn_request request = { .path = run->program,
                                               .argv = strv_argv(run->argv),
                                               .environment = strv_argv(&environment),
                                               .fds = fds,
                                               .fd_count = run->file < 0 ? 3 : 4,
                                               .cgroup_fd = -1 };

        if (spawn_start(&request, &child, NULL) == 0) {
            tell_start(run->watch);
            fd_clear(&out_theirs);
            fd_clear(&words_theirs);
            collect(run, &out, &words);
            await_end(run, &child);
            return;
        }
    }
    run->failure = errno;
}

static int find_kern(struct boxes *boxes, const char **ret_program, struct err *err)
{
    const char *cache_dir = NULL;

    *ret_program = boxes_engines_image_program(boxes, &cache_dir);
    if (*ret_program != NULL && cache_dir != NULL) {
        return 0;
    }
    (void)err_set(err, ERR_NOT_SUPPORTED_HERE, 0, "there are no images without the engine kern");
    return err_remedy(err, "install kern, and start the server with it");
}

static int run_somewhere(struct errand_of_kern *run, struct err *err)
{
    if (run->watch == NULL) {
        return boxes_errand(run->boxes, run_kern, run, err);
    }
    run_kern(run);
    return 0;
}

/* 0 when it ended with 0; else -1, the code being what its words mean. */
static int ask(struct errand_of_kern *run, enum err_code code, struct err *err)
{
    CLEANUP_FREE char *reason = NULL;

    run->status = -1;
    run->said.max = SAID_MAX;
    run->words.max = SAID_MAX;
    if (find_kern(run->boxes, &run->program, err) < 0 || run_somewhere(run, err) < 0) {
        return -1;
    }
    if (run->status == 0) {
        return 0;
    }
    if (run->failure != 0 || run->status < 0) {
        return err_set(err, ERR_IO, run->failure, "kern could not be asked: %s",
                       run->failure != 0 ? err_errno_text(run->failure) : "it took too long");
    }
    reason = remedy_kern_reason(run->words.size == 0 ? "" : run->words.data);
    return err_set(err, code, 0, "kern refuses: %s", reason);
}

static void done(struct errand_of_kern *run)
{
    buf_done(&run->said);
    buf_done(&run->words);
}

int images_list(struct boxes *boxes, struct buf *out, struct err *err)
{
    CLEANUP_STRV struct strv argv = { 0 };
    struct errand_of_kern run = {
        .boxes = boxes, .argv = &argv, .file = -1, .deadline = clock_deadline_after_s(LIST_S)
    };
    int result;

    strv_add_all(&argv, "kern", "images", "--json", NULL);
    result = ask(&run, ERR_IO, err);
    if (result == 0 && buf_append(out, run.said.data, run.said.size) < 0) {
        result = err_set(err, ERR_IO, 0, "kern has too many images to tell of");
    }
    done(&run);
    return result;
}

/* Of each line "loaded 'NAME'". */
static void take_names(char *said, struct strv *names)
{
    char *rest = said;
    char *line;

    while ((line = strsep(&rest, "\n")) != NULL) {
        char *quote = strrchr(line, '\'');

        if (text_starts_with(line, LOADED) && quote >= line + strlen(LOADED)) {
            *quote = '\0';
            strv_add(names, line + strlen(LOADED));
        }
    }
}

int images_load(struct boxes *boxes, int file, struct strv *ret_names, struct err *err)
{
    CLEANUP_STRV struct strv argv = { 0 };
    struct errand_of_kern run = {
        .boxes = boxes, .argv = &argv, .file = file, .deadline = clock_deadline_after_s(LOAD_S)
    };
    int result;

    strv_add_all(&argv, "kern", "load", "-i", ARCHIVE_PATH, NULL);
    result = ask(&run, ERR_BAD_ARCHIVE, err);
    if (result == 0 && run.said.size > 0) {
        take_names(run.said.data, ret_names);
    }
    if (result == 0 && ret_names->count == 0) {
        result = err_set(err, ERR_BAD_ARCHIVE, 0, "the archive holds no image with a name");
    }
    done(&run);
    return result;
}

int images_check(struct boxes *boxes, struct err *err)
{
    const char *program = NULL;

    return find_kern(boxes, &program, err);
}

int images_pull(struct boxes *boxes, const char *name, struct images_watch *watch,
                enum images_stop *ret_stop, struct err *err)
{
    CLEANUP_STRV struct strv argv = { 0 };
    struct errand_of_kern run = {
        .boxes = boxes, .argv = &argv, .file = -1, .deadline = watch->deadline, .watch = watch
    };
    struct err failure = ERR_INIT;
    int result;

    strv_add_all(&argv, "kern", "pull", name, NULL);
    result = ask(&run, ERR_IMAGE_PULL_FAILED, &failure);
    *ret_stop = IMAGES_PULLED;
    if (result < 0 && failure.code != ERR_NOT_SUPPORTED_HERE && is_over(&run)) {
        *ret_stop = cancel_get(watch->cancel) != CANCEL_NONE ? IMAGES_CANCELLED : IMAGES_TIMED_OUT;
        result = 0;
    } else if (result < 0 && err != NULL) {
        *err = failure;
    }
    done(&run);
    return result;
}
