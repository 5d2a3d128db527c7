/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template: the parts of kernd-template.so, with which a warm interpreter makes boxes of itself.
 *
 * Every line of these files is a wall between boxes. An interpreter that ran nobody's code (the
 * template) sits in a box of its own, holds capabilities in that box's user namespace and nowhere
 * else, and forks on kernd's order:
 *
 *     template   makes a net namespace, before an order comes where there is time; clone3 into
 *      │         that one, new pid, mount, ipc and uts namespaces, and the order's cgroup; waits
 *      │         until PID 1, which is in its memory, has executed kernd-init (clone.h)
 *      └ PID 1   closes what is not its own, builds the mounts (template_mounts.c), leaves the user
 *        │       namespace for one without any capability over those, drops all, loads the filter
 *        │       (template_walls.c), forks, and becomes kernd-init by execve(2)
 *        └ 2     the program: limits, a session of its own, a connection of its own over which it
 *                tells kernd that it waits for code (template_program.c), back into the interpreter
 *
 * A standby does that in the template's place where there was time to make one: its fork was the
 * copy of memory, PID 1 and then the program are in it, and it is gone.
 *
 * All walls stand before process 2 is made, and kernd sends it nothing before kernd-init has said
 * that it is there. A step that fails ends the box before any code was handed to it.
 */
#ifndef KERND_BOX_TEMPLATE_H
#define KERND_BOX_TEMPLATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/box/template_wire.h"

#define TEMPLATE_FILTER_MAX ((size_t)64 * 1024)
#define TEMPLATE_PINS_MAX 32

struct template_filter {
    unsigned short count; /* instructions */
    char *program;
};

/* What a template knows once it has been looked at. */
struct template
{
    struct template_filter filter; /* its own, which its forks inherit */
    struct template_filter walls;  /* of each of its boxes, on top of that */
    char *pins[TEMPLATE_PINS_MAX]; /* what a box may reach beside what all have */
    size_t pin_count;
    uint64_t mount_namespace; /* inode number */
    const char *greeting;     /* what a program says first */
    size_t greeting_size;
    bool copies_ahead;    /* what programs write is copied by the fork */
    bool has_new_network; /* the network namespace that it is in is that of the next box */
    bool has_standbys;    /* it may have some (template_birth_can_give) */
    bool lost_standby;    /* the last one went without an order, and none has come since */
    bool was_ahead;       /* nobody waited for the last box */
    bool is_standby;      /* this process is one */
    int standby;          /* in both, their ends of a pipe; else of no meaning */
    int boxes[2];         /* the way of boxes of standbys to the template, which has both ends */
};

/* An order and what came with it. */
struct template_order {
    struct template_wire_fork fork;
    int fds[TEMPLATE_WIRE_FDS_MAX];
    size_t fd_count;
    bool outside; /* could not be born in its cgroup */
    int box;      /* pidfd of its PID 1, -1: none; not in a standby, which is gone by then */
};

/* The number of a program's connection to kernd. */
#define TEMPLATE_DRIVER 250

/*
 * May this process fork boxes? It has one thread, no descriptor beyond `connection`, no memory that
 * its children could write into, and namespaces that are its own and not the host's. NULL, or what
 * is wrong with it.
 */
const char *template_check(struct template *template, int connection);

/* The same for what may have changed since: one thread, and children that are reaped. */
const char *template_check_again(void);

/* Before it serves: so that less is left to be done in each fork. Does what it can. */
void template_pages_prepare(void);

/*
 * Of memory without a page of its own, as a library's code is, a fork copies no page tables
 * (vma_needs_copy() in mm/memory.c of the kernel): each child finds all that it uses there by
 * faults. This gives it one, by a write that changes nothing. memory: /proc/self/mem.
 */
void template_pages_own(int memory, uint64_t at);

/*
 * What a program writes in any case is found by one that is watched: a fork of this process that
 * does nothing and ends. A page that is shared with it is copied when it is written, by a fault of
 * some 2.7 us; one that is pinned, as a device might write to it, is copied by the fork itself, in
 * 1 us (folio_needs_cow_for_dma() in include/linux/mm.h of the kernel, since 5.9). Of libraries,
 * page tables are copied by forks where it used half of the pages or more.
 *
 * *ret_pid: 0 in the fork, which is to do what programs do, and to end with 0; -1: there is none.
 * template_study_end waits for its end, and frees. True: the pages are copied by forks from here
 * on.
 */
struct template_study;
struct template_study *template_study_fork(pid_t *ret_pid);
bool template_study_end(struct template_study *study, pid_t pid);

/*
 * The network namespace that a template is in is that of its next box, which is born in it, and of
 * no other box that lives: it is left for another one before there is another. It is new, or that
 * of a box that is gone with all its processes and of which the kernel tells that nothing is there
 * and nothing came to pass: no socket, no packet, no failure to send one. (A box has no capability
 * over it, so nothing else of it can have changed.) Making one, and taking it down, costs more than
 * all else that the kernel does for a box but its memory. Nothing of the template is in it: its
 * connection to kernd was made in the namespace that it was started in.
 *
 * template_network_renew: into such a one, with a loopback that is up, unless it is in one already;
 * false: there is none, errno tells why.
 * template_network_keep: it is now of that box (pidfd of its PID 1, which is taken), or, with -1,
 * of one that is not known: then it is nobody's again.
 */
bool template_network_renew(struct template *template);
void template_network_keep(struct template *template, int box);

/*
 * A fork of the template that is made before its order comes, once none has come for a moment:
 * memory is copied, and the interpreter has seen to what it sees to after a fork, when there is
 * time. It takes the next order itself, and gives its memory to the program of that box
 * (template_birth): it makes PID 1, and ends. Nothing of the memory is copied again, and who waits
 * for the box does not wait for a copy.
 *
 * template_standby_prepare: once, before the template leaves its own network namespace for those of
 * boxes, in which it is to have no socket. False: there can be no standbys.
 * template_standby_wanted: no order has come for a moment (a longer one, behind one that nobody
 * waited for); a network namespace is there then, too.
 * template_standby_fork: true in the template, is_standby in the other; false: there is none.
 * template_standby_tell: there is an order; in a standby, the template is told.
 * template_standby_hand_box: PID 1 of a standby's box gives a pidfd of itself to the template.
 * template_standby_end: a standby ends with that order not filled, or none; nothing elsewhere.
 * template_standby_await: in the template, until the standby is gone (from its memory, too). It
 * ends with the template. False: it went without an order, as it does when the connection ends, and
 * there will be no other before the template has filled one itself.
 */
bool template_standby_prepare(struct template *template);
bool template_standby_wanted(struct template *template, int connection);
bool template_standby_fork(struct template *template);
void template_standby_tell(struct template *template, const struct template_wire_fork *order);
void template_standby_hand_box(const struct template *template);
void template_standby_end(const struct template *template);
bool template_standby_await(struct template *template);

/*
 * Makes the box of an order. True in its program, which has all walls around it and is connected to
 * kernd: memory and stack are as they were, the process is another. False in the template, whether
 * there is a box now or not (what failed is on the order's standard error). A standby comes back
 * only when there is none.
 */
bool template_birth(const struct template *template, struct template_order *order);

/* Can a process give its memory away here (is_standby)? By the kernel's words of this one. */
bool template_birth_can_give(void);

/* "kernd-template: what: reason", in one write so that it stays one line. reason 0: refused. */
void template_birth_tell(int fd, const char *what, int reason);

/* ---- in PID 1 of the new box, in this order; NULL, or what could not be done (errno tells why) */

/* From the template's mounts to those of a box. */
const char *template_mounts_build(const struct template *template,
                                  const struct template_wire_fork *order);

/* A cgroup namespace, a user namespace of one user, no rights in it. */
const char *template_walls_leave(void);

/* The system call filter, with that of the template: the last step. */
const char *template_walls_filter(const struct template_filter *filter);

/* ---- in the program, its child */

/*
 * template_program_confine: Landlock, of the process alone. template_program_become, in memory that
 * nobody else is in: its only descriptors, its own session and limits, and the connection to kernd,
 * which is greeted unless kernd has something to say first. NULL, or what could not be done (errno
 * tells why).
 */
const char *template_program_confine(const struct template *template,
                                     const struct template_wire_fork *order, int ruleset);
const char *template_program_become(const struct template *template,
                                    const struct template_wire_fork *order);

/*
 * Before it goes back into the interpreter: a process in another's memory begins without what libc
 * has told the kernel of its thread (rseq_fork() in include/linux/rseq.h), and so do its children,
 * while libc goes on believing it. Where nothing was lost the kernel refuses this.
 */
void template_program_resume(void);

#endif
