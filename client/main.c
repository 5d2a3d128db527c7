/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the program's entry; everything else is in rooms that tests can link.
 * Owns: nothing.
 * Threads: main.
 * May include: commands.h.
 */
#include "client/commands.h"

int main(int count, char **arguments)
{
    return commands_main(count, arguments);
}
