/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: have a network namespace for each box in which nothing has happened yet, before its order
 *      comes where there is time.
 * Owns: the network namespaces of boxes, those that ended included.
 * Threads: one.
 * May include: base, template.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/box/template.h"

/* Of so many boxes at most: one namespace takes the kernel some 180 KiB. */
#define NETWORKS_MAX 16
/* Of one file of /proc/net. */
#define RECORD_MAX 8192
/* What the kernel says where no socket is, in the first line of many. */
#define SOCKSTAT_NONE "sockets: used 0\n"

/* One that a box was born in, and that box: descriptors. */
struct network {
    int namespace;
    int box; /* pidfd of its PID 1 */
};

/*
 * What the kernel tells of a network namespace: packets of its interfaces, counters of what failed
 * or came without one, too, and the one thing that may outlive its socket without either
 * (IPV6_FLOWLABEL_MGR). Nothing else can be changed without a capability over it.
 */
static const char *const names[] = { "dev", "snmp", "snmp6", "netstat", "ip6_flowlabel" };

#define RECORDS (sizeof(names) / sizeof(names[0]))

/* As it is in a new one. */
struct record {
    char text[RECORD_MAX];
    size_t size;
};

static struct {
    struct network kept[NETWORKS_MAX]; /* oldest first */
    size_t count;
    struct record records[RECORDS];
    bool may_keep;   /* records are there */
    bool is_settled; /* may_keep is known */
    int current;     /* the namespace that the template is in, while it is of no box */
} networks = { .current = -1 };

/* ---- a new one ---- */

/* The kernel gives it its addresses when it comes up (net/ipv4/devinet.c, inetdev_event). */
static bool raise_loopback(void)
{
    struct ifreq request = { .ifr_name = "lo" };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool up = false;

    if (fd >= 0) {
        request.ifr_flags = IFF_UP | IFF_RUNNING;
        up = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    }
    fd_close(fd);
    return up;
}

/* ---- what is known of one ---- */

static int open_record(const char *name)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/net/%s", name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* A file that this kernel has not is as if it were empty. */
static bool read_record(const char *name, struct record *record)
{
    int fd = open_record(name);
    ssize_t got = 0;

    record->size = 0;
    if (fd < 0) {
        return errno == ENOENT;
    }
    while (record->size < sizeof(record->text) &&
           (got = read(fd, record->text + record->size, sizeof(record->text) - record->size)) > 0) {
        record->size += (size_t)got;
    }
    fd_close(fd);
    return got == 0;
}

static bool is_as_in(const struct record *record, const char *name)
{
    static char now[RECORD_MAX];
    int fd = open_record(name);
    size_t size = 0;
    ssize_t got = 0;

    if (fd < 0) {
        return errno == ENOENT && record->size == 0;
    }
    while (size <= record->size && (got = read(fd, now, sizeof(now))) > 0) {
        if ((size_t)got > record->size - size ||
            memcmp(now, record->text + size, (size_t)got) != 0) {
            got = -1;
            break;
        }
        size += (size_t)got;
    }
    fd_close(fd);
    return got == 0 && size == record->size;
}

static bool has_no_socket(void)
{
    char line[sizeof(SOCKSTAT_NONE) - 1];
    int fd = open_record("sockstat");
    bool none = fd >= 0 && read(fd, line, sizeof(line)) == (ssize_t)sizeof(line) &&
                memcmp(line, SOCKSTAT_NONE, sizeof(line)) == 0;

    fd_close(fd);
    return none;
}

/* Of the one that the template is in. */
static bool is_untouched(void)
{
    bool untouched = has_no_socket();

    for (size_t i = 0; i < RECORDS && untouched; i++) {
        untouched = is_as_in(&networks.records[i], names[i]);
    }
    return untouched;
}

/*
 * The host's root, with whatever capabilities, may write to the settings of any network namespace
 * (net_ctl_permissions() in net/sysctl_net.c, test_perm() in fs/proc/proc_sysctl.c), and no record
 * tells of that. Files of /proc/sys that are of no namespace are that user's.
 */
static bool is_root(void)
{
    struct stat settings;

    return stat("/proc/sys/kernel/ostype", &settings) < 0 || settings.st_uid == geteuid();
}

/* Once, in the first one. */
static void settle(void)
{
    networks.is_settled = true;
    networks.may_keep = !is_root() && has_no_socket();
    for (size_t i = 0; i < RECORDS && networks.may_keep; i++) {
        networks.may_keep = read_record(names[i], &networks.records[i]);
    }
}

/* ---- those of boxes ---- */

/* Nobody is in it, and its number is forgotten. */
static void forget(size_t index)
{
    fd_close(networks.kept[index].namespace);
    fd_close(networks.kept[index].box);
    networks.count--;
    memmove(&networks.kept[index], &networks.kept[index + 1],
            (networks.count - index) * sizeof(networks.kept[0]));
}

/*
 * PID 1 of a box can be waited for when every process of it was, and not before
 * (zap_pid_ns_processes() in kernel/pid_namespace.c, before do_notify_pidfd() in kernel/signal.c).
 */
static bool has_ended(const struct network *network)
{
    struct pollfd watched = { .fd = network->box, .events = POLLIN };

    return poll(&watched, 1, 0) == 1 && (watched.revents & POLLIN) != 0;
}

/* Into one whose box is gone and did nothing that could be seen. */
static bool take_kept(void)
{
    for (size_t i = 0; i < networks.count;) {
        if (!has_ended(&networks.kept[i])) {
            i++;
            continue;
        }
        if (setns(networks.kept[i].namespace, CLONE_NEWNET) == 0 && is_untouched()) {
            networks.current = networks.kept[i].namespace;
            networks.kept[i].namespace = -1;
            forget(i);
            return true;
        }
        forget(i);
    }
    return false;
}

static bool make(void)
{
    if (unshare(CLONE_NEWNET) < 0 || !raise_loopback()) {
        return false;
    }
    if (!networks.is_settled) {
        settle();
    }
    networks.current = networks.may_keep ? open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC) : -1;
    return true;
}

bool template_network_renew(struct template *template)
{
    if (!template->has_new_network) {
        template->has_new_network = take_kept() || make();
    }
    return template->has_new_network;
}

void template_network_keep(struct template *template, int box)
{
    const struct network network = { .namespace = networks.current, .box = box };

    template->has_new_network = false;
    networks.current = -1;
    if (network.namespace < 0 || network.box < 0) {
        fd_close(network.namespace);
        fd_close(network.box);
        return;
    }
    if (networks.count == NETWORKS_MAX) {
        forget(0);
    }
    networks.kept[networks.count++] = network;
}
