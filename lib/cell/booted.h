/* SPDX-License-Identifier: Apache-2.0 */
/*
 * booted: the body of a booted cell (cell.h), for lib/cell alone.
 */
#ifndef KERND_CELL_BOOTED_H
#define KERND_CELL_BOOTED_H

#include "lib/box/box.h"
#include "lib/cell/wire.h"

struct cell_booted {
    struct box *box;
    int driver; /* the box's */
    struct wire wire;
    char interpreter[WIRE_INTERPRETER_SIZE];
};

#endif
