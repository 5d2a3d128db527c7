/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep: tries system calls by number, each in a child of its own, and prints what came of each.
 * Job: "sweep FIRST LAST" prints a line per number: "<number> killed|enosys|errno <n>|ran";
 *      "call NUMBER ARGUMENT..." does the same for one call with up to six arguments.
 * Owns: nothing. Threads: one. A test program: it includes nothing of kernd.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS 6
#define PATIENCE_S 2

/* In the child: the call, its errno through the pipe. Whatever it does happens to the child alone.
 */
static void attempt(long number, const long *arguments, int report)
{
    int outcome[2] = { 1, 0 };
    long result;

    /* Nothing that reads, writes or closes must find the pipe: it moves out of the way. */
    int kept = fcntl(report, F_DUPFD, 200);

    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(PATIENCE_S);
    errno = 0;
    result = syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                     arguments[5]);
    outcome[1] = result < 0 ? errno : 0;
    (void)!write(kept, outcome, sizeof(outcome));
    _exit(0);
}

static void tell(long number, int status, const int *outcome)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) {
        (void)printf("%ld killed\n", number);
    } else if (outcome[0] == 0) {
        (void)printf("%ld ran\n", number); /* it never came back: exit, pause, a crash of its own */
    } else if (outcome[1] == ENOSYS) {
        (void)printf("%ld enosys\n", number);
    } else if (outcome[1] != 0) {
        (void)printf("%ld errno %d\n", number, outcome[1]);
    } else {
        (void)printf("%ld ran\n", number);
    }
    (void)fflush(stdout);
}

static int try_call(long number, const long *arguments)
{
    int outcome[2] = { 0, 0 };
    int ends[2];
    int status = 0;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return -1;
    }
    child = fork();
    if (child < 0) {
        return -1;
    }
    if (child == 0) {
        attempt(number, arguments, ends[1]);
    }
    (void)close(ends[1]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (read(ends[0], outcome, sizeof(outcome)) != (ssize_t)sizeof(outcome)) {
        memset(outcome, 0, sizeof(outcome));
    }
    (void)close(ends[0]);
    /* A call such as clone may have made a child of the child that still writes or waits. */
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    tell(number, status, outcome);
    return 0;
}

int main(int count, char **words)
{
    /* Arguments that no call can use: bad descriptors, addresses, flags. */
    long arguments[ARGUMENTS] = { -1, -1, -1, -1, -1, -1 };
    struct rlimit none = { 0, 0 };

    (void)setrlimit(RLIMIT_CORE, &none);
    if (count == 4 && strcmp(words[1], "sweep") == 0) {
        for (long number = atol(words[2]); number <= atol(words[3]); number++) {
            if (try_call(number, arguments) != 0) {
                return 1;
            }
        }
        (void)puts("end");
        return 0;
    }
    if (count >= 3 && strcmp(words[1], "call") == 0) {
        for (int i = 0; i < ARGUMENTS; i++) {
            arguments[i] = i + 3 < count ? strtol(words[i + 3], NULL, 0) : 0;
        }
        return try_call(atol(words[2]), arguments) == 0 ? 0 : 1;
    }
    return 2;
}
