/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits: defaults, maxima and their check.
 * Owns: nothing, plain values.
 * Threads: any.
 * May include: lib/base.
 */
#include "lib/sandbox/limits.h"

#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

void limits_defaults(struct limits *ret_limits)
{
    *ret_limits = (struct limits){
        .timeout_s = 30,
        .memory_mb = 512,
        .pids = 256,
        .max_output_bytes = 64 * MIB,
    };
}

void limits_maxima(struct limits *ret_limits)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_size = sysconf(_SC_PAGESIZE);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t memory_mb = 1024;

    if (pages > 0 && page_size > 0) {
        memory_mb = (uint64_t)pages * (uint64_t)page_size / MIB / 2;
    }
    *ret_limits = (struct limits){
        .timeout_s = 3600,
        .memory_mb = memory_mb,
        .cpus = cores > 0 ? (double)cores : 1,
        .pids = 4096,
        .max_output_bytes = 256 * MIB,
    };
}

static int check_count(const char *pointer, uint64_t value, uint64_t maximum, struct err *err)
{
    if (maximum == 0 || (value != 0 && value <= maximum)) {
        return 0;
    }
    if (value == 0) {
        return err_field(err, ERR_LIMIT_EXCEEDS_MAXIMUM, pointer,
                         "no cap is asked for, and this server's maximum is %llu",
                         (unsigned long long)maximum);
    }
    return err_field(err, ERR_LIMIT_EXCEEDS_MAXIMUM, pointer,
                     "%llu is above this server's maximum of %llu", (unsigned long long)value,
                     (unsigned long long)maximum);
}

static int check_number(const char *pointer, double value, double maximum, struct err *err)
{
    if (maximum > 0 && value > maximum) {
        return err_field(err, ERR_LIMIT_EXCEEDS_MAXIMUM, pointer,
                         "%g is above this server's maximum of %g", value, maximum);
    }
    return 0;
}

int limits_check(const struct limits *limits, const struct limits *maxima, struct err *err)
{
    if (check_number("/timeoutS", limits->timeout_s, maxima->timeout_s, err) < 0 ||
        check_count("/memoryMb", limits->memory_mb, maxima->memory_mb, err) < 0 ||
        check_number("/cpus", limits->cpus, maxima->cpus, err) < 0 ||
        check_count("/pids", limits->pids, maxima->pids, err) < 0 ||
        check_count("/diskMb", limits->disk_mb, maxima->disk_mb, err) < 0) {
        return -1;
    }
    return check_count("/maxOutputBytes", limits->max_output_bytes, maxima->max_output_bytes, err);
}

int limits_check_cell(const struct limits *limits, const struct limits *maxima, struct err *err)
{
    if (check_number("/timeoutS", limits->timeout_s, maxima->timeout_s, err) < 0) {
        return -1;
    }
    return check_count("/maxOutputBytes", limits->max_output_bytes, maxima->max_output_bytes, err);
}
