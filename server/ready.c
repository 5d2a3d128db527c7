/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: announce that the daemon is ready, or why it is not.
 * Owns: nothing.
 * Threads: main.
 * May include: server, lib/base.
 */
#include "server/ready.h"

#include <stdio.h>
#include <unistd.h>

#define EXAMPLE                                \
    "-H 'Content-Type: application/json' \\\n" \
    "    -d '{\"language\":\"python\",\"code\":\"print(6 * 7)\"}'"

static void print_hint(const struct listen_set *listens, const char *token_path)
{
    const struct listen_socket *socket = &listens->sockets[0];

    for (size_t i = 0; i < listens->count && !socket->tcp; i++) {
        socket = &listens->sockets[i];
    }
    if (socket->tcp) {
        (void)printf("try: curl -s %s/v1/runCode -H \"Authorization: Bearer $(cat %s)\" " EXAMPLE
                     "\n",
                     socket->name, token_path);
    } else {
        (void)printf("try: curl -s --unix-socket %s http://localhost/v1/runCode " EXAMPLE "\n",
                     socket->name);
    }
}

void ready_announce(const struct config *config, const struct listen_set *listens,
                    const char *token_path)
{
    (void)printf("ready");
    for (size_t i = 0; i < listens->count; i++) {
        (void)printf(" %s=%s", listens->sockets[i].tcp ? "url" : "socket",
                     listens->sockets[i].name);
    }
    (void)printf(" token=%s\n", token_path);
    if (config->hint || isatty(STDOUT_FILENO) == 1) {
        print_hint(listens, token_path);
    }
    (void)fflush(stdout);
}

void ready_failed(const struct err *err)
{
    (void)fprintf(stderr, "kernd: %s\n", err->msg);
    if (err->remedy[0] != '\0') {
        (void)fprintf(stderr, "kernd: %s\n", err->remedy);
    }
}
