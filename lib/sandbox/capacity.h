/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity: how much may run at the same time here: threads, shares of callers, memory.
 */
#ifndef KERND_SANDBOX_CAPACITY_H
#define KERND_SANDBOX_CAPACITY_H

#include <stddef.h>
#include <stdint.h>

struct budget_claim;
struct limits;
struct pool_rules;
struct sandbox;

/* Zero fields: to be chosen. */
struct capacity {
    uint64_t workers;             /* executions that run at the same time */
    uint64_t workers_per_caller;  /* those of one caller */
    uint64_t workers_per_session; /* those of one session, and those of a caller without any */
    uint64_t queue;               /* executions that wait for a worker */
    uint64_t queue_per_caller;
    uint64_t memory_mb; /* what all boxes together may use */
};

/*
 * Fills zero fields in from this host's cores and memory (or that of the cgroup it runs in) and
 * cuts what is above the field that bounds it. Reads /proc and the cgroup tree.
 */
void capacity_choose(struct capacity *capacity);

/* The rules of the run lane. Pure but for the number of cores. */
void capacity_rules(const struct capacity *capacity, struct pool_rules *ret_rules);

/* MiB that this process can have: the host's, or less where a cgroup above it says so. */
uint64_t capacity_host_memory_mb(void);

/* Bytes that a box with these limits may use. Pure. */
uint64_t capacity_need(const struct limits *limits);

/* The group of the run lane (turns.h) in which the calls of a session are; "": of none. Pure. */
uint64_t capacity_group(const char *session_id);

/* Lowers a claim on the memory of all boxes, and lets those start that now fit. */
void capacity_give(struct sandbox *sandbox, struct budget_claim *claim, uint64_t bytes);

#endif
