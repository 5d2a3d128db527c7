/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: put the parts together, wait for events, take the parts down in the right order.
 * Owns: every part of the running daemon.
 * Threads: main.
 * May include: server, api.h, sandbox.h, lib/base.
 */
#include "server/daemon.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "api/api.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/pool.h"
#include "lib/sandbox/sandbox.h"
#include "server/engines.h"
#include "server/http.h"
#include "server/idle.h"
#include "server/listen.h"
#include "server/notify.h"
#include "server/places.h"
#include "server/privilege.h"
#include "server/process.h"
#include "server/ready.h"
#include "server/settle.h"

#define LANE_THREADS 2
#define LANE_AWAY 64 /* of them, and then of others, with cells that they have decoded */
#define LANE_QUEUE 1024
#define TICK_MS 500
#define DRAIN_TICK_MS 20
#define FLUSH_MS 1500 /* for replies that are ready to reach their clients */
#define EVENTS_AT_ONCE 16

/* What an event of the main epoll set is about; listeners follow LISTENER in their order. */
enum { SIGNALS, HANGUPS, LISTENER };

struct daemon {
    struct config *config;
    struct settle settle;
    struct listen_set listens;
    struct sandbox *sandbox;
    struct api *api;
    struct pool *lane;
    struct http *http;
    int signals;
    int epoll;
    int64_t next_tick;
    struct idle idle;
    bool accept_paused; /* no descriptor is left: until the next tick */
    unsigned stops;     /* signals received */
};

/* ---- start ---- */

static int open_listeners(struct daemon *daemon, struct err *err)
{
    const struct config *config = daemon->config;

    if (listen_open_all(&daemon->listens, &config->listens, config->runtime_dir, config->on_demand,
                        err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < daemon->listens.count; i++) {
        if (!listen_is_local(&daemon->listens.sockets[i])) {
            log_line(LOG_WARNING, "other machines can reach this address, without encryption",
                     "url", daemon->listens.sockets[i].name, NULL);
        }
    }
    return 0;
}

static int open_sandbox(struct daemon *daemon, struct err *err)
{
    const struct config *config = daemon->config;
    struct privilege_account account;
    struct sandbox_config sandbox_config = {
        .home = account.home,
        .workspace_roots = config->workspace_roots.count > 0
                               ? (const char *const *)config->workspace_roots.items
                               : NULL,
        .render = api_render,
        .state_dir = config->state_dir,
        .runtime_dir = config->runtime_dir,
        .library_dir = config->library_dir,
        .capacity = config->capacity,
        .spares_max = config->spares,
        .templates = config->templates != 0,
        .snapshots_max_bytes = config->snapshots_max_bytes,
        .snapshots_max_age_s = config->snapshots_max_age_s,
        .workspace_files = config->workspace_files,
        .confine = true,
        .maxima = config->maxima,
        .defaults = config->defaults,
    };

    privilege_current(&account);
    engines_configure(config, &sandbox_config);
    return sandbox_open(&sandbox_config, &daemon->sandbox, err);
}

static int open_http(struct daemon *daemon, struct err *err)
{
    const struct http_config http_config = {
        .api = daemon->api,
        .lane = daemon->lane,
        .token = &daemon->settle.token,
        .hosts = &daemon->config->hosts,
        .spool_dir = daemon->config->state_dir,
        .upload_max = daemon->config->max_upload_bytes,
        .connections_max = daemon->config->connections,
        .request_timeout_s = daemon->config->request_timeout_s,
    };

    return http_start(&http_config, &daemon->http, err);
}

static int watch(struct daemon *daemon, int fd, uint64_t what, struct err *err)
{
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = what };

    if (epoll_ctl(daemon->epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
        return err_set(err, ERR_IO, errno, "epoll_ctl: %s", err_errno_text(errno));
    }
    return 0;
}

static int watch_listeners(struct daemon *daemon, struct err *err)
{
    for (size_t i = 0; i < daemon->listens.count; i++) {
        if (watch(daemon, daemon->listens.sockets[i].fd, LISTENER + i, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Closing is not enough: an inherited socket stays open elsewhere, and so in the set (epoll(7)). */
static void unwatch_listeners(struct daemon *daemon)
{
    for (size_t i = 0; i < daemon->listens.count; i++) {
        (void)epoll_ctl(daemon->epoll, EPOLL_CTL_DEL, daemon->listens.sockets[i].fd, NULL);
    }
    daemon->accept_paused = false;
}

static int open_loop(struct daemon *daemon, struct err *err)
{
    daemon->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (daemon->epoll < 0) {
        return err_set(err, ERR_IO, errno, "epoll_create1: %s", err_errno_text(errno));
    }
    if (watch(daemon, daemon->signals, SIGNALS, err) < 0 ||
        watch(daemon, http_fd(daemon->http), HANGUPS, err) < 0) {
        return -1;
    }
    return watch_listeners(daemon, err);
}

static int start(struct daemon *daemon, struct err *err)
{
    /* The signals first: every thread inherits their being blocked. */
    daemon->signals = process_signals(err);
    if (daemon->signals < 0 || settle_open(daemon->config, &daemon->settle, err) < 0 ||
        open_listeners(daemon, err) < 0 || open_sandbox(daemon, err) < 0) {
        return -1;
    }
    daemon->api = api_new(daemon->sandbox, daemon->config->mcp_test_tools, err);
    if (daemon->api == NULL) {
        return -1;
    }
    daemon->lane = pool_new("kernd-quick", LANE_THREADS, LANE_QUEUE, err);
    if (daemon->lane == NULL) {
        return -1;
    }
    pool_let_go(daemon->lane, LANE_AWAY);
    return open_http(daemon, err) == 0 && open_loop(daemon, err) == 0 ? 0 : -1;
}

/* ---- serve ---- */

static void set_accepting(struct daemon *daemon, bool on)
{
    for (size_t i = 0; i < daemon->listens.count; i++) {
        struct epoll_event event = { .events = on ? EPOLLIN : 0, .data.u64 = LISTENER + i };

        (void)epoll_ctl(daemon->epoll, EPOLL_CTL_MOD, daemon->listens.sockets[i].fd, &event);
    }
    daemon->accept_paused = !on;
}

static void handle_event(struct daemon *daemon, uint64_t what)
{
    if (what == SIGNALS) {
        daemon->stops += process_read_signals(daemon->signals);
    } else if (what == HANGUPS) {
        http_dispatch(daemon->http);
    } else if (http_accept(daemon->http, daemon->listens.sockets[what - LISTENER].fd) < 0) {
        log_line(LOG_WARNING, "no descriptor is left for another client", NULL);
        set_accepting(daemon, false);
    }
}

static void tick(struct daemon *daemon)
{
    if (!clock_passed(daemon->next_tick)) {
        return;
    }
    daemon->next_tick = clock_deadline_after_ms(TICK_MS);
    http_tick(daemon->http);
    if (daemon->accept_paused) {
        set_accepting(daemon, true);
    }
}

/* Waits for events, at most timeout_ms (-1: for ever), and handles them. False: there were none. */
static bool handle_events(struct daemon *daemon, int timeout_ms)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int count = epoll_wait(daemon->epoll, events, EVENTS_AT_ONCE, timeout_ms);

    for (int i = 0; i < count; i++) {
        handle_event(daemon, events[i].data.u64);
    }
    tick(daemon);
    return count > 0;
}

static bool is_idle(struct daemon *daemon)
{
    return http_connections(daemon->http) == 0 && http_exchanges(daemon->http) == 0 &&
           !daemon->accept_paused && sandbox_idle(daemon->sandbox);
}

/* Takes in who waits at a door, until somebody is in. False: it can't be known whether one waits.
 */
static bool look_out(struct daemon *daemon)
{
    for (size_t i = 0; i < daemon->listens.count; i++) {
        int taken = 1;

        while (taken > 0 && http_connections(daemon->http) == 0) {
            taken = http_accept(daemon->http, daemon->listens.sockets[i].fd);
        }
        if (taken < 0) {
            return false;
        }
    }
    return true;
}

/*
 * Closes the doors, then looks whether somebody came in before: true when nobody did, and the
 * daemon may end. Who comes later finds the path refused, and starts the next daemon; who comes by
 * an inherited socket waits in its queue for that one.
 */
static bool leave(struct daemon *daemon)
{
    struct err err = ERR_INIT;

    unwatch_listeners(daemon);
    listen_shut(&daemon->listens);
    if (look_out(daemon) && is_idle(daemon)) {
        log_line(LOG_INFO, "nothing to do", NULL);
        return true;
    }
    idle_touch(&daemon->idle);
    if (listen_reopen(&daemon->listens, &err) == 0 && watch_listeners(daemon, &err) == 0) {
        return false;
    }
    log_line(LOG_ERROR, "clients can't get in any more", "why", err.msg, NULL);
    return true;
}

/* How long to sleep; the end of work that no connection waits for is seen by looking. */
static int longest_sleep(struct daemon *daemon, bool is_quiet)
{
    const bool looks = daemon->idle.limit_s > 0 && !sandbox_idle(daemon->sandbox);

    return idle_wait_ms(&daemon->idle, is_quiet && !looks ? -1 : TICK_MS);
}

static void serve(struct daemon *daemon)
{
    bool is_quiet = false;

    while (daemon->stops == 0 && (!idle_is_over(&daemon->idle) || !leave(daemon))) {
        const bool had_events = handle_events(daemon, longest_sleep(daemon, is_quiet));

        if (had_events) {
            idle_meet(&daemon->idle);
        }
        /* A client just accepted is counted a moment later: one more tick before sleeping. */
        is_quiet = !had_events && http_connections(daemon->http) == 0 && !daemon->accept_paused;
        if (!is_quiet || !sandbox_idle(daemon->sandbox)) {
            idle_touch(&daemon->idle);
        }
    }
}

/* ---- stop ---- */

static bool is_quiet(struct daemon *daemon)
{
    struct sandbox_stats stats;

    sandbox_stats(daemon->sandbox, &stats);
    return http_is_quiet(daemon->http) && stats.running == 0 && stats.queued == 0;
}

static void wait_until_quiet(struct daemon *daemon, int64_t deadline, unsigned stops)
{
    while (!is_quiet(daemon) && !clock_passed(deadline) && daemon->stops <= stops) {
        (void)handle_events(daemon, DRAIN_TICK_MS);
    }
}

/*
 * New clients and requests are refused; what runs may go on for the grace time (a second signal
 * ends it); the rest is cancelled, so that every request gets its answer and no connection stays
 * suspended, which libmicrohttpd would not survive.
 */
static void drain(struct daemon *daemon)
{
    int64_t deadline = clock_deadline_after_s(daemon->config->grace_s);

    log_line(LOG_INFO, "stopping", NULL);
    notify_send("STOPPING=1");
    unwatch_listeners(daemon);
    listen_close(&daemon->listens);
    http_refuse(daemon->http);
    wait_until_quiet(daemon, deadline, daemon->stops);
    sandbox_drain(daemon->sandbox, clock_mono_ns());
    wait_until_quiet(daemon, clock_deadline_after_ms(FLUSH_MS), UINT_MAX);
    http_cancel(daemon->http);
    pool_end(daemon->lane); /* not freed: the rest of an upload may still come */
    wait_until_quiet(daemon, clock_deadline_after_ms(FLUSH_MS), UINT_MAX);
}

/* Also takes down a daemon whose start failed half-way. */
static void stop(struct daemon *daemon)
{
    listen_close(&daemon->listens);
    if (daemon->http != NULL) {
        http_stop(daemon->http);
    }
    pool_free(daemon->lane);
    api_free(daemon->api);
    if (daemon->sandbox != NULL) {
        sandbox_close(daemon->sandbox);
    }
    fd_clear(&daemon->epoll);
    fd_clear(&daemon->signals);
    settle_done(&daemon->settle);
}

int daemon_run(struct config *config)
{
    struct daemon daemon = {
        .config = config,
        .settle = { .lock = -1 },
        .signals = -1,
        .epoll = -1,
    };
    struct err err = ERR_INIT;
    const unsigned inherited = listen_inherited_count();
    int status = EXIT_FAILURE;

    process_prepare(inherited);
    log_setup(config->log_level, config->log_json);
    if (start(&daemon, &err) < 0) {
        ready_failed(&err);
    } else {
        ready_announce(config, &daemon.listens, daemon.settle.token_path);
        notify_send("READY=1");
        idle_init(&daemon.idle, config, inherited > 0);
        serve(&daemon);
        drain(&daemon);
        status = EXIT_SUCCESS;
    }
    stop(&daemon);
    if (status == EXIT_SUCCESS) {
        log_line(LOG_INFO, "stopped", NULL);
    }
    return status;
}
