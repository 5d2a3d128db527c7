/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events as lines and as blocks: each is one strict JSON object whatever the program wrote.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/event_out.h"
#include "api/json_in.h"

static const struct event_out as_lines = { .id = "exe_1" };
static const struct event_out as_blocks = { .id = "exe_1", .sse = true };

static const char *text_of(struct json_object *object, const char *name)
{
    return json_object_get_string(json_object_object_get(object, name));
}

static struct event make(enum event_kind kind, const char *data, size_t size)
{
    return (struct event){ .kind = kind, .seq = 7, .time_ms = 1000, .data = data, .size = size };
}

/* The object of one line. */
static struct json_object *line_of(const struct event_out *how, const struct event *event)
{
    CLEANUP_BUF struct buf out = BUF_INIT(1 << 20);
    struct err err = ERR_INIT;
    struct json_object *object = NULL;

    assert_int_equal(event_out_write(&out, how, event), 0);
    assert_int_equal(out.data[out.size - 1], '\n');
    assert_null(memchr(out.data, '\n', out.size - 1));
    object = json_in_parse(out.data, out.size, &err);
    if (object == NULL) {
        fail_msg("%s", err.msg);
    }
    assert_string_equal(text_of(object, "seq"), "7");
    assert_string_equal(text_of(object, "time"), "1970-01-01T00:00:01.000Z");
    return object;
}

static void output_is_text_whatever_it_is(void **state)
{
    static const char bytes[] = "a\n\r\0\xff\"\\\xe2\x98\x83";
    struct event event = make(EVENT_STDOUT, bytes, sizeof(bytes) - 1);
    struct json_object *object = NULL;

    (void)state;
    event.value = 42;
    object = line_of(&as_lines, &event);
    assert_string_equal(text_of(object, "type"), "stdout");
    assert_string_equal(text_of(object, "offset"), "42");
    assert_int_equal(json_object_get_string_len(json_object_object_get(object, "data")), 12);
    assert_memory_equal(text_of(object, "data"), "a\n\r\0\xEF\xBF\xBD\"\\\xe2\x98\x83", 12);
    assert_null(json_object_object_get(object, "encoding"));
    (void)json_object_put(object);
    event.kind = EVENT_STDERR;
    object = line_of(&(struct event_out){ .id = "exe_1", .base64 = true }, &event);
    assert_string_equal(text_of(object, "type"), "stderr");
    assert_string_equal(text_of(object, "data"), "YQoNAP8iXOKYgw==");
    assert_string_equal(text_of(object, "encoding"), "base64");
    (void)json_object_put(object);
}

static void each_type_has_its_members(void **state)
{
    static const char bundle[] = "\x01\x00\x01\x00\x0atext/plain\x00\x00\x00\x02hi";
    struct event event = make(EVENT_QUEUED, NULL, 0);
    struct json_object *object = NULL;

    (void)state;
    event.value = 3;
    object = line_of(&as_lines, &event);
    assert_string_equal(text_of(object, "id"), "exe_1");
    assert_string_equal(text_of(object, "position"), "3");
    (void)json_object_put(object);
    event = make(EVENT_RESULT, bundle, sizeof(bundle) - 1);
    object = line_of(&as_lines, &event);
    assert_string_equal(text_of(json_object_object_get(object, "data"), "text/plain"), "hi");
    assert_string_equal(text_of(object, "isMain"), "true");
    (void)json_object_put(object);
    event = make(EVENT_FILE, "1a\xffz", 4);
    event.value = 9;
    object = line_of(&as_lines, &event);
    assert_string_equal(text_of(object, "path"), "a\xEF\xBF\xBDz");
    assert_string_equal(text_of(object, "pathPercent"), "a%FFz");
    assert_string_equal(text_of(object, "change"), "modified");
    assert_string_equal(text_of(object, "size"), "9");
    (void)json_object_put(object);
    event = make(EVENT_TRUNCATED, NULL, 0);
    event.value = 2;
    object = line_of(&as_lines, &event);
    assert_string_equal(text_of(object, "stream"), "stderr");
    (void)json_object_put(object);
}

/* What is in the log is from this server or an older one: nothing of it may break the JSON. */
static void damaged_data_is_left_out(void **state)
{
    static const enum event_kind kinds[] = { EVENT_RESULT, EVENT_FILE, EVENT_EXIT, EVENT_ERROR };

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct event empty = make(kinds[i], "", 0);
        struct event odd = make(kinds[i], "\xff\xff\xff\xff", 4);

        (void)json_object_put(line_of(&as_lines, &empty));
        (void)json_object_put(line_of(&as_lines, &odd));
    }
}

static void the_last_event_has_the_members_of_its_text(void **state)
{
    static const char data[] = "\0\0\0\x0e{\"exitCode\":0}{\"document\":1}";
    struct event event = make(EVENT_EXIT, data, sizeof(data) - 1);
    struct json_object *object = line_of(&as_lines, &event);

    (void)state;
    assert_string_equal(text_of(object, "type"), "exit");
    assert_string_equal(text_of(object, "exitCode"), "0");
    assert_int_equal(json_object_object_length(object), 4);
    assert_true(event_out_is_last(&event));
    event.kind = EVENT_TRUNCATED;
    assert_false(event_out_is_last(&event));
    (void)json_object_put(object);
}

static void blocks_have_an_id_and_a_type(void **state)
{
    CLEANUP_BUF struct buf out = BUF_INIT(1 << 20);
    struct event event = make(EVENT_STDOUT, "a\n\nb", 4);

    (void)state;
    assert_int_equal(event_out_write(&out, &as_blocks, &event), 0);
    assert_int_equal(event_out_ping(&out, &as_blocks), 0);
    assert_int_equal(buf_append(&out, "", 1), 0);
    assert_string_equal(out.data, "id: 7\nevent: stdout\ndata: {\"type\":\"stdout\",\"seq\":7,"
                                  "\"time\":\"1970-01-01T00:00:01.000Z\",\"data\":\"a\\n\\nb\","
                                  "\"offset\":0}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n");
}

static void what_is_lost_is_a_problem(void **state)
{
    CLEANUP_BUF struct buf out = BUF_INIT(1 << 20);
    struct json_object *object = NULL;

    (void)state;
    assert_int_equal(event_out_lost(&out, &as_lines, 12), 0);
    object = json_in_parse(out.data, out.size, NULL);
    assert_string_equal(text_of(object, "type"), "error");
    assert_string_equal(text_of(object, "seq"), "12");
    assert_string_equal(text_of(object, "code"), "lost");
    assert_string_equal(text_of(object, "status"), "500");
    (void)json_object_put(object);
}

static void too_much_is_told(void **state)
{
    CLEANUP_BUF struct buf out = BUF_INIT(64);
    struct event event = make(EVENT_STDOUT, "0123456789", 10);

    (void)state;
    assert_int_equal(event_out_write(&out, &as_lines, &event), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_is_text_whatever_it_is),
        cmocka_unit_test(each_type_has_its_members),
        cmocka_unit_test(damaged_data_is_left_out),
        cmocka_unit_test(the_last_event_has_the_members_of_its_text),
        cmocka_unit_test(blocks_have_an_id_and_a_type),
        cmocka_unit_test(what_is_lost_is_a_problem),
        cmocka_unit_test(too_much_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
