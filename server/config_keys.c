/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: list the settings.
 * Owns: nothing.
 * Threads: any.
 * May include: config.h.
 */
#include "server/config_keys.h"

#include "server/config.h"

#define AT(member) offsetof(struct config, member)

const struct config_key config_keys_table[] = {
    { "listen", CONFIG_LIST, AT(listens), 0, 0, "ADDRESS",
      "127.0.0.1:PORT, [::1]:PORT or unix:PATH; may be repeated; port 0 lets the kernel choose" },
    { "allow_host", CONFIG_LIST, AT(hosts), 0, 0, "NAME[:PORT]",
      "a further name that clients may use in the Host field; may be repeated" },
    { "workspace_roots", CONFIG_LIST, AT(workspace_roots), 0, 0, "DIR",
      "callers' workspaces and mounts may only be below this one; may be repeated" },
    { "state", CONFIG_PATH, AT(state_dir), 0, 0, "DIR", "what must survive a restart" },
    { "runtime", CONFIG_PATH, AT(runtime_dir), 0, 0, "DIR",
      "socket, token, directories of live boxes" },
    { "library", CONFIG_PATH, AT(library_dir), 0, 0, "DIR",
      "where kernd-init and the drivers are" },
    { "engine", CONFIG_ENGINE, AT(engine), 0, 0, "NAME", "auto, kern or bubblewrap" },
    { "launcher", CONFIG_PATH, AT(launcher), 0, 0, "FILE",
      "the engine's program (bwrap with engine auto), else found in PATH" },
    { "kern", CONFIG_PATH, AT(kern), 0, 0, "FILE",
      "the program kern, else KERN_BIN or found in PATH" },
    { "image", CONFIG_TEXT, AT(image), 0, 0, "NAME",
      "the image of kern's boxes for which none is asked (python:3.12-slim)" },
    { "image_cache", CONFIG_PATH, AT(image_cache), 0, 0, "DIR",
      "below it, in kern/images, kern keeps images" },
    { "image_pull", CONFIG_SWITCH, AT(image_pull), 0, 0, NULL,
      "fetch images from their registries for those who ask (POST /v1/images/pull)" },
    { "user", CONFIG_TEXT, AT(user), 0, 0, "NAME",
      "the account to become when started as root (nobody)" },
    { "allow_root", CONFIG_SWITCH, AT(allow_root), 0, 0, NULL, "stay root when started as root" },
    { "hint", CONFIG_SWITCH, AT(hint), 0, 0, NULL, "print a curl line to paste when ready" },
    /* For tests alone: not shown. */
    { "mcp_test_tools", CONFIG_SWITCH, AT(mcp_test_tools), 0, 0, NULL, NULL },
    { "log_level", CONFIG_LEVEL, AT(log_level), 0, 0, "LEVEL", "error, warning, info or debug" },
    { "log_format", CONFIG_FORMAT, AT(log_json), 0, 0, "FORMAT", "text or json" },
    { "workers", CONFIG_COUNT, AT(capacity.workers), 1, 1024, "N",
      "boxes at work at the same time" },
    { "workers_per_caller", CONFIG_COUNT, AT(capacity.workers_per_caller), 1, 1024, "N",
      "those of one caller at most; the rest is kept for others" },
    { "workers_per_session", CONFIG_COUNT, AT(capacity.workers_per_session), 1, 1024, "N",
      "those of one session at most" },
    { "spares", CONFIG_COUNT, AT(spares), 0, 1024, "N",
      "boxes kept ready ahead of calls; 0: every call starts its own" },
    { "templates", CONFIG_COUNT, AT(templates), 0, 1, "0|1",
      "fork python boxes of a warm interpreter (1); 0: each box is booted" },
    { "queue", CONFIG_COUNT, AT(capacity.queue), 1, 100000, "N",
      "calls that may wait for a worker" },
    { "queue_per_caller", CONFIG_COUNT, AT(capacity.queue_per_caller), 1, 100000, "N",
      "those of one caller at most" },
    { "memory_budget_mb", CONFIG_COUNT, AT(capacity.memory_mb), 16, 1e9, "MIB",
      "what all boxes together may use; calls wait for it" },
    { "connections", CONFIG_COUNT, AT(connections), 8, 60000, "N",
      "clients connected at the same time" },
    { "max_upload_bytes", CONFIG_COUNT, AT(max_upload_bytes), 1, 1e15, "BYTES",
      "the largest file that is taken in one request" },
    { "snapshots_max_bytes", CONFIG_COUNT, AT(snapshots_max_bytes), 1, 1e15, "BYTES",
      "what all snapshots together may take" },
    { "snapshots_max_age_s", CONFIG_NUMBER, AT(snapshots_max_age_s), 1, 1e9, "SECONDS",
      "how long snapshots without a name are kept" },
    { "workspace_files", CONFIG_COUNT, AT(workspace_files), 1, 1e12, "N",
      "files and directories of a workspace, above which a run is stopped" },
    { "request_timeout_s", CONFIG_NUMBER, AT(request_timeout_s), 0.1, 3600, "SECONDS",
      "how long a client may take to send a request's head" },
    { "idle_exit", CONFIG_NUMBER, AT(idle_exit_s), 0, 1e9, "SECONDS",
      "ends after so long without anything to do; 0: never (300 when started on demand)" },
    { "on_demand", CONFIG_SWITCH, AT(on_demand), 0, 0, NULL,
      "clients start it when they need it: idle_exit is 300, a predecessor is waited for, and it "
      "has its Unix socket in any case" },
    { "grace_s", CONFIG_NUMBER, AT(grace_s), 0, 3600, "SECONDS",
      "how long work may go on after SIGTERM" },
    { "max_timeout_s", CONFIG_NUMBER, AT(maxima.timeout_s), 0.001, 1e6, "SECONDS",
      "largest timeoutS" },
    { "max_memory_mb", CONFIG_COUNT, AT(maxima.memory_mb), 1, 1e9, "MIB", "largest memoryMb" },
    { "max_cpus", CONFIG_NUMBER, AT(maxima.cpus), 0.01, 4096, "N", "largest cpus" },
    { "max_pids", CONFIG_COUNT, AT(maxima.pids), 1, 4e6, "N", "largest pids" },
    { "max_disk_mb", CONFIG_COUNT, AT(maxima.disk_mb), 1, 1e9, "MIB", "largest diskMb" },
    { "max_output_bytes", CONFIG_COUNT, AT(maxima.max_output_bytes), 1, 1e12, "BYTES",
      "largest maxOutputBytes" },
    { "default_timeout_s", CONFIG_NUMBER, AT(defaults.timeout_s), 0.001, 1e6, "SECONDS",
      "timeoutS of calls that give none" },
    { "default_memory_mb", CONFIG_COUNT, AT(defaults.memory_mb), 1, 1e9, "MIB",
      "memoryMb of calls that give none" },
    { "default_cpus", CONFIG_NUMBER, AT(defaults.cpus), 0.01, 4096, "N",
      "cpus of calls that give none" },
    { "default_pids", CONFIG_COUNT, AT(defaults.pids), 1, 4e6, "N",
      "pids of calls that give none" },
    { "default_disk_mb", CONFIG_COUNT, AT(defaults.disk_mb), 1, 1e9, "MIB",
      "diskMb of calls that give none" },
    { "default_output_bytes", CONFIG_COUNT, AT(defaults.max_output_bytes), 1, 1e12, "BYTES",
      "maxOutputBytes of calls that give none" },
};

#define COUNT (sizeof(config_keys_table) / sizeof(config_keys_table[0]))

_Static_assert(COUNT <= CONFIG_KEYS_MAX, "each key has a mark");

const size_t config_keys_count = COUNT;
