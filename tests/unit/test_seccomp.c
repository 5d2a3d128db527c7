/* SPDX-License-Identifier: Apache-2.0 */
/* The system call filters as programs, run here as the kernel runs them. */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/box/seccomp.h"

#define PROGRAM_MAX ((size_t)64 * 1024)
#define NUMBERS 700 /* of system calls; the last of 6.18 is 470 */
#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#define X32_BIT 0
#endif

static struct buf list = BUF_INIT(PROGRAM_MAX);
static struct buf walls = BUF_INIT(PROGRAM_MAX);
static struct buf template_list = BUF_INIT(PROGRAM_MAX);
static struct buf forked_walls = BUF_INIT(PROGRAM_MAX);

static int build(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    return seccomp_program(SECCOMP_TABLE_LIST, &list, &err) < 0 ||
                   seccomp_program(SECCOMP_TABLE_WALLS, &walls, &err) < 0 ||
                   seccomp_program(SECCOMP_TABLE_TEMPLATE_LIST, &template_list, &err) < 0 ||
                   seccomp_program(SECCOMP_TABLE_FORKED_WALLS, &forked_walls, &err) < 0
               ? -1
               : 0;
}

static int drop(void **state)
{
    (void)state;
    buf_done(&list);
    buf_done(&walls);
    buf_done(&template_list);
    buf_done(&forked_walls);
    return 0;
}

static bool compares(uint16_t code, uint32_t value, uint32_t operand)
{
    switch (BPF_OP(code)) {
    case BPF_JEQ:
        return value == operand;
    case BPF_JGT:
        return value > operand;
    case BPF_JGE:
        return value >= operand;
    case BPF_JSET:
        return (value & operand) != 0;
    default:
        fail_msg("jump %x", code);
    }
    return false;
}

/* What libseccomp makes use of (seccomp(2), the BPF of its SECCOMP_SET_MODE_FILTER). */
static uint32_t verdict_of(const struct buf *program, const struct seccomp_data *call)
{
    const struct sock_filter *at = (const struct sock_filter *)(const void *)program->data;
    const struct sock_filter *const end = at + program->size / sizeof(*at);
    uint32_t value = 0;

    for (; at < end; at++) {
        switch (BPF_CLASS(at->code)) {
        case BPF_LD:
            memcpy(&value, (const char *)call + at->k, sizeof(value));
            break;
        case BPF_ALU:
            assert_int_equal(at->code, BPF_ALU | BPF_AND | BPF_K);
            value &= at->k;
            break;
        case BPF_JMP:
            at += BPF_OP(at->code) == BPF_JA         ? at->k
                  : compares(at->code, value, at->k) ? at->jt
                                                     : at->jf;
            break;
        case BPF_RET:
            return at->k;
        default:
            fail_msg("instruction %x", at->code);
        }
    }
    fail_msg("no verdict");
    return 0;
}

/* Of two, in the order they are loaded: the stricter, and of equals the later (seccomp(2)). */
static uint32_t verdict(const struct buf *first, const struct buf *second,
                        const struct seccomp_data *call)
{
    const uint32_t of_first = verdict_of(first, call);
    const uint32_t of_second = verdict_of(second, call);

    /* As numbers with a sign the stricter action is the smaller one. */
    return (int32_t)(of_first & SECCOMP_RET_ACTION_FULL) <
                   (int32_t)(of_second & SECCOMP_RET_ACTION_FULL)
               ? of_first
               : of_second;
}

static void assert_same(const struct seccomp_data *call)
{
    const uint32_t booted = verdict(&walls, &list, call);
    const uint32_t forked = verdict(&template_list, &forked_walls, call);

    if (booted != forked) {
        fail_msg("call %d (%llx %llx %llx): %x in a booted box, %x in a forked one", call->nr,
                 call->args[0], call->args[1], call->args[2], booted, forked);
    }
}

static void a_forked_box_may_do_what_a_booted_one_may(void **state)
{
    static const uint64_t values[] = {
        0,
        1,
        2,
        3,
        8,
        10,
        15,
        16,
        17,
        45,
        64 * 1024,
        64 * 1024 + 1,
        0x20000,
        0x40000,
        TIOCSTI,
        TIOCLINUX,
        UINT32_MAX,
        UINT64_MAX,
        AF_INET6,
        AF_VSOCK,
        CLONE_NEWTIME,
        CLONE_THREAD,
        CLONE_NEWNS,
        CLONE_NEWUSER,
        CLONE_NEWPID,
        CLONE_NEWNET,
        CLONE_NEWUTS,
        CLONE_NEWIPC,
        CLONE_NEWCGROUP,
        CLONE_NEWNS | CLONE_VM,
        (UINT64_C(1) << 32),
        (UINT64_C(1) << 32) | 1,
    };
    const size_t count = sizeof(values) / sizeof(values[0]);

    (void)state;
    for (int number = -1; number < NUMBERS; number++) {
        for (size_t i = 0; i < count * count; i++) {
            struct seccomp_data call = { .nr = number, .arch = ARCH };

            call.args[0] = values[i / count];
            call.args[1] = values[i % count];
            assert_same(&call);
            call.args[2] = 1;
            assert_same(&call);
            call.nr |= X32_BIT;
            assert_same(&call);
            call.nr = number;
            call.arch = AUDIT_ARCH_I386;
            assert_same(&call);
        }
    }
}

/* What a template may do beside what its boxes may, and that its boxes may not. */
static void a_template_may_make_boxes_besides(void **state)
{
    static const int makes_boxes[] = { SYS_clone3, SYS_mount,    SYS_umount2, SYS_move_mount,
                                       SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_setns };
    size_t found = 0;

    (void)state;
    for (int number = 0; number < NUMBERS; number++) {
        const struct seccomp_data call = { .nr = number, .arch = ARCH };
        const bool may = verdict_of(&template_list, &call) == SECCOMP_RET_ALLOW;
        bool makes = false;

        for (size_t i = 0; i < sizeof(makes_boxes) / sizeof(makes_boxes[0]); i++) {
            makes = makes || number == makes_boxes[i];
        }
        found += makes ? 1 : 0;
        assert_int_equal(may, makes || verdict_of(&list, &call) == SECCOMP_RET_ALLOW);
        if (makes) {
            assert_int_equal(verdict_of(&forked_walls, &call), verdict_of(&list, &call));
        }
    }
    assert_int_equal(found, sizeof(makes_boxes) / sizeof(makes_boxes[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forked_box_may_do_what_a_booted_one_may),
        cmocka_unit_test(a_template_may_make_boxes_besides),
    };

    return cmocka_run_group_tests(tests, build, drop);
}
