/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remedy: why a launcher could not start a box, and what the owner of the host can do about it.
 */
#ifndef KERND_BOX_REMEDY_H
#define KERND_BOX_REMEDY_H

#include <stdbool.h>

#include "lib/base/err.h"

/* What the host says about itself; read by remedy_host_read, made up by tests. */
struct remedy_host {
    long userns_clone;        /* kernel.unprivileged_userns_clone, -1: no such setting */
    long max_user_namespaces; /* user.max_user_namespaces, -1 unknown */
    long apparmor_userns;     /* kernel.apparmor_restrict_unprivileged_userns, -1: none */
    bool in_container;
};

void remedy_host_read(struct remedy_host *ret_host);

/* Sets the remedy of a host that gives boxes no user namespace. Pure. */
void remedy_namespaces(const struct remedy_host *host, struct err *err);

/* Do these words of a launcher mean that no user namespace with its rights is to be had? Pure. */
bool remedy_namespaces_refused(const char *words);

/* The last of these words as one line that is fit for a client; the caller frees. Pure. */
char *remedy_line(const char *words);

/*
 * Sets err from the launcher's words (its stderr; may be empty) and how it ended: code
 * ENGINE_UNAVAILABLE with a remedy naming the setting, profile or package when the host can't run
 * boxes at all, else BOX_START_FAILED. exit_text: "exit 1", "signal 9", "" unknown. Pure. Returns
 * -1.
 */
int remedy_explain(const char *words, const char *exit_text, const struct remedy_host *host,
                   struct err *err);

#endif
