/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: own, copy and compare choices of an engine.
 * Owns: the memory inside a choice.
 * Threads: any, one at a time per value.
 * May include: lib/base, lib/box/box.h.
 */
#include "lib/sandbox/choice.h"

#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/box/box.h"

void choice_done(struct choice *choice)
{
    free(choice->engine);
    free(choice->image);
    free(choice->security_profile);
    free(choice->apparmor);
    strv_done(&choice->profiles);
    strv_done(&choice->egress);
    strv_done(&choice->cap_drop);
    *choice = (struct choice){ .engine = NULL };
}

void choice_copy(struct choice *to, const struct choice *from)
{
    *to = (struct choice){
        .engine = alloc_text(from->engine),
        .image = alloc_text(from->image),
        .security_profile = alloc_text(from->security_profile),
        .apparmor = alloc_text(from->apparmor),
        .some_caps = from->some_caps,
    };
    strv_copy(&to->profiles, &from->profiles);
    strv_copy(&to->egress, &from->egress);
    strv_copy(&to->cap_drop, &from->cap_drop);
}

bool choice_equal(const struct choice *a, const struct choice *b)
{
    return text_equal(a->engine, b->engine) && text_equal(a->image, b->image) &&
           text_equal(a->security_profile, b->security_profile) &&
           text_equal(a->apparmor, b->apparmor) && strv_equal(&a->profiles, &b->profiles) &&
           strv_equal(&a->egress, &b->egress) && strv_equal(&a->cap_drop, &b->cap_drop) &&
           a->some_caps == b->some_caps;
}

void choice_extras(const struct choice *choice, struct box_extras *ret_extras)
{
    *ret_extras = (struct box_extras){
        .image = choice->image,
        .security_profile = choice->security_profile,
        .apparmor = choice->apparmor,
        .profiles = &choice->profiles,
        .egress = &choice->egress,
        .cap_drop = choice->some_caps ? &choice->cap_drop : NULL,
    };
}
