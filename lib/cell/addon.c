/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: kernd-node.so, an add-on of node: what driver.js can't do in JavaScript.
 * Owns: nothing.
 * Threads: node's main one.
 * May include: nothing of kernd; it runs in an interpreter that is not ours.
 *
 * The few functions of node's that it needs are declared here as node_api.h has them, whose binary
 * interface is stable: building kernd takes no node, and one that is another is not loaded.
 */
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAPPINGS_MAX 64
#define LINE_SIZE (4096 + 256) /* a path and what stands before it in proc_pid_smaps(5) */

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
typedef napi_value (*napi_callback)(napi_env env, napi_callback_info info);

int napi_create_function(napi_env env, const char *name, size_t size, napi_callback callback,
                         void *data, napi_value *ret_function);
int napi_set_named_property(napi_env env, napi_value object, const char *name, napi_value value);
napi_value napi_register_module_v1(napi_env env, napi_value exports);

struct mapping {
    uintptr_t start;
    uintptr_t end;
    bool of_file; /* that nobody writes into, neither here nor by writing the file */
};

/* How the process was when no code had been in it. */
static struct {
    nlink_t tasks;
    unsigned long long loads;
} before;

/* ---- memory ---- */

static uintptr_t read_hex(const char **at)
{
    uintptr_t value = 0;

    for (;; (*at)++) {
        const char *digits = "0123456789abcdef";
        const char *digit = **at == '\0' ? NULL : strchr(digits, **at);

        if (digit == NULL) {
            return value;
        }
        value = value * 16 + (uintptr_t)(digit - digits);
    }
}

/* "start-end rwxp offset device inode path". False, and nothing is changed: another line. */
static bool read_head(const char *line, struct mapping *ret_mapping)
{
    const char *at = line;
    struct mapping mapping = { .start = read_hex(&at) };

    if (at == line || *at++ != '-') {
        return false;
    }
    mapping.end = read_hex(&at);
    mapping.of_file = strncmp(at, " r-", 3) == 0 && at[4] == 'p';
    for (int field = 0; field < 3 && *at != '\0'; field++) { /* up to the inode */
        at += strcspn(at + 1, " ") + 1;
    }
    mapping.of_file = mapping.of_file && strncmp(at, " 0 ", 3) != 0;
    *ret_mapping = mapping;
    return true;
}

/* Those of files of which no page was ever written to: relocations make some that look alike. */
static size_t find_clean(struct mapping found[static MAPPINGS_MAX])
{
    FILE *file = fopen("/proc/self/smaps", "re");
    struct mapping mapping = { .of_file = false };
    char line[LINE_SIZE];
    size_t count = 0;

    while (file != NULL && count < MAPPINGS_MAX && fgets(line, sizeof(line), file) != NULL) {
        if (read_head(line, &mapping) || strncmp(line, "Anonymous:", 10) != 0) {
            continue;
        }
        if (mapping.of_file && strcmp(line + 10 + strspn(line + 10, " "), "0 kB\n") == 0) {
            found[count++] = mapping;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return count;
}

/*
 * What only the start of node has touched of its file is unmapped: three quarters of what a waiting
 * node has in memory, which the kernel would take apart page by page at the program's end. The file
 * is in the page cache: what is needed again comes back by a fault.
 */
static napi_value shrink(napi_env env, napi_callback_info info)
{
    struct mapping found[MAPPINGS_MAX];
    size_t count = find_clean(found);

    (void)env;
    (void)info;
    for (size_t i = 0; i < count; i++) {
        (void)madvise((void *)found[i].start, found[i].end - found[i].start, MADV_DONTNEED);
    }
    return NULL;
}

/* ---- the end ---- */

static int read_loads(struct dl_phdr_info *info, size_t size, void *context)
{
    unsigned long long *loads = context;

    if (size >= offsetof(struct dl_phdr_info, dlpi_subs)) {
        *loads = info->dlpi_adds;
    }
    return 1;
}

static unsigned long long count_loads(void)
{
    unsigned long long loads = 0;

    (void)dl_iterate_phdr(read_loads, &loads);
    return loads;
}

/* Links of that directory: its own two, and one for each task (proc_pid_task(5)). */
static nlink_t count_tasks(void)
{
    struct stat status;

    return stat("/proc/self/task", &status) < 0 ? 0 : status.st_nlink;
}

static napi_value mark(napi_env env, napi_callback_info info)
{
    (void)env;
    (void)info;
    before.loads = count_loads();
    before.tasks = count_tasks();
    return NULL;
}

/*
 * exit_group(2) with 0, and nothing before it. Returns if there is a thread or a library that was
 * not there at mark(): they may have something to do at the end.
 */
static napi_value end(napi_env env, napi_callback_info info)
{
    (void)env;
    (void)info;
    if (before.tasks != 0 && count_tasks() == before.tasks && count_loads() == before.loads) {
        _exit(0);
    }
    return NULL;
}

__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env,
                                                                          napi_value exports)
{
    static const struct {
        const char *name;
        napi_callback callback;
    } functions[] = { { "shrink", shrink }, { "mark", mark }, { "end", end } };

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        napi_value function = NULL;

        if (napi_create_function(env, functions[i].name, strlen(functions[i].name),
                                 functions[i].callback, NULL, &function) != 0 ||
            napi_set_named_property(env, exports, functions[i].name, function) != 0) {
            break;
        }
    }
    return exports;
}
