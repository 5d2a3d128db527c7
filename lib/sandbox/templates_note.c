/* SPDX-License-Identifier: Apache-2.0 */
/*
 * templates_note: what is remembered of kinds that have no template.
 * Owns: the notes.
 * Threads: any, under the lock of the templates.
 * May include: all of lib.
 */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/sandbox/templates_internal.h"

#define NOTES_MAX 16

struct templates_note *templates_note_find(const struct templates *templates,
                                           const struct templates_kind *kind)
{
    struct templates_note *note = templates->notes;

    while (note != NULL && !templates_kind_equal(&note->kind, kind)) {
        note = note->next;
    }
    return note;
}

static void drop(struct templates *templates, struct templates_note *note)
{
    struct templates_note **at = &templates->notes;

    while (*at != note) {
        at = &(*at)->next;
    }
    *at = note->next;
    templates_kind_done(&note->kind);
    free(note);
}

void templates_note_drop(struct templates *templates, const struct templates_kind *kind)
{
    struct templates_note *note = templates_note_find(templates, kind);

    if (note != NULL) {
        drop(templates, note);
    }
}

static void make_room(struct templates *templates)
{
    struct templates_note *oldest = templates->notes;
    size_t count = 0;

    for (struct templates_note *at = templates->notes; at != NULL; at = at->next) {
        oldest = at->used_ns < oldest->used_ns ? at : oldest;
        count++;
    }
    if (count >= NOTES_MAX) {
        drop(templates, oldest);
    }
}

struct templates_note *templates_note_make(struct templates *templates,
                                           const struct templates_kind *kind)
{
    struct templates_note *note = templates_note_find(templates, kind);

    if (note == NULL) {
        make_room(templates);
        note = alloc_zero(1, sizeof(*note));
        templates_kind_copy(&note->kind, kind);
        note->next = templates->notes;
        templates->notes = note;
    }
    note->used_ns = clock_mono_ns();
    return note;
}

void templates_note_age(struct templates *templates, int64_t before_ns)
{
    struct templates_note *next;

    for (struct templates_note *at = templates->notes; at != NULL; at = next) {
        next = at->next;
        if (at->used_ns < before_ns) {
            drop(templates, at);
        }
    }
}
