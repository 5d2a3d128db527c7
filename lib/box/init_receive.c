/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: kernd-init's end of the connection: receive START, send reports.
 * Owns: the received message, for the life of the process.
 * Threads: one.
 * May include: base, init.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/fd.h"
#include "lib/box/init.h"

/* Pointers to count strings that lie one behind the other, and a NULL. */
static char **make_vector(char *strings, uint32_t count)
{
    char **vector = alloc_zero((size_t)count + 1, sizeof(*vector));

    for (uint32_t i = 0; i < count; i++) {
        vector[i] = strings;
        strings += strlen(strings) + 1;
    }
    return vector;
}

bool init_receive_start(int connection, struct init_program *ret_program)
{
    struct init_wire_header header;
    struct init_wire_strings strings;
    char *body = NULL;

    if (fd_read_full(connection, &header, sizeof(header)) < 0 || header.type != INIT_WIRE_START ||
        header.size > INIT_WIRE_START_MAX) {
        return false;
    }
    body = alloc_zero(1, (size_t)header.size + 1);
    if (fd_read_full(connection, body, header.size) < 0 ||
        !init_wire_parse_start(body, header.size, &ret_program->limits, &strings)) {
        free(body);
        return false;
    }
    ret_program->cwd = strings.cwd;
    ret_program->pins = make_vector(body + (strings.pins - body), ret_program->limits.pin_count);
    ret_program->argv =
        make_vector(body + (strings.argv - body), ret_program->limits.argument_count);
    ret_program->environment =
        make_vector(body + (strings.environment - body), ret_program->limits.environment_count);
    return true;
}

bool init_send(int connection, enum init_wire_type type, const void *body, size_t size)
{
    struct init_wire_header header = { .type = (uint32_t)type, .size = (uint32_t)size };
    char message[sizeof(header) + 64];

    memcpy(message, &header, sizeof(header));
    memcpy(message + sizeof(header), body, size);
    /* Small enough to fit the socket's buffer whole. */
    return send(connection, message, sizeof(header) + size, MSG_NOSIGNAL) ==
           (ssize_t)(sizeof(header) + size);
}

bool init_receive_streams(int connection)
{
    int fds[INIT_WIRE_STREAMS] = { -1, -1, -1 };
    char space[CMSG_SPACE(sizeof(fds))];
    char byte = 0;
    struct iovec data = { .iov_base = &byte, .iov_len = 1 };
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)
    };
    const struct cmsghdr *control = NULL;
    bool placed = true;

    if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) != 1 ||
        (control = CMSG_FIRSTHDR(&message)) == NULL || control->cmsg_type != SCM_RIGHTS ||
        control->cmsg_len != CMSG_LEN(sizeof(fds))) {
        return false;
    }
    memcpy(fds, CMSG_DATA(control), sizeof(fds));
    for (int i = 0; i < INIT_WIRE_STREAMS; i++) {
        /* The copies outlive exec (dup(2)), and none of them is 0, 1 or 2 yet: those are taken. */
        placed = dup2(fds[i], i) == i && placed;
        fd_close(fds[i]);
    }
    return placed;
}

static bool is_set(const char *assignment, char *const *environment)
{
    size_t key_size = strcspn(assignment, "=") + 1;

    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, assignment, key_size) == 0) {
            return true;
        }
    }
    return false;
}

static size_t count_of(char *const *vector)
{
    size_t count = 0;

    while (vector[count] != NULL) {
        count++;
    }
    return count;
}

char **init_receive_merge(char **own, char **given)
{
    char **merged = alloc_zero(count_of(own) + count_of(given) + 1, sizeof(*merged));
    size_t count = 0;

    for (; *own != NULL; own++) {
        if (!is_set(*own, given)) {
            merged[count++] = *own;
        }
    }
    for (; *given != NULL; given++) {
        merged[count++] = *given;
    }
    return merged;
}
