/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer: the answer of the server on a connection, while it comes: only what this server sends
 * (RFC 9112: Content-Length or chunks; a connection for each exchange). For one thread.
 */
#ifndef KERND_CLIENT_ANSWER_H
#define KERND_CLIENT_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum answer_part {
    ANSWER_SIZED,      /* left bytes of body */
    ANSWER_CHUNK_SIZE, /* a line with the size of a chunk */
    ANSWER_CHUNK,      /* left bytes of it */
    ANSWER_CHUNK_END,  /* the line break behind it */
    ANSWER_TRAILER,    /* lines up to an empty one */
    ANSWER_UNSIZED,    /* up to the end of the connection */
    ANSWER_ENDED,
};

struct answer {
    int fd; /* owned */
    int status;
    struct buf head; /* lines that end in LF */
    struct buf in;   /* came, not decoded yet */
    enum answer_part part;
    uint64_t left;
    uint64_t length; /* of the body; UINT64_MAX: not told */
};

/* Takes the connection over and waits for the head. 0, or -1 with err. answer_close in any case. */
int answer_open(struct answer *answer, int fd, struct err *err);
void answer_close(struct answer *answer);

/* The value of a header field, "" where there is none; into a buffer of the caller. */
const char *answer_header(const struct answer *answer, const char *name, char *out, size_t size);

/*
 * Appends the next bytes of the body, waiting for the connection at most once. 1: there may be
 * more; 0: that was all; -1 with err: it was cut short.
 */
int answer_take(struct answer *answer, struct buf *out, struct err *err);

/* Would answer_take give something without looking at the connection? */
bool answer_is_ready(const struct answer *answer);

#endif
