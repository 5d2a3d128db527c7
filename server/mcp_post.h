/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_post: one POST of a bridge, from a line to the lines of its reply, without blocking. For one
 * thread.
 */
#ifndef KERND_SERVER_MCP_POST_H
#define KERND_SERVER_MCP_POST_H

#include <stdbool.h>
#include <stddef.h>

#include "api/mcp_stdio.h"
#include "lib/base/buf.h"

struct mcp_post {
    int fd;         /* connected; -1: this one is free */
    char *id;       /* of the request, NULL: nobody waits */
    struct buf out; /* request, from sent on */
    size_t sent;
    struct buf in; /* what came and is not looked at yet */
    bool head_done;
    bool stream;   /* the reply is an event stream */
    bool answered; /* the response was passed on */
    int status;
};

/* Takes the descriptor and the id out of the line over. headers: further ones, lines with CRLF. */
void mcp_post_begin(struct mcp_post *post, int fd, const char *headers, struct mcp_stdio_line *line,
                    const struct buf *body);

/* The events to poll for. */
short mcp_post_events(const struct mcp_post *post);

/*
 * Sends and receives what it can; messages of the reply go to lines, each with a line break. False:
 * it has ended, and is free again.
 */
bool mcp_post_step(struct mcp_post *post, struct buf *lines);

/* Gives it up. */
void mcp_post_drop(struct mcp_post *post);

#endif
