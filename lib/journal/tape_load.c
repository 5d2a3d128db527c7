/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tape_load: a tape made of what is on disk: hops from head to head, and stops where the log was
 * cut short. Owns: nothing. Threads: any. May include: base.
 */
#include <string.h>
#include <sys/stat.h>

#include "lib/journal/tape_internal.h"
#include "lib/journal/window.h"

/* One more record, which begins at this offset. */
static void count(struct tape *tape, const struct record *head, uint64_t offset)
{
    if (head->kind == TAPE_KIND_END) {
        tape->finished = true;
        tape->capped = head->value != 0;
        return;
    }
    tape_mark(tape, head->seq, offset);
    tape->next_seq++;
    if (head->kind < TAPE_KIND_MAX) {
        tape->bytes_of[head->kind] += head->size;
    }
}

struct tape *tape_load(struct journal *journal, const char *id, int fd)
{
    struct tape *tape = tape_new(journal, id, 0);
    struct window window;
    struct record head;
    struct stat status;
    uint64_t end = fstat(fd, &status) == 0 ? (uint64_t)status.st_size : 0;

    tape->fd = fd;
    tape->live = false;
    window_init(&window, fd);
    while (!tape->finished && window_head(&window, tape->filed, end, &head) == 0 &&
           record_plausible(&head, tape->next_seq, end - tape->filed)) {
        count(tape, &head, tape->filed);
        tape->filed += sizeof(head) + head.size;
    }
    window_done(&window);
    return tape;
}

struct tape *tape_load_short(struct journal *journal, const char *id, struct buf *log)
{
    struct tape *tape = tape_new(journal, id, 0);
    struct record head;
    size_t at = 0;

    tape->live = false;
    while (!tape->finished && log->size - at >= sizeof(head)) {
        memcpy(&head, log->data + at, sizeof(head));
        if (!record_plausible(&head, tape->next_seq, log->size - at)) {
            break;
        }
        count(tape, &head, at);
        at += sizeof(head) + head.size;
    }
    buf_truncate(log, at);
    tape->memory = *log;
    tape->bound = at;
    *log = BUF_INIT(log->max);
    return tape;
}
