/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: show images, or save them.
 * Owns: a directory for those that nobody named a place for; it is left to the user.
 * Threads: main.
 * May include: client, server/places.h, lib/base.
 */
#include "client/picture.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "server/places.h"

#define IMAGE_MAX ((size_t)64 << 20)
#define KITTY_PIECE ((size_t)4096)

enum protocol { PROTOCOL_NONE, PROTOCOL_KITTY, PROTOCOL_ITERM };

static bool is_set_to(const char *variable, const char *value)
{
    const char *found = places_environment(variable);

    return found != NULL && text_equal(found, value);
}

/*
 * Only what names itself: others would print the image as letters. tmux and screen pass neither on
 * by default.
 */
static enum protocol find_protocol(void)
{
    if (isatty(STDOUT_FILENO) != 1 || places_environment("TMUX") != NULL ||
        places_environment("STY") != NULL) {
        return PROTOCOL_NONE;
    }
    if (places_environment("KITTY_WINDOW_ID") != NULL || is_set_to("TERM", "xterm-kitty") ||
        is_set_to("TERM", "xterm-ghostty")) {
        return PROTOCOL_KITTY;
    }
    if (is_set_to("TERM_PROGRAM", "iTerm.app") || is_set_to("TERM_PROGRAM", "WezTerm") ||
        is_set_to("LC_TERMINAL", "iTerm2")) {
        return PROTOCOL_ITERM;
    }
    return PROTOCOL_NONE;
}

/* https://sw.kovidgoyal.net/kitty/graphics-protocol: a PNG in pieces of at most 4096 bytes. */
static void show_kitty(const char *text)
{
    const size_t size = strlen(text);

    for (size_t at = 0; at < size; at += KITTY_PIECE) {
        const size_t piece = size - at < KITTY_PIECE ? size - at : KITTY_PIECE;

        (void)printf("\033_G%sm=%d;%.*s\033\\", at == 0 ? "a=T,f=100," : "", at + piece < size,
                     (int)piece, text + at);
    }
    (void)putchar('\n');
    (void)fflush(stdout);
}

/* https://iterm2.com/documentation-images.html */
static void show_iterm(const char *text)
{
    (void)printf("\033]1337;File=inline=1:%s\a\n", text);
    (void)fflush(stdout);
}

static int make_directory(struct picture *picture, struct err *err)
{
    if (picture->directory != NULL) {
        if (mkdir(picture->directory, 0777) < 0 && errno != EEXIST) {
            return err_set(err, ERR_IO, errno, "%.200s: %s", picture->directory,
                           err_errno_text(errno));
        }
        return 0;
    }
    if (picture->made == NULL) {
        const char *parent = places_environment("TMPDIR");

        picture->made = alloc_printf("%s/kernd-XXXXXX", parent == NULL ? "/tmp" : parent);
        if (mkdtemp(picture->made) == NULL) {
            return err_set(err, ERR_IO, errno, "%.200s: %s", picture->made, err_errno_text(errno));
        }
    }
    return 0;
}

static int save(struct picture *picture, const char *type, const char *text, struct err *err)
{
    const bool is_svg = text_starts_with(type, "image/svg");
    const char *kind = is_svg ? "svg" : strchr(type, '/') + 1;
    CLEANUP_BUF struct buf bytes = BUF_INIT(IMAGE_MAX);
    CLEANUP_FREE char *path = NULL;

    if (text_base64_decode(&bytes, text, strlen(text)) < 0) {
        (void)buf_append_text(&bytes, text);
    }
    if (make_directory(picture, err) < 0) {
        return -1;
    }
    path = alloc_printf(
        "%s/figure-%u.%.*s", picture->directory != NULL ? picture->directory : picture->made,
        ++picture->count, (int)strspn(kind, "abcdefghijklmnopqrstuvwxyz0123456789"), kind);
    if (fd_write_file(path, bytes.data, bytes.size, 0644) < 0) {
        return err_set(err, ERR_IO, errno, "%.200s: %s", path, err_errno_text(errno));
    }
    (void)fprintf(stderr, "kernd: image saved: %s\n", path);
    return 0;
}

void picture_done(struct picture *picture)
{
    free(picture->made);
    picture->made = NULL;
}

int picture_show(struct picture *picture, const char *type, const char *text, struct err *err)
{
    const enum protocol protocol = picture->directory != NULL ? PROTOCOL_NONE : find_protocol();

    if (protocol == PROTOCOL_KITTY && text_equal(type, "image/png")) {
        show_kitty(text);
        return 0;
    }
    if (protocol == PROTOCOL_ITERM && !text_starts_with(type, "image/svg")) {
        show_iterm(text);
        return 0;
    }
    return save(picture, type, text, err);
}
