/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: keep the settings; check every value as it is set.
 * Owns: the strings of struct config.
 * Threads: main, before any other starts.
 * May include: lib/base, limits.h.
 */
#include "server/config.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define SPARES 32
#define CONNECTIONS 512
#define REQUEST_S 60.0
#define GRACE_S 5.0
#define UPLOAD_BYTES (UINT64_C(16) << 30)

enum kind { LIST, PATH, TEXT, ENGINE, SWITCH, LEVEL, FORMAT, COUNT, NUMBER };

struct key {
    const char *name;
    enum kind kind;
    size_t offset;
    double low;
    double high;
    const char *value; /* as help shows it */
    const char *help;
};

#define AT(member) offsetof(struct config, member)

static const struct key keys[] = {
    { "listen", LIST, AT(listens), 0, 0, "ADDRESS",
      "127.0.0.1:PORT, [::1]:PORT or unix:PATH; may be repeated; port 0 lets the kernel choose" },
    { "allow_host", LIST, AT(hosts), 0, 0, "NAME[:PORT]",
      "a further name that clients may use in the Host field; may be repeated" },
    { "workspace_roots", LIST, AT(workspace_roots), 0, 0, "DIR",
      "callers' workspaces and mounts may only be below this one; may be repeated" },
    { "state", PATH, AT(state_dir), 0, 0, "DIR", "what must survive a restart" },
    { "runtime", PATH, AT(runtime_dir), 0, 0, "DIR", "socket, token, directories of live boxes" },
    { "library", PATH, AT(library_dir), 0, 0, "DIR", "where kernd-init and the drivers are" },
    { "engine", ENGINE, AT(engine), 0, 0, "NAME", "auto, kern or bubblewrap" },
    { "launcher", PATH, AT(launcher), 0, 0, "FILE", "the engine's program, else found in PATH" },
    { "user", TEXT, AT(user), 0, 0, "NAME", "the account to become when started as root (nobody)" },
    { "allow_root", SWITCH, AT(allow_root), 0, 0, NULL, "stay root when started as root" },
    { "hint", SWITCH, AT(hint), 0, 0, NULL, "print a curl line to paste when ready" },
    { "log_level", LEVEL, AT(log_level), 0, 0, "LEVEL", "error, warning, info or debug" },
    { "log_format", FORMAT, AT(log_json), 0, 0, "FORMAT", "text or json" },
    { "workers", COUNT, AT(workers), 1, 1024, "N", "boxes at work at the same time" },
    { "spares", COUNT, AT(spares), 0, 1024, "N",
      "boxes kept ready ahead of calls; 0: every call starts its own" },
    { "queue", COUNT, AT(queue), 1, 100000, "N", "calls that may wait for a worker" },
    { "connections", COUNT, AT(connections), 8, 60000, "N", "clients connected at the same time" },
    { "max_upload_bytes", COUNT, AT(max_upload_bytes), 1, 1e15, "BYTES",
      "the largest file that is taken in one request" },
    { "snapshots_max_bytes", COUNT, AT(snapshots_max_bytes), 1, 1e15, "BYTES",
      "what all snapshots together may take" },
    { "snapshots_max_age_s", NUMBER, AT(snapshots_max_age_s), 1, 1e9, "SECONDS",
      "how long snapshots without a name are kept" },
    { "request_timeout_s", NUMBER, AT(request_timeout_s), 0.1, 3600, "SECONDS",
      "how long a client may take to send a request's head" },
    { "grace_s", NUMBER, AT(grace_s), 0, 3600, "SECONDS", "how long work may go on after SIGTERM" },
    { "max_timeout_s", NUMBER, AT(maxima.timeout_s), 0.001, 1e6, "SECONDS", "largest timeoutS" },
    { "max_memory_mb", COUNT, AT(maxima.memory_mb), 1, 1e9, "MIB", "largest memoryMb" },
    { "max_cpus", NUMBER, AT(maxima.cpus), 0.01, 4096, "N", "largest cpus" },
    { "max_pids", COUNT, AT(maxima.pids), 1, 4e6, "N", "largest pids" },
    { "max_disk_mb", COUNT, AT(maxima.disk_mb), 1, 1e9, "MIB", "largest diskMb" },
    { "max_output_bytes", COUNT, AT(maxima.max_output_bytes), 1, 1e12, "BYTES",
      "largest maxOutputBytes" },
    { "default_timeout_s", NUMBER, AT(defaults.timeout_s), 0.001, 1e6, "SECONDS",
      "timeoutS of calls that give none" },
    { "default_memory_mb", COUNT, AT(defaults.memory_mb), 1, 1e9, "MIB",
      "memoryMb of calls that give none" },
    { "default_cpus", NUMBER, AT(defaults.cpus), 0.01, 4096, "N", "cpus of calls that give none" },
    { "default_pids", COUNT, AT(defaults.pids), 1, 4e6, "N", "pids of calls that give none" },
    { "default_disk_mb", COUNT, AT(defaults.disk_mb), 1, 1e9, "MIB",
      "diskMb of calls that give none" },
    { "default_output_bytes", COUNT, AT(defaults.max_output_bytes), 1, 1e12, "BYTES",
      "maxOutputBytes of calls that give none" },
};

#define KEY_COUNT (sizeof(keys) / sizeof(keys[0]))

void config_init(struct config *config)
{
    *config = (struct config){
        .engine = alloc_text("auto"),
        .log_level = LOG_INFO,
        .spares = SPARES,
        .connections = CONNECTIONS,
        .max_upload_bytes = UPLOAD_BYTES,
        .request_timeout_s = REQUEST_S,
        .grace_s = GRACE_S,
    };
}

void config_done(struct config *config)
{
    strv_done(&config->listens);
    strv_done(&config->hosts);
    strv_done(&config->workspace_roots);
    free(config->state_dir);
    free(config->runtime_dir);
    free(config->library_dir);
    free(config->engine);
    free(config->launcher);
    free(config->user);
    *config = (struct config){ .log_level = LOG_INFO };
}

static bool is_same_key(const char *given, const char *name)
{
    for (; *given != '\0' && *name != '\0'; given++, name++) {
        if (*given != *name && !(*given == '-' && *name == '_')) {
            return false;
        }
    }
    return *given == *name;
}

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (is_same_key(name, keys[i].name)) {
            return &keys[i];
        }
    }
    return NULL;
}

bool config_is_key(const char *key)
{
    return find_key(key) != NULL;
}

bool config_is_switch(const char *key)
{
    const struct key *found = find_key(key);

    return found != NULL && found->kind == SWITCH;
}

/* ---- one value ---- */

static int bad_value(const struct key *key, const char *wanted, struct err *err)
{
    return err_set(err, ERR_BAD_VALUE, 0, "%s must be %s", key->name, wanted);
}

static void replace_text(char **text, const char *value)
{
    free(*text);
    *text = alloc_text(value);
}

static int set_text(const struct key *key, char **text, const char *value, struct err *err)
{
    if (value[0] == '\0') {
        return bad_value(key, "given", err);
    }
    if (key->kind == ENGINE && !text_equal(value, "auto") && !text_equal(value, "kern") &&
        !text_equal(value, "bubblewrap")) {
        return bad_value(key, "auto, kern or bubblewrap", err);
    }
    replace_text(text, value);
    return 0;
}

static int set_switch(const struct key *key, bool *on, const char *value, struct err *err)
{
    if (!text_equal(value, "true") && !text_equal(value, "false")) {
        return bad_value(key, "true or false", err);
    }
    *on = text_equal(value, "true");
    return 0;
}

static int out_of_range(const struct key *key, struct err *err)
{
    return err_set(err, ERR_BAD_VALUE, 0, "%s must be a number from %.10g to %.10g", key->name,
                   key->low, key->high);
}

static int set_count(const struct key *key, uint64_t *field, const char *value, struct err *err)
{
    uint64_t count = 0;

    if (text_parse_u64(value, &count) < 0 || (double)count < key->low ||
        (double)count > key->high) {
        return out_of_range(key, err);
    }
    *field = count;
    return 0;
}

static int set_number(const struct key *key, double *field, const char *value, struct err *err)
{
    double number = 0;

    if (text_parse_double(value, &number) < 0 || number < key->low || number > key->high) {
        return out_of_range(key, err);
    }
    *field = number;
    return 0;
}

static int set_log(const struct key *key, struct config *config, const char *value, struct err *err)
{
    if (key->kind == LEVEL) {
        return log_level_parse(value, &config->log_level) == 0
                   ? 0
                   : bad_value(key, "error, warning, info or debug", err);
    }
    if (!text_equal(value, "text") && !text_equal(value, "json")) {
        return bad_value(key, "text or json", err);
    }
    config->log_json = text_equal(value, "json");
    return 0;
}

int config_set(struct config *config, const char *name, const char *value, struct err *err)
{
    const struct key *key = find_key(name);
    void *field = key != NULL ? (char *)config + key->offset : NULL;

    if (key == NULL) {
        return err_set(err, ERR_BAD_VALUE, 0, "there is no setting called %.40s", name);
    }
    switch (key->kind) {
    case LIST:
        if (value[0] == '\0') {
            return bad_value(key, "given", err);
        }
        if (field == &config->workspace_roots && value[0] != '/') {
            return bad_value(key, "an absolute path", err);
        }
        strv_add(field, value);
        return 0;
    case PATH:
    case TEXT:
    case ENGINE:
        return set_text(key, field, value, err);
    case SWITCH:
        return set_switch(key, field, value, err);
    case LEVEL:
    case FORMAT:
        return set_log(key, config, value, err);
    case COUNT:
        return set_count(key, field, value, err);
    case NUMBER:
        return set_number(key, field, value, err);
    }
    return -1;
}

void config_clear_list(struct config *config, const char *name)
{
    const struct key *key = find_key(name);

    if (key != NULL && key->kind == LIST) {
        strv_done((struct strv *)(void *)((char *)config + key->offset));
    }
}

/* ---- the file ---- */

/* Cuts blanks off both ends of a line's part, in place. */
static char *trim(char *text)
{
    size_t length;

    text += strspn(text, " \t");
    length = strlen(text);
    while (length > 0 && strchr(" \t\r", text[length - 1]) != NULL) {
        length--;
    }
    text[length] = '\0';
    return text;
}

static int parse_line(struct config *config, char *line, uint64_t *seen, struct err *err)
{
    char *text = trim(line);
    char *equals = strchr(text, '=');
    const struct key *key;

    if (text[0] == '\0' || text[0] == '#') {
        return 0;
    }
    if (equals == NULL) {
        return err_set(err, ERR_BAD_VALUE, 0, "a line must be 'key = value'");
    }
    *equals = '\0';
    text = trim(text);
    key = find_key(text);
    if (key != NULL && key->kind != LIST) {
        uint64_t bit = UINT64_C(1) << (key - keys);

        if ((*seen & bit) != 0) {
            return err_set(err, ERR_BAD_VALUE, 0, "%s is given twice", key->name);
        }
        *seen |= bit;
    }
    return config_set(config, text, trim(equals + 1), err);
}

int config_parse(struct config *config, const char *name, const char *text, struct err *err)
{
    uint64_t seen = 0;
    size_t number = 1;

    _Static_assert(KEY_COUNT <= 64, "seen has a bit for each key");
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        CLEANUP_FREE char *line = alloc_copy(text, length);

        if (parse_line(config, line, &seen, err) < 0) {
            return err_prefix(err, "%s:%zu", name, number);
        }
        text += length + (text[length] == '\n' ? 1 : 0);
        number++;
    }
    return 0;
}

int config_load(struct config *config, const char *path, struct err *err)
{
    size_t size = 0;
    CLEANUP_FREE char *text = fd_read_file(path, FILE_BYTES_MAX, &size);

    if (text == NULL) {
        return err_set(err, ERR_IO, errno, "%s: %s", path, err_errno_text(errno));
    }
    if (strlen(text) != size) {
        return err_set(err, ERR_BAD_VALUE, 0, "%s: not a text file", path);
    }
    return config_parse(config, path, text, err);
}

void config_help(FILE *out)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        CLEANUP_FREE char *option =
            alloc_printf("--%s%s%s", keys[i].name, keys[i].value != NULL ? " " : "",
                         keys[i].value != NULL ? keys[i].value : "");

        for (char *at = option; *at != '\0' && *at != ' '; at++) {
            if (*at == '_') {
                *at = '-';
            }
        }
        (void)fprintf(out, "  %-30s %s\n", option, keys[i].help);
    }
}
