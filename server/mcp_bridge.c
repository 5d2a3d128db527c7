/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: carry messages between standard input and output and the server, which is started if need
 * be.
 * Owns: the connections to the server.
 * Threads: main, the only one.
 * May include: server, api/mcp_stdio.h, api/mcp_workspace.h, lib/base.
 */
#include "server/mcp_bridge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/mcp_stdio.h"
#include "api/mcp_workspace.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/hash.h"
#include "lib/base/id.h"
#include "lib/base/strv.h"
#include "lib/base/text.h"
#include "server/connect.h"
#include "server/mcp_install.h"
#include "server/mcp_post.h"

#define POSTS_MAX 32 /* at once; more lines wait */
#define LINE_MAX_SIZE ((size_t)16 << 20)
#define LINES_MAX ((size_t)256 << 20)
#define PIECE ((size_t)64 << 10)
#define LAST_ANSWERS_S 10.0 /* for answers after the end of input */
#define HEADERS_MAX ((size_t)16 << 10)
#define EXIT_USAGE 2
#define OWNER_SIZE 40
#define OWNER_DIGITS 24
#define WORKSPACE "--workspace"
#define WORKSPACE_READONLY ":ro"

struct bridge {
    struct connect way;
    struct mcp_workspace workspace;
    struct buf headers; /* of every request */
    struct mcp_post posts[POSTS_MAX];
    struct buf in; /* of standard input */
    bool skipping; /* a line that is too long */
    bool ended;    /* the end of input */
    int64_t deadline;
    struct buf lines; /* for standard output */
};

/* ---- lines ---- */

static struct mcp_post *free_post(struct bridge *bridge)
{
    for (size_t i = 0; i < POSTS_MAX; i++) {
        if (bridge->posts[i].fd < 0) {
            return &bridge->posts[i];
        }
    }
    return NULL;
}

static void refuse(struct bridge *bridge, const struct mcp_stdio_line *line, const char *message)
{
    mcp_stdio_error(&bridge->lines, line->id, line->unreadable, message);
    (void)buf_append(&bridge->lines, "\n", 1);
}

/* Posts never block. A server on TCP wants its token beside the headers of every request. */
static int dial(struct bridge *bridge, struct buf *ret_headers, struct err *err)
{
    CLEANUP_FD int fd = connect_open(&bridge->way, err);

    if (fd < 0 || connect_authorize(&bridge->way, ret_headers, err) < 0) {
        return -1;
    }
    (void)buf_append(ret_headers, bridge->headers.data, bridge->headers.size);
    if (fd_set_nonblocking(fd, true) < 0) {
        return err_set(err, ERR_IO, errno, "a connection: %s", err_errno_text(errno));
    }
    return CLEANUP_TAKE_FD(fd);
}

static void take_line(struct bridge *bridge, struct mcp_post *post, const char *text, size_t size)
{
    CLEANUP_BUF struct buf headers = BUF_INIT(HEADERS_MAX);
    struct buf body = BUF_INIT(LINE_MAX_SIZE);
    struct mcp_stdio_line line;
    struct err err = ERR_INIT;
    int fd;

    if (size == 0 || strspn(text, " \t\r") >= size) {
        return;
    }
    (void)buf_append(&body, text, size);
    mcp_stdio_read(body.data, body.size, &line);
    if (line.unreadable) {
        refuse(bridge, &line, "the line is not JSON");
    } else if ((fd = dial(bridge, &headers, &err)) >= 0) {
        mcp_post_begin(post, fd, headers.data, &line, &body);
    } else {
        (void)fprintf(stderr, "kernd mcp: %s\n", err.msg);
        if (line.id != NULL) {
            refuse(bridge, &line, err.msg);
        }
    }
    mcp_stdio_line_done(&line);
    buf_done(&body);
}

/* As many complete lines as can be worked on. */
static void take_lines(struct bridge *bridge)
{
    struct mcp_post *post;
    const char *newline;
    size_t size;

    while ((post = free_post(bridge)) != NULL && bridge->in.size > 0) {
        newline = memchr(bridge->in.data, '\n', bridge->in.size);
        if (newline == NULL && !bridge->ended) {
            return;
        }
        size = newline == NULL ? bridge->in.size : (size_t)(newline - bridge->in.data);
        if (!bridge->skipping) {
            take_line(bridge, post, bridge->in.data, size);
        }
        bridge->skipping = false;
        buf_consume(&bridge->in, newline == NULL ? size : size + 1);
    }
}

static void read_input(struct bridge *bridge)
{
    const struct mcp_stdio_line unknown = { .unreadable = true };
    char piece[PIECE];
    const ssize_t size = read(STDIN_FILENO, piece, sizeof(piece));

    if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN)) {
        bridge->ended = true;
        bridge->deadline = clock_deadline_after_s(LAST_ANSWERS_S);
    } else if (size > 0 && buf_append(&bridge->in, piece, (size_t)size) < 0) {
        /* Nothing but a line that is too long fills the buffer: its rest is dropped. */
        refuse(bridge, &unknown, "the line is above 16 MiB");
        buf_reset(&bridge->in);
        (void)buf_append(&bridge->in, piece, (size_t)size);
        bridge->skipping = true;
    }
}

/* ---- the loop ---- */

static int write_lines(struct bridge *bridge)
{
    const int result = fd_write_full(STDOUT_FILENO, bridge->lines.data, bridge->lines.size);

    buf_reset(&bridge->lines);
    return result;
}

/* What to wait for; standard input comes first. Returns how many. */
static nfds_t gather(struct bridge *bridge, struct pollfd *polls, struct mcp_post **posts)
{
    const bool takes = !bridge->ended && free_post(bridge) != NULL;
    nfds_t count = 1;

    polls[0] = (struct pollfd){ .fd = takes ? STDIN_FILENO : -1, .events = POLLIN };
    for (size_t i = 0; i < POSTS_MAX; i++) {
        if (bridge->posts[i].fd >= 0) {
            posts[count] = &bridge->posts[i];
            polls[count] = (struct pollfd){ .fd = bridge->posts[i].fd,
                                            .events = mcp_post_events(&bridge->posts[i]) };
            count++;
        }
    }
    return count;
}

/* False: there is nothing left to do. */
static bool step(struct bridge *bridge)
{
    struct pollfd polls[POSTS_MAX + 1];
    struct mcp_post *posts[POSTS_MAX + 1] = { NULL };
    const nfds_t count = gather(bridge, polls, posts);

    if (bridge->ended && (count == 1 || clock_passed(bridge->deadline))) {
        return false;
    }
    if (poll(polls, count, bridge->ended ? clock_poll_ms(bridge->deadline, -1) : -1) < 0) {
        return errno == EINTR;
    }
    for (nfds_t i = 1; i < count; i++) {
        if (polls[i].revents != 0) {
            (void)mcp_post_step(posts[i], &bridge->lines);
        }
    }
    if (polls[0].revents != 0) {
        read_input(bridge);
    }
    take_lines(bridge);
    return write_lines(bridge) == 0;
}

/* Agents of one place share what they make, also when their bridge is started anew; no others do.
 */
static void name_owner(const struct bridge *bridge, char out[static OWNER_SIZE])
{
    CLEANUP_FREE char *here = bridge->workspace.path == NULL ? getcwd(NULL, 0) : NULL;
    const char *place = bridge->workspace.path != NULL ? bridge->workspace.path : here;
    char digits[HASH_HEX_SIZE];

    place = place != NULL ? place : "/";
    hash_sha256_hex(place, strlen(place), digits);
    (void)snprintf(out, OWNER_SIZE, "bridge-%.*s", OWNER_DIGITS, digits);
}

/*
 * The socket's owner may do everything. What comes over this bridge was written by a model that
 * reads what strangers wrote: it gets the narrow scope, and what the command line gave it.
 */
static void make_headers(struct bridge *bridge)
{
    char client[ID_SIZE]; /* this process is one client */
    char owner[OWNER_SIZE];

    name_owner(bridge, owner);
    bridge->headers = BUF_INIT(HEADERS_MAX);
    (void)buf_printf(&bridge->headers,
                     "Mcp-Session-Id: %s\r\nKernd-Scope: run\r\nKernd-Owner: %s\r\n",
                     id_make("mcp", client), owner);
    mcp_workspace_write(&bridge->headers, &bridge->workspace);
}

static void run(struct bridge *bridge)
{
    for (size_t i = 0; i < POSTS_MAX; i++) {
        bridge->posts[i].fd = -1;
    }
    bridge->in = BUF_INIT(LINE_MAX_SIZE);
    bridge->lines = BUF_INIT(LINES_MAX);
    bridge->deadline = CLOCK_NEVER;
    make_headers(bridge);
    while (step(bridge)) {
    }
    /* The server ends what runs for a connection that is closed. */
    for (size_t i = 0; i < POSTS_MAX; i++) {
        mcp_post_drop(&bridge->posts[i]);
    }
    buf_done(&bridge->in);
    buf_done(&bridge->lines);
    buf_done(&bridge->headers);
}

/* ---- the command line ---- */

static int set_workspace(struct bridge *bridge, const char *value, struct err *err)
{
    CLEANUP_FREE char *path = alloc_text(value);
    struct stat status;

    mcp_workspace_done(&bridge->workspace);
    bridge->workspace.readonly = text_ends_with(path, WORKSPACE_READONLY);
    if (bridge->workspace.readonly) {
        path[strlen(path) - strlen(WORKSPACE_READONLY)] = '\0';
    }
    bridge->workspace.path = realpath(path, NULL);
    if (bridge->workspace.path == NULL || stat(bridge->workspace.path, &status) < 0 ||
        !S_ISDIR(status.st_mode)) {
        (void)err_set(err, ERR_BAD_VALUE, 0, "the workspace %.200s is no directory", path);
        return err_remedy(err, "name the directory that a session is to work in, with :ro behind "
                               "it if nothing may be written there");
    }
    return 0;
}

/* What is not ours stays, for connect_find. */
static int take_workspace(struct bridge *bridge, int count, char *const *arguments,
                          struct strv *ret_rest, struct err *err)
{
    for (int at = 0; at < count; at++) {
        const char *value = NULL;

        if (text_starts_with(arguments[at], WORKSPACE "=")) {
            value = arguments[at] + strlen(WORKSPACE "=");
        } else if (text_equal(arguments[at], WORKSPACE) && at + 1 < count) {
            value = arguments[++at];
        } else {
            strv_add(ret_rest, arguments[at]);
            continue;
        }
        if (set_workspace(bridge, value, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int find_server(struct bridge *bridge, const struct strv *rest, struct err *err)
{
    if (rest->count == 2 && text_equal(rest->items[0], "--socket")) {
        connect_at(&bridge->way, rest->items[1]);
        return 0;
    }
    return connect_find(&bridge->way, (int)rest->count, strv_argv(rest), err);
}

int mcp_bridge_main(int count, char *const *arguments)
{
    static struct bridge bridge;
    struct strv rest = { 0 };
    struct err err = ERR_INIT;
    int status = EXIT_SUCCESS;

    if (count > 0 && text_equal(arguments[0], "install")) {
        return mcp_install_main(count - 1, arguments + 1);
    }
    if (take_workspace(&bridge, count, arguments, &rest, &err) < 0 ||
        find_server(&bridge, &rest, &err) < 0) {
        (void)fprintf(stderr, "kernd mcp: %s\nkernd mcp: %s\n", err.msg, err.remedy);
        status = EXIT_USAGE;
    } else {
        run(&bridge);
    }
    connect_done(&bridge.way);
    mcp_workspace_done(&bridge.workspace);
    strv_done(&rest);
    return status;
}
