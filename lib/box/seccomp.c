/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: turn the table of system calls into BPF programs.
 * Owns: the memory files that hold them.
 * Threads: one, for the first box; seccomp_open and seccomp_describe from any.
 * May include: base, seccomp_table, libseccomp.
 */
#include "lib/box/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/box/seccomp_table.h"

/* The allow-list must come last: it does not let a further filter be installed by accident of
 * order, while the walls let prctl(2) pass. */
static const enum seccomp_table_program load_order[SECCOMP_PROGRAMS] = {
    SECCOMP_TABLE_WALLS,
    SECCOMP_TABLE_LIST,
};

static uint32_t action_of(const struct seccomp_table_row *row)
{
    switch (row->action) {
    case SECCOMP_TABLE_ALLOW:
        return SCMP_ACT_ALLOW;
    case SECCOMP_TABLE_ERROR:
        return SCMP_ACT_ERRNO((unsigned)row->error);
    case SECCOMP_TABLE_KILL:
        break;
    }
    return SCMP_ACT_KILL_PROCESS;
}

/* Adds a rule with one condition, and that of row->nonzero if there is one. */
static int add(scmp_filter_ctx filter, const struct seccomp_table_row *row, int number,
               struct scmp_arg_cmp condition)
{
    const struct scmp_arg_cmp conditions[] = {
        condition,
        { .arg = row->nonzero, .op = SCMP_CMP_NE, .datum_a = 0 },
    };

    return seccomp_rule_add_array(filter, action_of(row), number, row->nonzero == 0 ? 1 : 2,
                                  conditions);
}

/* One comparison an argument is all libseccomp has, so a range is its values or has an
 * open end. */
static int add_range(scmp_filter_ctx filter, const struct seccomp_table_row *row, int number)
{
    struct scmp_arg_cmp condition = { .arg = row->argument, .op = SCMP_CMP_EQ };
    int failed = 0;

    if (row->last == UINT64_MAX || row->first == 0) {
        condition.op = row->first == 0 ? SCMP_CMP_LE : SCMP_CMP_GE;
        condition.datum_a = row->first == 0 ? row->last : row->first;
        return add(filter, row, number, condition);
    }
    for (uint64_t value = row->first; failed == 0 && value <= row->last; value++) {
        condition.datum_a = value;
        failed = add(filter, row, number, condition);
    }
    return failed;
}

static int add_row(scmp_filter_ctx filter, const struct seccomp_table_row *row, uint32_t otherwise)
{
    int number = seccomp_syscall_resolve_name(row->name);
    struct scmp_arg_cmp bits = {
        .arg = row->argument,
        .op = SCMP_CMP_MASKED_EQ,
        .datum_a = row->first,
        .datum_b = row->last,
    };

    /* A negative number is a call of other architectures, or newer than libseccomp: as unknown. */
    if (number < 0 || action_of(row) == otherwise) {
        return 0;
    }
    switch (row->when) {
    case SECCOMP_TABLE_ALWAYS:
        return seccomp_rule_add_array(filter, action_of(row), number, 0, NULL);
    case SECCOMP_TABLE_RANGE:
        return add_range(filter, row, number);
    case SECCOMP_TABLE_BITS:
        break;
    }
    return add(filter, row, number, bits);
}

static int fill(scmp_filter_ctx filter, enum seccomp_table_program program, uint32_t otherwise)
{
    struct seccomp_table_row row;
    int failed = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

    if (failed == 0) {
        /* A binary tree instead of a chain of comparisons. */
        failed = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    }
    for (size_t i = 0; failed == 0 && seccomp_table_at(program, i, &row); i++) {
        failed = add_row(filter, &row, otherwise);
    }
    return failed;
}

/* A sealed memory file with the program, its offset at the end. -1 with errno. */
static int build(enum seccomp_table_program program)
{
    const bool is_list = program == SECCOMP_TABLE_LIST || program == SECCOMP_TABLE_TEMPLATE_LIST;
    const uint32_t otherwise = is_list ? SCMP_ACT_ERRNO((unsigned)ENOSYS) : SCMP_ACT_ALLOW;
    scmp_filter_ctx filter = seccomp_init(otherwise);
    CLEANUP_FD int fd = memfd_create("kernd-seccomp", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int failed = filter == NULL || fd < 0 ? -EIO : fill(filter, program, otherwise);

    if (failed == 0) {
        failed = seccomp_export_bpf(filter, fd);
    }
    if (filter != NULL) {
        seccomp_release(filter);
    }
    if (failed == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0) {
        failed = -errno;
    }
    errno = -failed;
    return failed == 0 ? CLEANUP_TAKE_FD(fd) : -1;
}

static int refuse(struct err *err)
{
    return err_set(err, ERR_INTERNAL, errno, "can't build the system call filter: %s",
                   err_errno_text(errno));
}

int seccomp_program(enum seccomp_table_program program, struct buf *out, struct err *err)
{
    CLEANUP_FD int fd = build(program);

    if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0) {
        return refuse(err);
    }
    return fd_read_to_end(fd, out, err);
}

int seccomp_build(struct seccomp *seccomp, struct err *err)
{
    struct seccomp built = { .programs = { -1, -1 } };

    for (size_t i = 0; i < SECCOMP_PROGRAMS; i++) {
        built.programs[i] = build(load_order[i]);
        if (built.programs[i] < 0) {
            int failed = refuse(err);

            seccomp_done(&built);
            return failed;
        }
    }
    *seccomp = built;
    return 0;
}

void seccomp_done(struct seccomp *seccomp)
{
    for (size_t i = 0; i < SECCOMP_PROGRAMS; i++) {
        fd_clear(&seccomp->programs[i]);
    }
}

int seccomp_open(const struct seccomp *seccomp, size_t index)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", seccomp->programs[index]);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int describe_row(struct buf *out, const struct seccomp_table_row *row)
{
    const char *action = "kill";

    if (row->action == SECCOMP_TABLE_ALLOW) {
        action = "allow";
    } else if (row->action == SECCOMP_TABLE_ERROR && row->error == 0) {
        action = "ignore";
    } else if (row->action == SECCOMP_TABLE_ERROR) {
        action = strerrorname_np(row->error); /* glibc 2.32; never NULL for the table's */
    }
    return buf_printf(out, "%s\t%s\t%s\n", row->name, action, row->note == NULL ? "" : row->note);
}

int seccomp_describe(struct buf *out)
{
    struct seccomp_table_row row;

    for (size_t program = 0; program < SECCOMP_PROGRAMS; program++) {
        for (size_t i = 0; seccomp_table_at(load_order[program], i, &row); i++) {
            if (describe_row(out, &row) < 0) {
                return -1;
            }
        }
    }
    return 0;
}
