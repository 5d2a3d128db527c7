/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/once.h"
#include "api/ticket.h"
#include "lib/base/text.h"

static void keys_are_printable(void **state)
{
    static const char *const bad[] = { "", "\"\"", "a\tb", "a\x7f", "\xc3\xa9", "a\nb" };
    char longest[258];
    char key[256];
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(once_parse_key(bad[i], key, &err), -1);
        assert_int_equal(err.code, ERR_BAD_HEADER);
    }
    memset(longest, 'x', sizeof(longest));
    longest[256] = '\0';
    assert_int_equal(once_parse_key(longest, key, &err), -1);
    longest[255] = '\0';
    assert_int_equal(once_parse_key(longest, key, &err), 0);
    assert_int_equal(strlen(key), 255);
    assert_int_equal(once_parse_key("\"8e03978e-40d5\"", key, &err), 0);
    assert_string_equal(key, "8e03978e-40d5");
    assert_int_equal(once_parse_key("\"", key, &err), 0);
    assert_string_equal(key, "\"");
}

static const char *header_of(const struct api_reply *reply, const char *name)
{
    for (size_t i = 0; i + 1 < reply->headers.count; i += 2) {
        if (text_equal(reply->headers.items[i], name)) {
            return reply->headers.items[i + 1];
        }
    }
    return NULL;
}

static void answers_come_back_as_they_were(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT(1 << 20);
    struct api_reply reply;
    struct api_reply again;

    (void)state;
    api_reply_init(&reply);
    api_reply_init(&again);
    api_reply_header(&reply, "X-Other", "not kept");
    api_reply_header(&reply, "Location", "/v1/sessions/a");
    api_reply_header(&reply, "Content-Type", "application/json");
    (void)buf_append_text(&reply.body, "{\"a\":\n1}");
    once_pack(&reply, &text);
    (void)buf_append(&text, "", 1);
    once_unpack(text.data, &again);
    assert_string_equal(header_of(&again, "Location"), "/v1/sessions/a");
    assert_string_equal(header_of(&again, "Content-Type"), "application/json");
    assert_int_equal(again.headers.count, 4);
    assert_int_equal(again.body.size, reply.body.size);
    assert_memory_equal(again.body.data, reply.body.data, reply.body.size);
    api_reply_done(&again);
    api_reply_done(&reply);
}

static void an_answer_may_be_empty(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT(1 << 20);
    struct api_reply reply;

    (void)state;
    api_reply_init(&reply);
    once_pack(&reply, &text);
    (void)buf_append(&text, "", 1);
    once_unpack(text.data, &reply);
    once_unpack("", &reply);
    assert_int_equal(reply.headers.count, 0);
    assert_int_equal(reply.body.size, 0);
    api_reply_done(&reply);
}

static void fingerprints_tell_requests_apart(void **state)
{
    struct api_call calls[] = {
        { .method = "POST", .target = "/v1/run", .query = "", .body = "ab", .body_size = 2 },
        { .method = "POST", .target = "/v1/runa", .query = "", .body = "b", .body_size = 1 },
        { .method = "POST", .target = "/v1/run", .query = "a", .body = "b", .body_size = 1 },
        { .method = "PUT", .target = "/v1/run", .query = "", .body = "ab", .body_size = 2 },
        { .method = "POST", .target = "/v1/run", .query = "", .body = "ab ", .body_size = 3 },
    };
    char first[HASH_HEX_SIZE];
    char other[HASH_HEX_SIZE];

    (void)state;
    once_fingerprint(&calls[0], first);
    once_fingerprint(&calls[0], other);
    assert_string_equal(first, other);
    for (size_t i = 1; i < sizeof(calls) / sizeof(calls[0]); i++) {
        once_fingerprint(&calls[i], other);
        assert_string_not_equal(first, other);
    }
}

/* ---- the form of an answer ---- */

static int read_ticket(const char *accept, const char *prefer, struct ticket *ret_ticket)
{
    const struct api_header headers[] = { { "Accept", accept }, { "Prefer", prefer } };
    const struct api_call call = { .headers = headers, .header_count = 2 };

    return ticket_read(&call, ret_ticket, NULL);
}

static void forms_follow_accept_and_prefer(void **state)
{
    struct ticket ticket;

    (void)state;
    assert_int_equal(read_ticket("*/*", NULL, &ticket), 0);
    assert_int_equal(ticket.form, TICKET_JSON);
    assert_false(ticket.async);
    assert_int_equal(read_ticket("text/event-stream", NULL, &ticket), 0);
    assert_int_equal(ticket.form, TICKET_SSE);
    assert_int_equal(read_ticket("application/x-ndjson, */*;q=0.1", NULL, &ticket), 0);
    assert_int_equal(ticket.form, TICKET_NDJSON);
    assert_int_equal(read_ticket("text/html", NULL, &ticket), -1);
    assert_int_equal(read_ticket("*/*", "respond-async", &ticket), 0);
    assert_true(ticket.async);
    assert_true(ticket.wait_s <= 0);
    assert_int_equal(read_ticket("*/*", "respond-async, wait=9999", &ticket), 0);
    assert_true(ticket.wait_s >= 60 && ticket.wait_s <= 60);
    assert_int_equal(read_ticket("application/x-ndjson", "respond-async", &ticket), 0);
    assert_int_equal(ticket.form, TICKET_NDJSON);
    assert_false(ticket.async);
    /* Whoever wants both rather streamed, but takes JSON, gets what it prefers. */
    assert_int_equal(
        read_ticket("application/x-ndjson, application/json;q=0.5", "respond-async", &ticket), 0);
    assert_int_equal(ticket.form, TICKET_JSON);
    assert_true(ticket.async);
}

static void who_leaves_ends_its_own(void **state)
{
    static const struct api_header key[] = { { "Idempotency-Key", "k" } };
    const struct api_call plain = { .header_count = 0 };
    const struct api_call keyed = { .headers = key, .header_count = 1 };
    const struct ticket waits = { .form = TICKET_JSON };
    const struct ticket async = { .form = TICKET_JSON, .async = true };
    struct run_request *request = run_request_new();
    char id[] = "mine";

    (void)state;
    assert_true(ticket_cancels(&plain, &waits, request));
    assert_false(ticket_cancels(&plain, &async, request));
    assert_false(ticket_cancels(&keyed, &waits, request));
    request->id = id;
    assert_false(ticket_cancels(&plain, &waits, request));
    request->on_disconnect = RUN_DISCONNECT_CANCEL;
    assert_true(ticket_cancels(&keyed, &waits, request));
    request->id = NULL;
    request->on_disconnect = RUN_DISCONNECT_CONTINUE;
    assert_false(ticket_cancels(&plain, &waits, request));
    request->on_disconnect = RUN_DISCONNECT_DEFAULT;
    request->detach = true;
    assert_false(ticket_cancels(&plain, &waits, request));
    run_request_free(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_printable),
        cmocka_unit_test(answers_come_back_as_they_were),
        cmocka_unit_test(an_answer_may_be_empty),
        cmocka_unit_test(fingerprints_tell_requests_apart),
        cmocka_unit_test(forms_follow_accept_and_prefer),
        cmocka_unit_test(who_leaves_ends_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
