/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service: `kernd service`: the units of the user's own systemd.
 */
#ifndef KERND_SERVER_SERVICE_H
#define KERND_SERVER_SERVICE_H

/*
 * install [--tcp ADDRESS] [--print]: writes kernd.socket and kernd.service, with this program's
 * path, to ~/.config/systemd/user and enables the socket; --print: shows them only. uninstall:
 * stops and removes them. status: what systemd says of them.
 * The exit status: 0; 1: it failed; 2: wrong usage; status: 3 when the socket is not served.
 */
int service_main(int count, char *const *arguments);

#endif
