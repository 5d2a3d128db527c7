/* SPDX-License-Identifier: Apache-2.0 */
/*
 * editor: lines that a user types, with editing, history and completion by libedit where that is
 * installed, else plain. libedit is loaded when it is needed, so that nothing else of kernd pays
 * for it. For the main thread; one at a time.
 */
#ifndef KERND_CLIENT_EDITOR_H
#define KERND_CLIENT_EDITOR_H

#include <stdbool.h>

#include "lib/base/strv.h"

struct editor;

/* Adds to out what the word at the end of a line may become, the word being the start of each. */
typedef void editor_complete(void *context, const char *line, struct strv *out);

/*
 * history: a file, made with mode 0600; NULL: none is kept. complete may be NULL. Where standard
 * input is no terminal, lines are read from it without a prompt.
 */
struct editor *editor_new(const char *history, editor_complete *complete, void *context);
void editor_free(struct editor *editor);

enum editor_end { EDITOR_LINE, EDITOR_INTERRUPTED, EDITOR_ENDED };

/* *ret_line is a fresh text without its line break, of EDITOR_LINE alone. */
enum editor_end editor_read(struct editor *editor, const char *prompt, char **ret_line);

/* Keeps a text in the history. */
void editor_remember(struct editor *editor, const char *text);

#endif
