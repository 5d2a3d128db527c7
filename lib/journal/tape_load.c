/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tape_load: a tape made of a file: hops from head to head, and stops where the log was cut short.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include <sys/stat.h>

#include "lib/journal/tape_internal.h"
#include "lib/journal/window.h"

static void count(struct tape *tape, const struct record *head)
{
    if (head->kind == TAPE_KIND_END) {
        tape->finished = true;
        tape->capped = head->value != 0;
        return;
    }
    tape_mark(tape, head->seq, tape->filed);
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
        count(tape, &head);
        tape->filed += sizeof(head) + head.size;
    }
    window_done(&window);
    return tape;
}
