/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table: prints the product's own table of system calls for the sweep to compare with.
 * Job: a line per row: program, name, action, errno, condition, argument, first, last, and the
 *      argument that must not be 0 as well (0: none).
 * Owns: nothing. Threads: one. A test program: it is linked with lib/box/seccomp_table.c alone.
 */
#include <inttypes.h>
#include <stdio.h>

#include "lib/box/seccomp_table.h"

static void print_program(enum seccomp_table_program program)
{
    static const char *const actions[] = { "allow", "error", "kill" };
    static const char *const conditions[] = { "always", "range", "bits" };
    struct seccomp_table_row row;

    for (size_t i = 0; seccomp_table_at(program, i, &row); i++) {
        (void)printf("%s %s %s %d %s %u %" PRIu64 " %" PRIu64 " %u\n",
                     program == SECCOMP_TABLE_LIST ? "list" : "walls", row.name,
                     actions[row.action], row.error, conditions[row.when], row.argument, row.first,
                     row.last, row.nonzero);
    }
}

int main(void)
{
    print_program(SECCOMP_TABLE_LIST);
    print_program(SECCOMP_TABLE_WALLS);
    return 0;
}
