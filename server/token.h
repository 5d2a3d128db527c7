/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token: the secret that clients on TCP show. It lives in a file of mode 0600 and is never logged.
 */
#ifndef KERND_SERVER_TOKEN_H
#define KERND_SERVER_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "api/api.h"
#include "lib/base/err.h"
#include "server/http_guard.h"

#define TOKEN_LENGTH_MIN 32
#define TOKEN_LENGTH_MAX 256

struct token {
    char text[TOKEN_LENGTH_MAX + 1];
    size_t length;
};

/*
 * Reads the token file, or makes it with 32 random bytes in hex. An existing file must be a regular
 * file of this user, closed to others, with one line of 32 to 256 characters of [A-Za-z0-9._~+/=-].
 * 0, or -1 with err. Main thread.
 */
int token_load(const char *path, struct token *ret_token, struct err *err);

/*
 * What the request's head shows: "Authorization: Bearer ..." or "X-API-Key: ..." (one of them,
 * once): the main token, or one that api knows (NULL: none is known). A token in the query is
 * refused whatever else is there: URLs end up in logs and histories. A peer that is trusted by
 * other means (a Unix socket's peer of the same user) may show none, but not a wrong one; one that
 * shows a narrow token is narrow. 0 and who it is (caller 0: nobody in particular, by the main
 * token or by trust), or -1 UNAUTHORIZED. Any thread; compares in constant time.
 */
int token_check(const struct token *token, struct api *api, const struct http_guard_head *head,
                bool trusted_peer, struct api_identity *ret_identity, struct err *err);

#endif
