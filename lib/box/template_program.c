/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make a fork of a template the program of its box.
 * Owns: the connection to kernd.
 * Threads: one.
 * May include: base, init, template.
 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#include "lib/base/fd.h"
#include "lib/box/init.h"
#include "lib/box/template.h"

#define WORKSPACE "/workspace"
#define RSEQ_FIRST_SIZE 32 /* of any libc that registers it (include/uapi/linux/rseq.h) */

/* At the number that the interpreter has in mind. */
static bool connect_driver(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = INIT_WIRE_DRIVER_SOCKET };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool connected = fd >= 0 &&
                     connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
                     dup3(fd, TEMPLATE_DRIVER, O_CLOEXEC) == TEMPLATE_DRIVER;

    fd_close(fd);
    return connected;
}

/* The first bytes on a fresh connection: there is room. */
static bool greet(const struct template *template)
{
    return send(TEMPLATE_DRIVER, template->greeting, template->greeting_size, MSG_NOSIGNAL) ==
           (ssize_t) template->greeting_size;
}

/* What the program may reach beside what every box has; looked at when it was mounted. */
static bool confine(const struct template *template, const struct template_wire_fork *order,
                    int ruleset)
{
    char layer[] = "r 0 0 " TEMPLATE_WIRE_LAYER_AT; /* INIT_WIRE_PIN */
    char *pins[TEMPLATE_PINS_MAX + 2] = { NULL };

    memcpy(pins, template->pins, template->pin_count * sizeof(*pins));
    if (order->layer[0] != '\0') {
        pins[template->pin_count] = layer;
    }
    return ruleset < 0 || init_landlock_enter(ruleset, pins) == 0;
}

const char *template_program_confine(const struct template *template,
                                     const struct template_wire_fork *order, int ruleset)
{
    return confine(template, order, ruleset) ? NULL : "become a program";
}

const char *template_program_become(const struct template *template,
                                    const struct template_wire_fork *order)
{
    const struct init_wire_start limits = { .tasks = order->tasks,
                                            .files = order->files,
                                            .file_bytes = order->file_bytes };

    /* Building the box left none open; the program is to have 0, 1 and 2 whatever becomes of that.
     */
    if (close_range(STDERR_FILENO + 1, UINT_MAX, 0) < 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ||
        chdir(WORKSPACE) < 0) {
        return "become a program";
    }
    init_state_process();
    init_state_limits(&limits);
    return connect_driver() && (order->prepares != 0 || greet(template)) ? NULL : "reach kernd";
}

void template_program_resume(void)
{
#if __has_include(<sys/rseq.h>)
    if (__rseq_size > 0) {
        (void)syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset, RSEQ_FIRST_SIZE,
                      0, RSEQ_SIG);
    }
#endif
}
