/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: fill in the error value.
 * Owns: nothing; the value is the caller's.
 * Threads: any (each value belongs to one thread).
 * May include: libc.
 */
#include "lib/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 4, 0))) static void fill(struct err *err, enum err_code code, int sys,
                                                       const char *format, va_list arguments)
{
    *err = ERR_INIT;
    err->code = code;
    err->sys = sys;
    (void)vsnprintf(err->msg, sizeof(err->msg), format, arguments);
}

/* In parentheses, the names are not the macros of the same name. */
int(err_set)(struct err *err, enum err_code code, int sys, const char *format, ...)
{
    va_list arguments;

    if (err != NULL) {
        va_start(arguments, format);
        fill(err, code, sys, format, arguments);
        va_end(arguments);
    }
    return -1;
}

int(err_field)(struct err *err, enum err_code code, const char *pointer, const char *format, ...)
{
    va_list arguments;

    if (err != NULL) {
        va_start(arguments, format);
        fill(err, code, 0, format, arguments);
        va_end(arguments);
        (void)snprintf(err->pointer, sizeof(err->pointer), "%s", pointer);
    }
    return -1;
}

int(err_prefix)(struct err *err, const char *format, ...)
{
    char old[sizeof(err->msg)];
    va_list arguments;
    size_t used = 0;

    if (err == NULL) {
        return -1;
    }
    memcpy(old, err->msg, sizeof(old));
    va_start(arguments, format);
    (void)vsnprintf(err->msg, sizeof(err->msg), format, arguments);
    va_end(arguments);
    used = strlen(err->msg);
    (void)snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", old);
    return -1;
}

int(err_remedy)(struct err *err, const char *format, ...)
{
    va_list arguments;

    if (err != NULL) {
        va_start(arguments, format);
        (void)vsnprintf(err->remedy, sizeof(err->remedy), format, arguments);
        va_end(arguments);
    }
    return -1;
}

int(err_retry_after)(struct err *err, int seconds)
{
    if (err != NULL) {
        err->retry_after_s = seconds;
    }
    return -1;
}

const char *err_errno_text(int sys)
{
#ifdef __GLIBC__
    const char *text = strerrordesc_np(sys);
#else /* musl, which programs in boxes are linked with: its texts are constants */
    const char *text = strerror(sys);
#endif

    return text == NULL ? "unknown error" : text;
}
