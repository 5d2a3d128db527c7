/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/work/pieces.h"

#define MANY 1000 /* rounds of the ring */

static void fill_one(struct pieces *pieces, size_t number)
{
    struct piece *piece = pieces_to_fill(pieces);

    assert_non_null(piece);
    assert_ptr_equal(pieces_to_fill(pieces), piece); /* until it is handed over */
    piece->size = number;
    piece->data[0] = (char)(number % 100);
    pieces_filled(pieces);
}

static void take_one(struct pieces *pieces, size_t number)
{
    const struct piece *piece = pieces_take(pieces);

    assert_non_null(piece);
    assert_int_equal(piece->size, number);
    assert_int_equal(piece->data[0], number % 100);
}

/* As many as there are can be filled before any is taken; the end comes behind the last. */
static void as_many_as_there_are(void **state)
{
    struct pieces *pieces = pieces_new();

    (void)state;
    for (size_t i = 0; i < PIECES_COUNT; i++) {
        fill_one(pieces, i);
    }
    pieces_end(pieces);
    for (size_t i = 0; i < PIECES_COUNT; i++) {
        take_one(pieces, i);
    }
    assert_null(pieces_take(pieces));
    assert_null(pieces_take(pieces));
    pieces_free(pieces);
    pieces_free(NULL);
}

/* What the taker has is not filled again before it asks for the next. */
static void what_is_taken_is_kept(void **state)
{
    struct pieces *pieces = pieces_new();
    const struct piece *taken;

    (void)state;
    fill_one(pieces, 7);
    taken = pieces_take(pieces);
    for (size_t i = 1; i < PIECES_COUNT; i++) {
        fill_one(pieces, i);
    }
    assert_int_equal(taken->size, 7);
    take_one(pieces, 1);
    fill_one(pieces, 8); /* there is room again */
    assert_ptr_equal(pieces_take(pieces), taken + 2);
    pieces_free(pieces);
}

static void *fill_many(void *context)
{
    for (size_t i = 0; i < MANY; i++) {
        struct piece *piece = pieces_to_fill(context);

        piece->size = i;
        piece->data[0] = (char)(i % 100);
        pieces_filled(context);
    }
    pieces_end(context);
    return NULL;
}

static void in_order_between_two_threads(void **state)
{
    struct pieces *pieces = pieces_new();
    pthread_t filler;

    (void)state;
    assert_int_equal(pthread_create(&filler, NULL, fill_many, pieces), 0);
    for (size_t i = 0; i < MANY; i++) {
        take_one(pieces, i);
    }
    assert_null(pieces_take(pieces));
    assert_int_equal(pthread_join(filler, NULL), 0);
    pieces_free(pieces);
}

static void *fill_until_refused(void *context)
{
    struct piece *piece;

    while ((piece = pieces_to_fill(context)) != NULL) {
        piece->size = 1;
        pieces_filled(context);
    }
    return NULL;
}

/* Whoever waits for a free piece is told that none is wanted, as is who asks later. */
static void refused(void **state)
{
    (void)state;
    for (size_t taken = 0; taken <= PIECES_COUNT + 1; taken++) {
        struct pieces *pieces = pieces_new();
        pthread_t filler;

        assert_int_equal(pthread_create(&filler, NULL, fill_until_refused, pieces), 0);
        for (size_t i = 0; i < taken; i++) {
            assert_non_null(pieces_take(pieces));
        }
        pieces_refuse(pieces);
        assert_int_equal(pthread_join(filler, NULL), 0);
        assert_null(pieces_to_fill(pieces));
        pieces_free(pieces);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_as_there_are),
        cmocka_unit_test(what_is_taken_is_kept),
        cmocka_unit_test(in_order_between_two_threads),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
