/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/cell/wire.h"

#define FEED(wire, literal) assert_int_equal(wire_feed(wire, literal, sizeof(literal) - 1), 0)

static void frames_come_out_whole_and_in_order(void **state)
{
    struct wire wire = WIRE_INIT;
    struct wire_frame frame;

    (void)state;
    FEED(&wire, "\x11\0\0\0\3\1ab\x12\0\0\0\0\x12\0\0\0\5hel");
    assert_int_equal(wire_next(&wire, &frame, NULL), 1);
    assert_int_equal(frame.type, WIRE_READY);
    assert_int_equal(frame.size, 3);
    assert_memory_equal(frame.data, "\1ab", 3);
    assert_int_equal(wire_next(&wire, &frame, NULL), 1);
    assert_int_equal(frame.type, WIRE_RESULT);
    assert_int_equal(frame.size, 0);
    assert_int_equal(wire_next(&wire, &frame, NULL), 0);
    FEED(&wire, "lo");
    assert_int_equal(wire_next(&wire, &frame, NULL), 1);
    assert_memory_equal(frame.data, "hello", 5);
    assert_int_equal(wire_next(&wire, &frame, NULL), 0);
    wire_done(&wire);
}

static void frames_may_come_byte_by_byte(void **state)
{
    static const char stream[] = "\x12\0\0\0\2ab\x13\0\0\0\1c";
    struct wire wire = WIRE_INIT;
    struct wire_frame frame;
    int frames = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(stream) - 1; i++) {
        assert_int_equal(wire_feed(&wire, stream + i, 1), 0);
        frames += wire_next(&wire, &frame, NULL);
    }
    assert_int_equal(frames, 2);
    assert_memory_equal(frame.data, "c", 1);
    wire_done(&wire);
}

static void a_type_no_driver_sends_breaks_the_protocol(void **state)
{
    static const unsigned char types[] = { 0, WIRE_CELL, WIRE_INTERRUPT, 16, 20, 'P', 255 };

    (void)state;
    for (size_t i = 0; i < sizeof(types); i++) {
        struct wire wire = WIRE_INIT;
        struct wire_frame frame;
        struct err err = ERR_INIT;

        assert_int_equal(wire_feed(&wire, &types[i], 1), 0);
        assert_int_equal(wire_next(&wire, &frame, &err), -1);
        assert_int_equal(err.code, ERR_INTERNAL);
        wire_done(&wire);
    }
}

static void a_size_above_the_maximum_is_refused_at_its_header(void **state)
{
    struct wire wire = WIRE_INIT;
    struct wire_frame frame;

    (void)state;
    FEED(&wire, "\x12\2\0\0\0");
    assert_int_equal(wire_next(&wire, &frame, NULL), 0);
    wire_done(&wire);
    FEED(&wire, "\x12\2\0\0\1");
    assert_int_equal(wire_next(&wire, &frame, NULL), -1);
    wire_done(&wire);
    FEED(&wire, "\x12\xff\xff\xff\xff");
    assert_int_equal(wire_next(&wire, &frame, NULL), -1);
    wire_done(&wire);
}

static void a_large_frame_gives_its_memory_back(void **state)
{
    struct wire wire = WIRE_INIT;
    struct wire_frame frame;
    CLEANUP_FREE char *data = calloc(1, 4096);

    (void)state;
    FEED(&wire, "\x12\0\x40\0\0");
    for (int i = 0; i < 1024; i++) {
        assert_int_equal(wire_next(&wire, &frame, NULL), 0);
        assert_int_equal(wire_feed(&wire, data, 4096), 0);
    }
    assert_int_equal(wire_next(&wire, &frame, NULL), 1);
    assert_int_equal(frame.size, 4 << 20);
    FEED(&wire, "\x12");
    assert_true(wire.input.capacity < 4096);
    wire_done(&wire);
}

static void reading_tells_bytes_from_silence_and_the_end(void **state)
{
    struct wire wire = WIRE_INIT;
    struct wire_frame frame;
    int reader = -1;
    int writer = -1;

    (void)state;
    assert_int_equal(fd_pipe(&reader, &writer), 0);
    assert_int_equal(fd_set_nonblocking(reader, true), 0);
    assert_int_equal(wire_read(&wire, reader), WIRE_READ_NOTHING);
    assert_int_equal(fd_write_full(writer, "\x12\0\0\0\1x", 6), 0);
    assert_int_equal(wire_read(&wire, reader), WIRE_READ_SOME);
    assert_int_equal(wire_next(&wire, &frame, NULL), 1);
    assert_int_equal(wire_read(&wire, reader), WIRE_READ_NOTHING);
    fd_close(writer);
    assert_int_equal(wire_read(&wire, reader), WIRE_READ_END);
    fd_close(reader);
    assert_int_equal(wire_read(&wire, reader), WIRE_READ_END);
    wire_done(&wire);
}

static int ready(const char *data, size_t size, char text[static WIRE_INTERPRETER_SIZE])
{
    struct wire_frame frame = { .type = WIRE_READY, .data = data, .size = size };

    return wire_parse_ready(&frame, text, NULL);
}

static void ready_names_the_interpreter(void **state)
{
    char text[WIRE_INTERPRETER_SIZE] = "unchanged";
    char longest[WIRE_INTERPRETER_SIZE + 1];
    struct wire_frame frame = { .type = WIRE_END, .data = "\1x", .size = 2 };

    (void)state;
    assert_int_equal(ready("", 0, text), -1);
    assert_int_equal(ready("\2python", 7, text), -1);
    assert_int_equal(ready("\1py\nthon", 8, text), -1);
    assert_int_equal(ready("\1p\xc3\xa9", 4, text), -1);
    assert_int_equal(wire_parse_ready(&frame, text, NULL), -1);
    assert_string_equal(text, "unchanged");
    assert_int_equal(ready("\1python 3.11.2", 14, text), 0);
    assert_string_equal(text, "python 3.11.2");
    assert_int_equal(ready("\1", 1, text), 0);
    assert_string_equal(text, "");
    memset(longest, 'x', sizeof(longest));
    longest[0] = 1;
    assert_int_equal(ready(longest, sizeof(longest) - 1, text), 0);
    assert_int_equal(strlen(text), WIRE_INTERPRETER_SIZE - 1);
    assert_int_equal(ready(longest, sizeof(longest), text), -1);
}

static int end(const char *data, size_t size, struct wire_end *ret_end)
{
    struct wire_frame frame = { .type = WIRE_END, .data = data, .size = size };

    return wire_parse_end(&frame, ret_end, NULL);
}

static void an_end_is_believed_only_if_it_is_well_formed(void **state)
{
    struct wire_end got = { 0 };

    (void)state;
    assert_int_equal(end("\0\0\1\2\0\0\0\3\0", 9, &got), 0);
    assert_int_equal(got.number, 258);
    assert_int_equal(got.exit_code, 3);
    assert_false(got.interrupted);
    assert_int_equal(end("\0\0\0\1\0\0\0\xff\1", 9, &got), 0);
    assert_int_equal(got.exit_code, 255);
    assert_true(got.interrupted);
    assert_int_equal(end("\0\0\0\1\0\0\1\0\0", 9, &got), -1);
    assert_int_equal(end("\0\0\0\1\xff\xff\xff\xff\0", 9, &got), -1);
    assert_int_equal(end("\0\0\0\1\0\0\0\0\2", 9, &got), -1);
    assert_int_equal(end("\0\0\0\1\0\0\0\0", 8, &got), -1);
    assert_int_equal(end("\0\0\0\1\0\0\0\0\0\0", 10, &got), -1);
    assert_int_equal(end(NULL, 0, &got), -1);
}

static void a_cell_is_encoded_field_by_field(void **state)
{
    static const char expected[] = "\1\0\0\0\x2c\2\1\0\0\4\0\0\0\0\7"
                                   "\1\0\0\0\2c7"
                                   "\2\0\0\0\3x\0y"
                                   "\4\0\0\0\6A=1\0B\0"
                                   "\5\0\0\0\3/ws";
    CLEANUP_BUF struct buf out = BUF_INIT(1000);
    char first[] = "A=1";
    char second[] = "B";
    char *const environment[] = { first, second, NULL };
    struct wire_cell cell = {
        .mode = WIRE_KERNEL,
        .live = true,
        .text_max = 1024,
        .number = 7,
        .name = "c7",
        .code = "x\0y",
        .code_size = 3,
        .environment = environment,
        .directory = "/ws",
    };

    (void)state;
    assert_int_equal(wire_put_cell(&out, &cell), 0);
    assert_int_equal(out.size, sizeof(expected) - 1);
    assert_memory_equal(out.data, expected, out.size);
}

static void empty_input_is_not_the_same_as_none(void **state)
{
    CLEANUP_BUF struct buf none = BUF_INIT(1000);
    CLEANUP_BUF struct buf empty = BUF_INIT(1000);
    struct wire_cell cell = { .mode = WIRE_KERNEL };

    (void)state;
    assert_int_equal(wire_put_cell(&none, &cell), 0);
    cell.stdin_data = "";
    assert_int_equal(wire_put_cell(&empty, &cell), 0);
    assert_int_equal(empty.size, none.size + 5);
}

static void an_interrupt_names_its_cell(void **state)
{
    CLEANUP_BUF struct buf out = BUF_INIT(9);

    (void)state;
    assert_int_equal(wire_put_interrupt(&out, 0x01020304), 0);
    assert_memory_equal(out.data, "\2\0\0\0\4\1\2\3\4", 9);
    assert_int_equal(wire_put_interrupt(&out, 1), -1);
}

static void what_a_forked_driver_hears_first(void **state)
{
    CLEANUP_BUF struct buf out = BUF_INIT(100);
    char one[] = "A=1";
    char other[] = "B=";
    char module[] = "json";
    char *const environment[] = { one, other, NULL };
    char *const preload[] = { module, NULL };

    (void)state;
    assert_int_equal(wire_put_prepare(&out, environment, preload), 0);
    assert_memory_equal(out.data, "\3\0\0\0\26\4\0\0\0\7A=1\0B=\0\6\0\0\0\5json\0", 27);
    assert_int_equal(out.size, 27);
    buf_consume(&out, out.size);
    assert_int_equal(wire_put_prepare(&out, NULL, NULL), 0);
    assert_memory_equal(out.data, "\3\0\0\0\0", 5);
    for (size_t max = 0; max < 27; max++) {
        CLEANUP_BUF struct buf small = BUF_INIT(max);

        assert_int_equal(wire_put_prepare(&small, environment, preload), -1);
    }
}

static void a_cell_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    for (size_t max = 0; max < 30; max++) {
        CLEANUP_BUF struct buf out = BUF_INIT(max);
        struct wire_cell cell = {
            .name = "name", .code = "code", .code_size = 4, .directory = "/"
        };

        assert_int_equal(wire_put_cell(&out, &cell), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_come_out_whole_and_in_order),
        cmocka_unit_test(frames_may_come_byte_by_byte),
        cmocka_unit_test(a_type_no_driver_sends_breaks_the_protocol),
        cmocka_unit_test(a_size_above_the_maximum_is_refused_at_its_header),
        cmocka_unit_test(a_large_frame_gives_its_memory_back),
        cmocka_unit_test(reading_tells_bytes_from_silence_and_the_end),
        cmocka_unit_test(ready_names_the_interpreter),
        cmocka_unit_test(an_end_is_believed_only_if_it_is_well_formed),
        cmocka_unit_test(a_cell_is_encoded_field_by_field),
        cmocka_unit_test(empty_input_is_not_the_same_as_none),
        cmocka_unit_test(an_interrupt_names_its_cell),
        cmocka_unit_test(what_a_forked_driver_hears_first),
        cmocka_unit_test(a_cell_that_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
