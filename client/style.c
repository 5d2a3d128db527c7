/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: decide on colours.
 * Owns: nothing.
 * Threads: main.
 * May include: client, server/places.h, lib/base.
 */
#include "client/style.h"

#include <stddef.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/base/text.h"
#include "server/places.h"

#define WIDTH 80
#define LINES 24

const char *style_on(int fd, enum style style)
{
    static const char *const codes[] = { [STYLE_PLAIN] = "\033[0m",
                                         [STYLE_BOLD] = "\033[1m",
                                         [STYLE_DIM] = "\033[2m",
                                         [STYLE_BAD] = "\033[1;31m",
                                         [STYLE_GOOD] = "\033[32m" };
    const char *terminal = places_environment("TERM");

    if (isatty(fd) != 1 || places_environment("NO_COLOR") != NULL || terminal == NULL ||
        text_equal(terminal, "dumb")) {
        return "";
    }
    return codes[style];
}

unsigned style_width(int fd, unsigned *ret_lines)
{
    struct winsize size = { .ws_col = 0 };

    (void)ioctl(fd, TIOCGWINSZ, &size);
    if (ret_lines != NULL) {
        *ret_lines = size.ws_row == 0 ? LINES : size.ws_row;
    }
    return size.ws_col == 0 ? WIDTH : size.ws_col;
}
