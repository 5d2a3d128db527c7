/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the program's entry; everything else is in rooms that tests can link.
 * Owns: nothing.
 * Threads: main.
 * May include: cli.h.
 */
#include "server/cli.h"

int main(int count, char **arguments)
{
    return cli_main(count, arguments);
}
