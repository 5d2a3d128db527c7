/* SPDX-License-Identifier: Apache-2.0 */
/*
 * style: colours, only on a terminal that shows them and for a user who wants them
 * (https://no-color.org).
 */
#ifndef KERND_CLIENT_STYLE_H
#define KERND_CLIENT_STYLE_H

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_BAD, STYLE_GOOD };

/* The sequence that begins a style on this descriptor, "" where there are no colours. */
const char *style_on(int fd, enum style style);

/* Width of the terminal, 80 where that is unknown; *ret_lines its height, 24 likewise. */
unsigned style_width(int fd, unsigned *ret_lines);

#endif
