/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err: the one error value.
 *
 * A caller-owned value, always the last parameter, may be NULL. Functions return 0 or -1 (or a
 * pointer or NULL); their outputs (ret_...) are untouched on failure. The first detector sets the
 * value, callers may only prefix context. What happens to the guest (a timeout, an exit code, an
 * out-of-memory kill) is data in a result, never an err.
 */
#ifndef KERND_BASE_ERR_H
#define KERND_BASE_ERR_H

/*
 * A closed list: each value says what the client can do about it. api/problem.c maps every one of
 * them to a status, a code text and a default remedy in an exhaustive switch.
 */
enum err_code {
    ERR_NONE = 0,
    /* 400 */
    ERR_BAD_JSON,
    ERR_BAD_HEADER,
    ERR_BAD_REQUEST,
    ERR_BAD_CURSOR,
    /* 401, 403 */
    ERR_UNAUTHORIZED,
    ERR_FORBIDDEN,
    ERR_HOST_DENIED,
    ERR_ORIGIN_DENIED,
    ERR_MOUNT_REFUSED,
    ERR_NETWORK_DENIED,
    /* 404 */
    ERR_ROUTE_NOT_FOUND,
    ERR_SESSION_NOT_FOUND,
    ERR_KERNEL_NOT_FOUND,
    ERR_EXECUTION_NOT_FOUND,
    ERR_FILE_NOT_FOUND,
    ERR_SNAPSHOT_NOT_FOUND,
    ERR_ENVIRONMENT_NOT_FOUND,
    ERR_IMAGE_NOT_FOUND,
    ERR_TOKEN_NOT_FOUND,
    /* 405, 406, 408 */
    ERR_METHOD_NOT_ALLOWED,
    ERR_NOT_ACCEPTABLE,
    ERR_REQUEST_TIMEOUT,
    /* 409 */
    ERR_SESSION_EXISTS,
    ERR_SESSION_BUSY,
    ERR_KERNEL_EXISTS,
    ERR_KERNEL_DEAD,
    ERR_EXECUTION_EXISTS,
    ERR_EXECUTION_DONE,
    ERR_FILE_EXISTS,
    ERR_IDEMPOTENCY_IN_FLIGHT,
    ERR_CONFLICT,
    /* 410, 412, 413, 414, 415, 416 */
    ERR_EVENTS_EXPIRED,
    ERR_KERNEL_LOST,
    ERR_SESSION_EXPIRED,
    ERR_ETAG_MISMATCH,
    ERR_BODY_TOO_LARGE,
    ERR_URI_TOO_LONG,
    ERR_UNSUPPORTED_MEDIA_TYPE,
    ERR_RANGE_NOT_SATISFIABLE,
    /* 422 */
    ERR_UNKNOWN_FIELD,
    ERR_BAD_VALUE,
    ERR_LIMIT_EXCEEDS_MAXIMUM,
    ERR_BAD_PATH,
    ERR_BAD_ARCHIVE,
    ERR_IDEMPOTENCY_MISMATCH,
    ERR_NOT_SUPPORTED_HERE,
    ERR_LIMITS_NOT_ENFORCED,
    ERR_SETUP_FAILED,
    ERR_PRELOAD_FAILED,
    /* 429 */
    ERR_TOO_MANY_REQUESTS,
    /* 500 */
    ERR_INTERNAL,
    ERR_IO,
    ERR_LOST, /* the server was killed while it worked on it */
    /* 502, 503 */
    ERR_IMAGE_PULL_FAILED,
    ERR_QUEUE_FULL,
    ERR_QUEUE_TIMEOUT,
    ERR_SHUTTING_DOWN,
    ERR_ENGINE_UNAVAILABLE,
    ERR_BOX_START_FAILED,
    ERR_NOT_READY,
    /* 507 */
    ERR_WORKSPACE_FULL,
    ERR_STORE_FULL,
    /* Never shown as such: the caller who cancelled or whose deadline passed is told by a fault. */
    ERR_CANCELLED,
    ERR_DEADLINE,
    ERR_MAX,
};

struct err {
    enum err_code code;
    int sys;           /* errno where one is behind it, else 0 */
    int retry_after_s; /* seconds for Retry-After, 0: none */
    char pointer[128]; /* JSON pointer of the field at fault, "" if none */
    char msg[320];    /* one sentence for the client: no host path outside a workspace, no secret */
    char remedy[320]; /* what the caller can do next; "": the code's default remedy */
};

/* An empty value to start from. */
#define ERR_INIT ((struct err){ .code = ERR_NONE })

/*
 * Sets *err (nothing if NULL) to code, errno value sys (0: none) and a printf-style sentence, cut
 * to fit. Always returns -1, so that a failing function can `return err_set(...)`.
 */
int err_set(struct err *err, enum err_code code, int sys, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* As err_set with the JSON pointer of the offending field, e.g. "/timeoutS". Returns -1. */
int err_field(struct err *err, enum err_code code, const char *pointer, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Puts "text: " before the message, cut to fit. Returns -1. */
int err_prefix(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets the remedy (one line the caller can act on). Returns -1. */
int err_remedy(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets the seconds for Retry-After. Returns -1. */
int err_retry_after(struct err *err, int seconds);

/*
 * Compilers and analyzers can't see into err.c: these tell them that the five return -1, and so
 * that a caller who returns it does not leave its outputs to be read.
 */
static inline int err_failed(void)
{
    return -1;
}
/* NOLINTBEGIN(readability-identifier-naming): they stand for the functions of the same name. */
#define err_set(...) ((void)err_set(__VA_ARGS__), err_failed())
#define err_field(...) ((void)err_field(__VA_ARGS__), err_failed())
#define err_prefix(...) ((void)err_prefix(__VA_ARGS__), err_failed())
#define err_remedy(...) ((void)err_remedy(__VA_ARGS__), err_failed())
#define err_retry_after(...) ((void)err_retry_after(__VA_ARGS__), err_failed())
/* NOLINTEND(readability-identifier-naming) */

/*
 * Text of an errno value, thread-safe (strerrordesc_np, glibc 2.32; strerror of musl). Never NULL;
 * static storage.
 */
const char *err_errno_text(int sys);

#endif
