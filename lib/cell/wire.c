/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: cut a driver's byte stream into checked frames, and build the frames for it.
 * Owns: the bytes that are not yet a whole frame.
 * Threads: one at a time for one decoder.
 * May include: base.
 */
#include "lib/cell/wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"

#define READ_SIZE ((size_t)32 * 1024)
/* A decoder that held a large frame gives the memory back. */
#define KEEP_CAPACITY ((size_t)256 * 1024)

enum cell_flag { CELL_FLAG_LIVE = 1 };
enum end_flag { END_FLAG_INTERRUPTED = 1 };
enum field {
    FIELD_NAME = 1,
    FIELD_CODE,
    FIELD_STDIN,
    FIELD_ENVIRONMENT,
    FIELD_DIRECTORY,
    FIELD_PRELOAD
};

static uint32_t get_u32(const char *data)
{
    const unsigned char *bytes = (const unsigned char *)data;

    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

void wire_done(struct wire *wire)
{
    buf_done(&wire->input);
    wire->taken = 0;
}

/* Drops what was given out; frames pointing there end here. */
static void compact(struct wire *wire)
{
    buf_consume(&wire->input, wire->taken);
    wire->taken = 0;
    if (wire->input.size == 0 && wire->input.capacity > KEEP_CAPACITY) {
        buf_done(&wire->input);
    }
}

enum wire_read wire_read(struct wire *wire, int fd)
{
    char *room = NULL;
    ssize_t got = 0;

    compact(wire);
    room = buf_reserve(&wire->input, READ_SIZE);
    if (room == NULL) {
        return WIRE_READ_END;
    }
    do {
        got = read(fd, room, READ_SIZE);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        buf_commit(&wire->input, (size_t)got);
        return WIRE_READ_SOME;
    }
    return got < 0 && errno == EAGAIN ? WIRE_READ_NOTHING : WIRE_READ_END;
}

int wire_feed(struct wire *wire, const void *data, size_t size)
{
    compact(wire);
    return buf_append(&wire->input, data, size);
}

int wire_next(struct wire *wire, struct wire_frame *ret_frame, struct err *err)
{
    const char *at = wire->input.data + wire->taken;
    size_t have = wire->input.size - wire->taken;
    unsigned int type = 0;
    uint32_t size = 0;

    if (have == 0) {
        return 0;
    }
    type = (unsigned char)at[0];
    if (type != WIRE_READY && type != WIRE_RESULT && type != WIRE_END) {
        return err_set(err, ERR_INTERNAL, 0, "protocol: the driver sent a frame of type %u", type);
    }
    if (have < WIRE_HEADER_SIZE) {
        return 0;
    }
    size = get_u32(at + 1);
    if (size > WIRE_FRAME_MAX) {
        return err_set(err, ERR_INTERNAL, 0, "protocol: the driver announced %u bytes", size);
    }
    if (have - WIRE_HEADER_SIZE < size) {
        return 0;
    }
    ret_frame->type = (enum wire_type)type;
    ret_frame->data = at + WIRE_HEADER_SIZE;
    ret_frame->size = size;
    wire->taken += WIRE_HEADER_SIZE + size;
    return 1;
}

int wire_send(int fd, const struct buf *frame, int64_t deadline)
{
    size_t sent = 0;

    while (sent < frame->size) {
        struct pollfd room = { .fd = fd, .events = POLLOUT };
        ssize_t put = send(fd, frame->data + sent, frame->size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (put > 0) {
            sent += (size_t)put;
        } else if (put < 0 && errno != EAGAIN && errno != EINTR) {
            return -1;
        } else if (poll(&room, 1, clock_poll_ms(deadline, -1)) == 0 && clock_passed(deadline)) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
    return 0;
}

int wire_parse_ready(const struct wire_frame *frame,
                     char ret_interpreter[static WIRE_INTERPRETER_SIZE], struct err *err)
{
    bool good = frame->type == WIRE_READY && frame->size >= 1 &&
                frame->size <= WIRE_INTERPRETER_SIZE && frame->data[0] == WIRE_VERSION;

    for (size_t i = 1; good && i < frame->size; i++) {
        good = frame->data[i] >= ' ' && frame->data[i] <= '~';
    }
    if (!good) {
        return err_set(err, ERR_INTERNAL, 0, "protocol: the driver did not say that it is ready");
    }
    memcpy(ret_interpreter, frame->data + 1, frame->size - 1);
    ret_interpreter[frame->size - 1] = '\0';
    return 0;
}

int wire_parse_end(const struct wire_frame *frame, struct wire_end *ret_end, struct err *err)
{
    uint32_t exit_code = 0;
    unsigned int flags = 0;

    if (frame->type != WIRE_END || frame->size != 9) {
        return err_set(err, ERR_INTERNAL, 0, "protocol: a malformed end of a cell");
    }
    exit_code = get_u32(frame->data + 4);
    flags = (unsigned char)frame->data[8];
    if (exit_code > 255 || (flags & ~(unsigned int)END_FLAG_INTERRUPTED) != 0) {
        return err_set(err, ERR_INTERNAL, 0, "protocol: a malformed end of a cell");
    }
    ret_end->number = get_u32(frame->data);
    ret_end->exit_code = (int32_t)exit_code;
    ret_end->interrupted = (flags & END_FLAG_INTERRUPTED) != 0;
    return 0;
}

static int put_u8(struct buf *out, unsigned int value)
{
    char byte = (char)value;

    return buf_append(out, &byte, 1);
}

static int put_u32(struct buf *out, uint32_t value)
{
    const unsigned char bytes[4] = { (unsigned char)(value >> 24), (unsigned char)(value >> 16),
                                     (unsigned char)(value >> 8), (unsigned char)value };

    return buf_append(out, bytes, sizeof(bytes));
}

static int put_field(struct buf *out, enum field tag, const void *data, size_t size)
{
    if (data == NULL) {
        return 0;
    }
    if (size > UINT32_MAX || put_u8(out, tag) < 0 || put_u32(out, (uint32_t)size) < 0) {
        return -1;
    }
    return buf_append(out, data, size);
}

static int put_text_field(struct buf *out, enum field tag, const char *text)
{
    return put_field(out, tag, text, text == NULL ? 0 : strlen(text));
}

/* Each with its NUL byte. */
static int put_texts(struct buf *out, enum field tag, char *const *texts)
{
    size_t size = 0;

    if (texts == NULL || texts[0] == NULL) {
        return 0;
    }
    for (size_t i = 0; texts[i] != NULL; i++) {
        size += strlen(texts[i]) + 1;
    }
    if (size > UINT32_MAX || put_u8(out, tag) < 0 || put_u32(out, (uint32_t)size) < 0) {
        return -1;
    }
    for (size_t i = 0; texts[i] != NULL; i++) {
        if (buf_append(out, texts[i], strlen(texts[i]) + 1) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Fills in the size of the frame that begins at offset start. */
static int close_frame(struct buf *out, size_t start)
{
    size_t size = out->size - start - WIRE_HEADER_SIZE;

    if (size > UINT32_MAX) {
        return -1;
    }
    for (size_t i = 0; i < 4; i++) {
        out->data[start + 1 + i] = (char)(unsigned char)(size >> (24 - 8 * i));
    }
    return 0;
}

int wire_put_cell(struct buf *out, const struct wire_cell *cell)
{
    size_t start = out->size;

    if (put_u8(out, WIRE_CELL) < 0 || put_u32(out, 0) < 0 || put_u8(out, cell->mode) < 0 ||
        put_u8(out, cell->live ? CELL_FLAG_LIVE : 0) < 0 || put_u32(out, cell->text_max) < 0 ||
        put_u32(out, cell->number) < 0 || put_text_field(out, FIELD_NAME, cell->name) < 0 ||
        put_field(out, FIELD_CODE, cell->code, cell->code_size) < 0 ||
        put_field(out, FIELD_STDIN, cell->stdin_data, cell->stdin_size) < 0 ||
        put_texts(out, FIELD_ENVIRONMENT, cell->environment) < 0 ||
        put_text_field(out, FIELD_DIRECTORY, cell->directory) < 0) {
        return -1;
    }
    return close_frame(out, start);
}

int wire_put_interrupt(struct buf *out, uint32_t number)
{
    if (put_u8(out, WIRE_INTERRUPT) < 0 || put_u32(out, 4) < 0) {
        return -1;
    }
    return put_u32(out, number);
}

int wire_put_prepare(struct buf *out, char *const *environment, char *const *preload)
{
    size_t start = out->size;

    if (put_u8(out, WIRE_PREPARE) < 0 || put_u32(out, 0) < 0 ||
        put_texts(out, FIELD_ENVIRONMENT, environment) < 0 ||
        put_texts(out, FIELD_PRELOAD, preload) < 0) {
        return -1;
    }
    return close_frame(out, start);
}
