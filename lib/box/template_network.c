/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: have a new network namespace for each box, before its order comes where there is time.
 * Owns: the network namespace of the template.
 * Threads: one.
 * May include: base, template.
 */
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/base/fd.h"
#include "lib/box/template.h"

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

bool template_network_renew(struct template *template)
{
    if (!template->has_new_network) {
        template->has_new_network = unshare(CLONE_NEWNET) == 0 && raise_loopback();
    }
    return template->has_new_network;
}
