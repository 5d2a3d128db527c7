/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init_wire: what kernd and kernd-init say to each other, over one SOCK_STREAM connection.
 *
 *     kernd-init                          kernd
 *     HELLO   ready, waiting       ->
 *                                  <-     (its streams, see INIT_WIRE_IN_IMAGE)
 *                                  <-     START   the program (at most once)
 *     STARTED exec done or errno   ->
 *                                  <-     SIGNAL  any number
 *     EXITED  status and usage     ->             then kernd-init exits, and the box with it
 *
 * A message is a header and `size` bytes. Both ends are built together and run on one machine, so
 * integers have the host's order. The end of the connection means: exit at once. Header-only, since
 * both programs need it and it is all pure.
 */
#ifndef KERND_BOX_INIT_WIRE_H
#define KERND_BOX_INIT_WIRE_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INIT_WIRE_VERSION UINT32_C(3)
#define INIT_WIRE_START_MAX ((size_t)4 * 1024 * 1024)
#define INIT_WIRE_STRINGS_MAX UINT32_C(65536)
#define INIT_WIRE_PIN "%c %" PRIu64 " %" PRIu64 " " /* before a pin's path */
#define INIT_WIRE_WRITABLE 'w'
#define INIT_WIRE_READABLE 'r'
/* A path in the box; kernd's per-box directory is there, read-only. */
#define INIT_WIRE_SOCKET "/run/kernd/init.sock"
/*
 * kernd-init's argument in a box with an image's files: it may read and run all that is there, the
 * program inherits the environment that kernd-init has, and its three streams come by the
 * connection before START: one byte with the descriptors (SCM_RIGHTS, unix(7)).
 */
#define INIT_WIRE_IN_IMAGE "in-image"
#define INIT_WIRE_STREAMS 3
#define INIT_WIRE_DRIVER_SOCKET "/run/kernd/driver.sock"
/*
 * Arguments of kernd-init: PID 1 of a template (template.h); PID 1 of a box that was forked of one,
 * in its cgroup or outside. Then its program runs already: its number and Landlock ABI follow.
 */
#define INIT_WIRE_TEMPLATE "template"
#define INIT_WIRE_FORKED "forked"
#define INIT_WIRE_OUTSIDE "forked-outside"

enum init_wire_type {
    INIT_WIRE_HELLO = 1,
    INIT_WIRE_START,
    INIT_WIRE_STARTED,
    INIT_WIRE_SIGNAL,
    INIT_WIRE_EXITED,
};

struct init_wire_header {
    uint32_t type;
    uint32_t size; /* of what follows */
};

struct init_wire_hello {
    uint32_t version;
    uint32_t landlock_abi; /* the program will be confined by it or not start; 0: by none */
    uint32_t outside;      /* of a forked box: 1, it could not be born in its cgroup */
};

/*
 * Followed by the working directory, pins, argv and environment, each string with its NUL byte. A
 * pin is one of the caller's mounts: may the program write there (one of the letters), the device
 * and inode number that stat(2) must tell of the path behind them (both 0: not looked at).
 */
struct init_wire_start {
    uint32_t argument_count;
    uint32_t environment_count;
    uint32_t tasks; /* RLIMIT_NPROC of the program and its children, 0: as it is */
    uint32_t files; /* RLIMIT_NOFILE, soft */
    uint32_t pin_count;
    uint32_t driver_fd;  /* the program finds its connection to kernd there; 0: it makes its own */
    uint64_t file_bytes; /* RLIMIT_FSIZE, 0: as it is */
};

struct init_wire_started {
    int32_t start_errno; /* 0: exec succeeded */
    uint32_t zero;
    int64_t at_ns; /* CLOCK_MONOTONIC, which boxes share with the host */
};

struct init_wire_signal {
    int32_t signal_number;
    uint32_t all; /* 0: the program's process; 1: every process of the box but kernd-init */
};

/* Usage: getrusage(RUSAGE_CHILDREN) of kernd-init, i.e. of every process that ended in the box. */
struct init_wire_exited {
    int32_t wait_status; /* wait(2) form */
    uint32_t alone;      /* 1: every other process of the box was killed and reaped before this */
    int64_t at_ns;
    int64_t cpu_user_us;
    int64_t cpu_system_us;
    int64_t max_rss_bytes; /* of the largest single process */
};

/* The parts of a START message; the strings point into it. */
struct init_wire_strings {
    const char *cwd;
    const char *pins;        /* pin_count strings */
    const char *argv;        /* argument_count strings, one behind the other */
    const char *environment; /* environment_count strings */
};

/* Skips one NUL-terminated string before end; NULL if there is none. */
static inline const char *init_wire_skip(const char *at, const char *end)
{
    const char *nul = at == NULL ? NULL : memchr(at, '\0', (size_t)(end - at));

    return nul == NULL ? NULL : nul + 1;
}

/*
 * Checks a START body of size bytes: counts within bounds, exactly that many strings, nothing
 * behind them. False when malformed.
 */
static inline bool init_wire_parse_start(const void *body, size_t size,
                                         struct init_wire_start *ret_start,
                                         struct init_wire_strings *ret_strings)
{
    const char *end = (const char *)body + size;
    const char *at = (const char *)body + sizeof(*ret_start);
    struct init_wire_start start;
    struct init_wire_strings strings;

    if (size < sizeof(start) || size > INIT_WIRE_START_MAX) {
        return false;
    }
    memcpy(&start, body, sizeof(start));
    if (start.argument_count == 0 || start.argument_count > INIT_WIRE_STRINGS_MAX ||
        start.environment_count > INIT_WIRE_STRINGS_MAX ||
        start.pin_count > INIT_WIRE_STRINGS_MAX) {
        return false;
    }
    strings.cwd = at;
    at = init_wire_skip(at, end);
    strings.pins = at;
    for (uint32_t i = 0; i < start.pin_count; i++) {
        at = init_wire_skip(at, end);
    }
    strings.argv = at;
    for (uint32_t i = 0; i < start.argument_count; i++) {
        at = init_wire_skip(at, end);
    }
    strings.environment = at;
    for (uint32_t i = 0; i < start.environment_count; i++) {
        at = init_wire_skip(at, end);
    }
    if (at != end || strings.argv == NULL || strings.environment == NULL) {
        return false;
    }
    *ret_start = start;
    *ret_strings = strings;
    return true;
}

#endif
