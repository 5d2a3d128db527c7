/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_text: what the command `kernd token` says to the server, and what it shows of the answers.
 * Pure; any thread.
 */
#ifndef KERND_API_TOKEN_TEXT_H
#define KERND_API_TOKEN_TEXT_H

#include <stddef.h>

#include "lib/base/buf.h"

struct token_text_wish {
    const char *scope;
    const char *name;  /* NULL: none */
    double lifetime_s; /* 0: never expires */
};

/* Appends the body of POST /v1/tokens. 0, or -1 at out's maximum. */
int token_text_request(struct buf *out, const struct token_text_wish *wish);

/*
 * Appends what the answer to it says: the token's text alone to out, a line about it for people to
 * about. 0, or -1: the body is no such answer, and nothing was appended.
 */
int token_text_made(const char *body, size_t size, struct buf *out, struct buf *about);

/* Appends a table of the answer to GET /v1/tokens, a line each. 0 or -1. */
int token_text_list(const char *body, size_t size, struct buf *out);

/* Appends "detail\nremediation" of a problem, or a sentence that says that there was none. */
void token_text_problem(const char *body, size_t size, struct buf *out);

#endif
