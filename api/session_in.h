/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_in: the bodies of requests about sessions. Pure; any thread.
 *
 * All functions: 0, or -1 BAD_JSON, UNKNOWN_FIELD, BAD_VALUE, NOT_SUPPORTED_HERE; nothing is left
 * to be freed then.
 */
#ifndef KERND_API_SESSION_IN_H
#define KERND_API_SESSION_IN_H

#include <json.h>
#include <stddef.h>

#include "api/run_in.h"
#include "lib/sandbox/options.h"

#define SESSION_IN_SETUP_MAX 65536 /* bytes of a setup command */

/* A body may be empty. *ret_id: the caller's own id, to be freed, or NULL. options_done. */
int session_in_create(const char *body, size_t size, const struct run_in_base *base, char **ret_id,
                      struct options *ret_options, struct err *err);

/* What the options (base.session) become. A member that is null is the server's default again. */
int session_in_patch(const char *body, size_t size, const struct run_in_base *base,
                     struct options *ret_options, struct err *err);

/* {"id"}: may be empty. */
int session_in_fork(const char *body, size_t size, char **ret_id, struct err *err);

/* {"command"}. */
int session_in_setup(const char *body, size_t size, char **ret_command, struct err *err);

struct session_in_move {
    char *from;
    char *to;
    bool overwrite;
};
void session_in_move_done(struct session_in_move *move);
int session_in_move(const char *body, size_t size, struct session_in_move *ret_move,
                    struct err *err);

/* The text of a setup step, for a row of another table; a fresh string. 0, or -1 BAD_VALUE. */
int session_in_read_line(struct json_object *value, const char *pointer, char **ret_text,
                         struct err *err);

#endif
