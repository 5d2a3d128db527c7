/* SPDX-License-Identifier: Apache-2.0 */
/*
 * charset: one locale for the life of the process.
 * Owns: the locale.
 * Threads: any.
 * May include: libc.
 */
#include "lib/work/charset.h"

#include <pthread.h>

static locale_t utf8;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make(void)
{
    utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

locale_t charset_utf8(void)
{
    (void)pthread_once(&once, make);
    return utf8;
}
