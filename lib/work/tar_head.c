/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_head: the bytes in front of a member's data.
 * Owns: nothing; the end of a block is copied.
 * Threads: one at a time.
 * May include: base.
 */
#include "lib/work/tar_head.h"

#include <string.h>

/* Fields of the header: where, and how long. */
#define SIZE_AT 124
#define SIZE_BYTES 12
#define SUM_AT 148
#define SUM_BYTES 8
#define TYPE_AT 156
#define DIRECTORY '5'
#define BASE_256 0x80 /* the first bit of a number that is binary */

void tar_head_leave(struct tar_head *head)
{
    size_t kept = head->size < TAR_HEAD_BYTES ? head->size : TAR_HEAD_BYTES;

    if (kept > 0) {
        memmove(head->before, head->before + kept, TAR_HEAD_BYTES - kept);
        memcpy(head->before + TAR_HEAD_BYTES - kept, head->block + head->size - kept, kept);
    }
    head->block = NULL;
    head->size = 0;
}

void tar_head_see(struct tar_head *head, const void *block, size_t size)
{
    head->block = block;
    head->size = size;
    head->given += size;
}

/* The bytes in front of what the reader takes next. False: they are not there any more. */
static bool copy(const struct tar_head *head, uint64_t taken, unsigned char out[TAR_HEAD_BYTES])
{
    uint64_t start = head->given - head->size; /* of the block */
    uint64_t from = taken - TAR_HEAD_BYTES;
    size_t early = from < start ? (size_t)(start - from) : 0;

    if (taken < TAR_HEAD_BYTES || taken > head->given || early > TAR_HEAD_BYTES) {
        return false;
    }
    memcpy(out, head->before + TAR_HEAD_BYTES - early, early);
    if (early < TAR_HEAD_BYTES) {
        memcpy(out + early, head->block + (from + early - start), TAR_HEAD_BYTES - early);
    }
    return true;
}

/* Octal digits, blanks before and behind, nothing after a NUL. *ret_valid: nothing else is there.
 */
static long read_octal(const unsigned char *field, size_t size, bool *ret_valid)
{
    size_t at = 0;
    long value = 0;

    while (at < size && field[at] == ' ') {
        at++;
    }
    while (at < size && field[at] >= '0' && field[at] <= '7') {
        value = value * 8 + (field[at++] - '0');
    }
    while (at < size && field[at] == ' ') {
        at++;
    }
    *ret_valid = at == size || field[at] == '\0';
    return value;
}

/* Of all bytes, with the field itself as blanks. (Two loops, of which compilers make vectors.) */
static long sum_of(const unsigned char *header)
{
    unsigned sum = 0;

    for (size_t at = 0; at < TAR_HEAD_BYTES; at++) {
        sum += header[at];
    }
    for (size_t at = SUM_AT; at < SUM_AT + SUM_BYTES; at++) {
        sum -= header[at];
    }
    return (long)sum + (long)SUM_BYTES * ' ';
}

static bool is_zero_base_256(const unsigned char *field)
{
    static const unsigned char zero[SIZE_BYTES] = { BASE_256 };

    return memcmp(field, zero, SIZE_BYTES) == 0;
}

const char *tar_head_fault(const struct tar_head *head, uint64_t taken)
{
    unsigned char header[TAR_HEAD_BYTES];
    bool valid = false;
    bool empty;

    if (!copy(head, taken, header) ||
        read_octal(header + SUM_AT, SUM_BYTES, &valid) != sum_of(header) || !valid) {
        return NULL;
    }
    if ((header[SIZE_AT] & BASE_256) != 0) {
        empty = is_zero_base_256(header + SIZE_AT);
    } else {
        empty = read_octal(header + SIZE_AT, SIZE_BYTES, &valid) == 0;
    }
    if (!valid) {
        return "its size is not a number";
    }
    return header[TYPE_AT] == DIRECTORY && !empty ? "it is a directory with data" : NULL;
}
