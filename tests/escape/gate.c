/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate: makes one system call by the door its argument names.
 * Job: native (the usual way), int80 (the 32-bit gate), x32 (the numbers of that ABI), mount.
 * Owns: nothing. Threads: one. A test program: it includes nothing of kernd.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GETPID_32 20L       /* asm/unistd_32.h */
#define X32_BIT 0x40000000L /* asm/unistd.h: __X32_SYSCALL_BIT */

static long call_int80(long number)
{
#ifdef __x86_64__
    long result;

    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number) : "memory", "r8", "r9", "r10", "r11");
    return result;
#else
    return -number;
#endif
}

int main(int count, char **arguments)
{
    const char *door = count > 1 ? arguments[1] : "native";
    long result = 0;

    (void)puts("begin");
    (void)fflush(stdout);
    if (strcmp(door, "mount") == 0) {
        result = mount("none", "/workspace", "tmpfs", 0, NULL);
        (void)printf("%s\n", result == 0 ? "mounted" : "refused");
        return 0;
    }
    if (strcmp(door, "int80") == 0) {
        result = call_int80(GETPID_32);
    } else if (strcmp(door, "x32") == 0) {
        result = syscall(X32_BIT | SYS_getpid);
    } else {
        result = syscall(SYS_getpid);
    }
    (void)printf(result > 0 ? "pid %ld\n" : "error %ld\n", result);
    return 0;
}
