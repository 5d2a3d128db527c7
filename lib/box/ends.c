/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make the pipes of a box and give each end to whom it belongs.
 * Owns: nothing beyond the box; the ends are the caller's.
 * Threads: the box's.
 * May include: base, box, box_cgroup, engine, seccomp.
 */
#include "lib/box/ends.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/box/box_cgroup.h"

static int make_pipes(struct box *box, struct ends *ends, struct err *err)
{
    int *ours[INIT_WIRE_STREAMS] = { &box->stdin_fd, &box->stdout_fd, &box->stderr_fd };

    for (size_t i = 0; i < INIT_WIRE_STREAMS; i++) {
        int read_end = -1;
        int write_end = -1;

        if (fd_pipe(&read_end, &write_end) < 0) {
            return err_set(err, ERR_IO, errno, "no pipe left: %s", err_errno_text(errno));
        }
        *ours[i] = i == 0 ? write_end : read_end;
        ends->program[i] = i == 0 ? read_end : write_end;
        (void)fd_set_nonblocking(*ours[i], true);
    }
    return 0;
}

/* The launcher's words go to a file: nobody need read it for the launcher to go on. */
static int make_words(struct box *box, struct ends *ends, struct err *err)
{
    box->words_fd = memfd_create("kernd-words", MFD_CLOEXEC);
    ends->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (box->words_fd < 0 || ends->null < 0) {
        return err_set(err, ERR_IO, errno, "no file for the launcher's words: %s",
                       err_errno_text(errno));
    }
    return 0;
}

static int make_report(struct box *box, struct ends *ends, struct err *err)
{
    if (fd_pipe(&box->report_fd, &ends->report) < 0) {
        return err_set(err, ERR_IO, errno, "no pipe left: %s", err_errno_text(errno));
    }
    return fd_set_nonblocking(box->report_fd, true);
}

/* A template loads them in each of its boxes, from files (template_wire.h). */
static bool has_filters(const struct box *box)
{
    return box->engine->kind->seccomp && box->fork_workspaces == NULL && box->template == NULL;
}

static int open_filters(struct box *box, struct ends *ends, struct err *err)
{
    for (size_t i = 0; i < SECCOMP_PROGRAMS; i++) {
        ends->filters[i] = seccomp_open(&box->boxes->seccomp, i);
        if (ends->filters[i] < 0) {
            return err_set(err, ERR_IO, errno, "can't open the filter: %s", err_errno_text(errno));
        }
    }
    return 0;
}

int ends_make(struct box *box, struct ends *ret_ends, struct err *err)
{
    if (make_pipes(box, ret_ends, err) < 0 ||
        (box->engine->kind->images && make_words(box, ret_ends, err) < 0) ||
        (box->engine->kind->reports && make_report(box, ret_ends, err) < 0) ||
        (has_filters(box) && open_filters(box, ret_ends, err) < 0)) {
        return -1;
    }
    return 0;
}

size_t ends_of_launcher(const struct box *box, const struct ends *ends, int *ret_fds)
{
    size_t count = 0;

    if (box->engine->kind->images) {
        ret_fds[count++] = ends->null;
        ret_fds[count++] = box->words_fd;
        ret_fds[count++] = box->words_fd;
        if (ends->report >= 0) {
            ret_fds[count++] = ends->report;
        }
    } else {
        for (size_t i = 0; i < INIT_WIRE_STREAMS; i++) {
            ret_fds[count++] = ends->program[i];
        }
    }
    for (size_t i = 0; has_filters(box) && i < SECCOMP_PROGRAMS; i++) {
        ret_fds[count++] = ends->filters[i];
    }
    return count;
}

void ends_hear_words(struct box *box, struct buf *words)
{
    char piece[1024];
    ssize_t got = 0;

    do {
        /* The launcher writes at the file's own offset, which is not for us to move. */
        got = box->words_fd >= 0 ? pread(box->words_fd, piece, sizeof(piece), (off_t)words->size)
                                 : read(box->stderr_fd, piece, sizeof(piece));
        if (got > 0) {
            (void)buf_append_some(words, piece, (size_t)got);
        }
    } while (got > 0 && (box->words_fd < 0 || words->size < words->max));
}

void ends_hear_report(struct box *box)
{
    struct engine_report report;
    int before;

    /* Where there is no cap it tells of one that can't be reached. */
    if (box->report_fd < 0 || box->limits.memory_bytes == 0 ||
        read(box->report_fd, &report, sizeof(report)) != (ssize_t)sizeof(report) ||
        report.cap == ENGINE_CAP_UNKNOWN || report.cap > ENGINE_CAP_UNBOUND) {
        return;
    }
    before = atomic_exchange(&box->engine->cap, report.cap);
    /* Told once, not of every box. */
    if (report.cap == ENGINE_CAP_UNBOUND && before != ENGINE_CAP_UNBOUND &&
        box_cgroup_has_memory(box)) {
        log_line(LOG_WARNING, "cap_not_seen_by_launcher", "box", box->id, NULL);
    }
}

void ends_close(struct ends *ends)
{
    for (size_t i = 0; i < INIT_WIRE_STREAMS; i++) {
        fd_clear(&ends->program[i]);
    }
    for (size_t i = 0; i < SECCOMP_PROGRAMS; i++) {
        fd_clear(&ends->filters[i]);
    }
    fd_clear(&ends->null);
    fd_clear(&ends->report);
}
