/* SPDX-License-Identifier: Apache-2.0 */
/*
 * charset: the locale in which names are UTF-8, whatever the process's own is. For lib/work alone.
 */
#ifndef KERND_WORK_CHARSET_H
#define KERND_WORK_CHARSET_H

#include <locale.h>

/* For uselocale(3); made once, never freed. (locale_t)0 where the system has none. Any thread. */
locale_t charset_utf8(void);

#endif
