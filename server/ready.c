/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: announce that the daemon is ready, or why it is not.
 * Owns: nothing.
 * Threads: main.
 * May include: server, lib/base.
 */
#include "server/ready.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"

#define TEXT_MAX ((size_t)8192)
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

/* "url=http://127.0.0.1:5376 socket=PATH token=PATH", a fresh text. */
static char *describe(const struct listen_set *listens, const char *token_path)
{
    CLEANUP_BUF struct buf text = BUF_INIT(TEXT_MAX);

    for (size_t i = 0; i < listens->count; i++) {
        (void)buf_printf(&text, "%s=%s ", listens->sockets[i].tcp ? "url" : "socket",
                         listens->sockets[i].name);
    }
    (void)buf_printf(&text, "token=%s\n", token_path);
    return buf_take(&text, NULL);
}

void ready_announce(const struct config *config, const struct listen_set *listens,
                    const char *token_path)
{
    CLEANUP_FREE char *text = describe(listens, token_path);
    CLEANUP_FREE char *path = alloc_printf("%s/ready", config->runtime_dir);

    /* For `kernd status`, which can do without. */
    (void)fd_write_file(path, text, strlen(text), 0600);
    (void)printf("ready %s", text);
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
