/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stored form of environments: it comes back whole, and its id tells any two contents apart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/sandbox/environment_spec.h"

static void fill(struct environment_spec *spec)
{
    *spec = (struct environment_spec){ .engine = alloc_text("bubblewrap"),
                                       .python = alloc_text("3.11.2"),
                                       .setup = alloc_text("pip install x\necho \"y\"\n") };
    strv_add_all(&spec->preload, "json", "a.b_c", NULL);
}

static void encode(const struct environment_spec *spec, struct buf *text)
{
    *text = BUF_INIT(ENVIRONMENT_SPEC_MAX);
    assert_int_equal(environment_spec_encode(spec, text, NULL), 0);
    assert_int_equal(buf_append(text, "", 1), 0); /* as a text */
}

static void all_fields_come_back(void **state)
{
    struct environment_spec spec;
    struct environment_spec back;
    CLEANUP_BUF struct buf text;

    (void)state;
    fill(&spec);
    encode(&spec, &text);
    assert_int_equal(environment_spec_decode(text.data, &back, NULL), 0);
    assert_string_equal(back.engine, spec.engine);
    assert_null(back.image);
    assert_string_equal(back.python, spec.python);
    assert_null(back.node);
    assert_true(strv_equal(&back.preload, &spec.preload));
    assert_string_equal(back.setup, spec.setup);
    environment_spec_done(&back);
    environment_spec_done(&spec);
}

static void what_is_missing_stays_so(void **state)
{
    struct environment_spec spec = { .engine = alloc_text("e") };
    struct environment_spec back;
    CLEANUP_BUF struct buf text;
    struct err err = ERR_INIT;

    (void)state;
    encode(&spec, &text);
    assert_int_equal(environment_spec_decode(text.data, &back, NULL), 0);
    assert_null(back.setup);
    assert_int_equal(back.preload.count, 0);
    environment_spec_done(&back);
    environment_spec_done(&spec);
    assert_int_equal(environment_spec_decode("", &back, &err), -1);
    assert_int_equal(err.code, ERR_INTERNAL);
}

static void too_much_is_refused(void **state)
{
    CLEANUP_BUF struct buf text = BUF_INIT(20);
    struct environment_spec spec;
    struct err err = ERR_INIT;

    (void)state;
    fill(&spec);
    assert_int_equal(environment_spec_encode(&spec, &text, &err), -1);
    assert_int_equal(err.code, ERR_BAD_VALUE);
    environment_spec_done(&spec);
}

static void get_id(const struct environment_spec *spec, char out[static ENVIRONMENT_SPEC_ID_SIZE])
{
    CLEANUP_BUF struct buf text;

    encode(spec, &text);
    environment_spec_id(&text, out);
}

static void ids_tell_contents_apart(void **state)
{
    char ids[5][ENVIRONMENT_SPEC_ID_SIZE];
    char again[ENVIRONMENT_SPEC_ID_SIZE];
    struct environment_spec spec;

    (void)state;
    fill(&spec);
    get_id(&spec, ids[0]);
    get_id(&spec, again);
    assert_string_equal(ids[0], again);
    assert_int_equal(strlen(ids[0]), strlen("env_") + 40);
    strv_add(&spec.preload, "re");
    get_id(&spec, ids[1]);
    spec.python[0] = '4';
    get_id(&spec, ids[2]);
    spec.setup[0] = 'q';
    get_id(&spec, ids[3]);
    spec.node = alloc_text("3.11.2");
    get_id(&spec, ids[4]);
    environment_spec_done(&spec);
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(ids[i], ids[j]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_fields_come_back),
        cmocka_unit_test(what_is_missing_stays_so),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(ids_tell_contents_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
