/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire: frames between kernd and a driver program (driver.py, driver.js, driver.sh) in a box.
 *
 *     u8 type | u32 size | payload            all integers big-endian
 *
 *     kernd                                       driver
 *                                            <-   READY   u8 version, text: the interpreter
 *     CELL       u8 mode, u8 flags, u32 largest  ->
 *                text/plain, u32 number, fields
 *                (u8 tag, u32 size, bytes)
 *                                            <-   RESULT  a bundle (bundle.h), as it happens
 *     INTERRUPT  u32 number of the cell      ->           beside a SIGINT through kernd-init
 *     PREPARE    fields                      ->           to a driver that was forked and waits for
 *                                                         it (box_spec.prepares), before READY
 *                                            <-   END     u32 number, i32 exit code, u8 flags
 *
 * In mode ONCE there is one cell and no END: the driver becomes the program and its exit is the
 * end. Everything a driver says is hostile: code from outside runs in its process.
 */
#ifndef KERND_CELL_WIRE_H
#define KERND_CELL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

#define WIRE_VERSION 1
#define WIRE_HEADER_SIZE ((size_t)5)
#define WIRE_FRAME_MAX ((size_t)32 * 1024 * 1024) /* payload of one frame of a driver */

enum wire_type {
    WIRE_CELL = 1,
    WIRE_INTERRUPT = 2,
    WIRE_PREPARE = 3,
    WIRE_READY = 17,
    WIRE_RESULT = 18,
    WIRE_END = 19,
};

enum wire_mode { WIRE_ONCE = 1, WIRE_KERNEL = 2 };

/* A frame of a driver; data points into the decoder and holds until its next call. */
struct wire_frame {
    enum wire_type type;
    const char *data;
    size_t size;
};

/* Takes bytes as they come, gives whole frames. No thread safety. */
struct wire {
    struct buf input;
    size_t taken; /* bytes of input already given out as frames */
};

#define WIRE_INIT ((struct wire){ .input = BUF_INIT(WIRE_HEADER_SIZE + WIRE_FRAME_MAX + 65536) })

void wire_done(struct wire *wire);

/* What a read brought: some bytes, nothing yet, or the end of the connection (or its failure). */
enum wire_read { WIRE_READ_SOME, WIRE_READ_NOTHING, WIRE_READ_END };

/* Reads once from a non-blocking fd into the decoder. */
enum wire_read wire_read(struct wire *wire, int fd);

/* Gives bytes to the decoder. 0, or -1 when the driver sent more than any frame may hold. */
int wire_feed(struct wire *wire, const void *data, size_t size);

/*
 * The next whole frame: 1 and the frame, 0 when more bytes are needed, -1 (err INTERNAL) when the
 * driver broke the protocol: a type that drivers do not send, or a size above WIRE_FRAME_MAX.
 * After -1 the decoder is of no further use.
 */
int wire_next(struct wire *wire, struct wire_frame *ret_frame, struct err *err);

#define WIRE_INTERPRETER_SIZE 64

/* Text of a READY frame, printable ASCII. 0, or -1 (err INTERNAL): malformed or another version. */
int wire_parse_ready(const struct wire_frame *frame,
                     char ret_interpreter[static WIRE_INTERPRETER_SIZE], struct err *err);

struct wire_end {
    uint32_t number; /* of the cell */
    int32_t exit_code;
    bool interrupted; /* the cell ended by an interrupt that it did not handle */
};

/* 0, or -1 (err INTERNAL): malformed, unknown flags, an exit code outside 0 to 255. */
int wire_parse_end(const struct wire_frame *frame, struct wire_end *ret_end, struct err *err);

/* A CELL frame. Texts may be NULL; borrowed. */
struct wire_cell {
    enum wire_mode mode;
    bool live;         /* what is printed leaves the process at each line end */
    uint32_t text_max; /* bytes of a text/plain above which the driver shortens it */
    uint32_t number;
    const char *name; /* file name of the code; in mode ONCE the file to run */
    const char *code; /* mode KERNEL */
    size_t code_size;
    const char *stdin_data; /* mode KERNEL: what the cell reads from standard input */
    size_t stdin_size;
    char *const *environment; /* NULL-terminated "K=V" to set before the cell */
    const char *directory;    /* working directory to change to */
};

/*
 * Writes a frame to a non-blocking socket, waiting for room until the deadline (clock.h). 0, or -1
 * with errno: ETIMEDOUT, or what send(2) says (EPIPE: the driver is gone; no SIGPIPE). What was
 * sent of a frame by then can't be taken back.
 */
int wire_send(int fd, const struct buf *frame, int64_t deadline);

/* Appends the frame to out. 0, or -1 at out's maximum. */
int wire_put_cell(struct buf *out, const struct wire_cell *cell);
int wire_put_interrupt(struct buf *out, uint32_t number);
/* NULL-terminated lists, "K=V" to set and names of modules to import; either may be NULL. */
int wire_put_prepare(struct buf *out, char *const *environment, char *const *preload);

#endif
