/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cellkit.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "lib/box/boxes.h"
#include "lib/cell/bundle.h"
#include "tests/unit/boxkit.h"

#define FILE_MAX ((size_t)64 << 20)
#define FILES_MAX 64

static struct {
    char *name;
    char *data;
    size_t size;
} files[FILES_MAX];
static size_t file_count;
static char library[100];
static char runtime[100];
static struct boxes *cellkit_boxes;

static bool is_shipped(const char *name)
{
    return text_starts_with(name, "driver") || text_starts_with(name, "kernd-");
}

/* build/tests/unit/test_x -> the programs and drivers in build/. */
static int load_files(void)
{
    char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 300);
    const struct dirent *entry = NULL;
    DIR *dir = NULL;

    path[size > 0 ? size : 0] = '\0';
    for (int i = 0; i < 3 && strrchr(path, '/') != NULL; i++) {
        *strrchr(path, '/') = '\0';
    }
    dir = opendir(path);
    while (dir != NULL && (entry = readdir(dir)) != NULL && file_count < FILES_MAX) {
        char *end = path + strlen(path);

        if (is_shipped(entry->d_name)) {
            (void)snprintf(end, 300, "/%s", entry->d_name);
            files[file_count].data = fd_read_file(path, FILE_MAX, &files[file_count].size);
            files[file_count].name = alloc_text(entry->d_name);
            file_count += files[file_count].data != NULL;
            *end = '\0';
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return file_count > 0 ? 0 : -1;
}

static int write_files(void)
{
    (void)snprintf(library, sizeof(library), "%s/drivers", boxkit_dir);
    (void)snprintf(runtime, sizeof(runtime), "%s/cells", boxkit_dir);
    if (mkdir(library, 0755) < 0 || mkdir(runtime, 0700) < 0) {
        return -1;
    }
    for (size_t i = 0; i < file_count; i++) {
        CLEANUP_FREE char *path = alloc_printf("%s/%s", library, files[i].name);
        mode_t mode = text_starts_with(files[i].name, "kernd-") ? 0755 : 0644;

        if (fd_write_file(path, files[i].data, files[i].size, mode) < 0) {
            return -1;
        }
        free(files[i].name);
        free(files[i].data);
    }
    return 0;
}

int cellkit_begin(void **state)
{
    struct boxes_config config = { .runtime_dir = runtime,
                                   .library_dir = library,
                                   .engine = "auto" };
    struct err err = ERR_INIT;

    if (load_files() < 0 || boxkit_begin(state) < 0 || write_files() < 0 ||
        boxes_open(&config, &cellkit_boxes, &err) < 0) {
        print_error("can't prepare boxes: %s %s\n", err.msg, strerrordesc_np(errno));
        return -1;
    }
    return 0;
}

int cellkit_end(void **state)
{
    boxes_close(cellkit_boxes);
    return boxkit_end(state);
}

struct boxes *cellkit_factory(void)
{
    return cellkit_boxes;
}

struct box *cellkit_box(const struct box_limits *limits)
{
    struct box_spec spec = { .workspace = boxkit_workspace,
                             .driver = true,
                             .deadline = clock_deadline_after_s(60) };
    struct err err = ERR_INIT;
    struct box *box = NULL;

    if (limits != NULL) {
        spec.limits = *limits;
    }
    if (box_start(cellkit_boxes, &spec, &box, &err) < 0) {
        fail_msg("box_start: %s (%s)", err.msg, err.remedy);
    }
    return box;
}

void cellkit_prepare(struct cellkit_result *result, double timeout_s)
{
    *result = (struct cellkit_result){ .out = BUF_INIT(BOXKIT_MIB), .err = BUF_INIT(BOXKIT_MIB) };
    result->io = (struct box_io){
        .max_output = BOXKIT_MIB,
        .capture_stdout = &result->out,
        .capture_stderr = &result->err,
        .deadline = clock_deadline_after_s(timeout_s),
        .peer_fd = -1,
    };
}

void cellkit_done(struct cellkit_result *result)
{
    buf_done(&result->out);
    buf_done(&result->err);
    cell_results_done(&result->results);
    kernel_reply_done(&result->reply);
}

void cellkit_once(enum cell_language language, const char *code, struct cellkit_result *result)
{
    struct cell_code what = { .language = language, .code = code, .code_size = strlen(code) };
    struct box *box = cellkit_box(NULL);
    struct err err = ERR_INIT;

    cellkit_prepare(result, 60);
    what.results = &result->results;
    if (cell_run_once(box, &what, &result->io, &result->stop, &err) < 0) {
        fail_msg("cell_run_once: %s", err.msg);
    }
    box_end(box, &result->io, &result->outcome);
    assert_true(result->outcome.gone);
}

const char *cellkit_out(const struct cellkit_result *result)
{
    return result->out.size == 0 ? "" : result->out.data;
}

const char *cellkit_err(const struct cellkit_result *result)
{
    return result->err.size == 0 ? "" : result->err.data;
}

const char *cellkit_text(const struct cellkit_result *result, size_t i)
{
    static char text[1000];
    struct bundle bundle;

    text[0] = '\0';
    if (i >= result->results.count ||
        bundle_decode(result->results.items[i].data, result->results.items[i].size, &bundle, NULL) <
            0) {
        return text;
    }
    for (size_t part = 0; part < bundle.count; part++) {
        if (bundle.parts[part].mime_size == 10 &&
            memcmp(bundle.parts[part].mime, "text/plain", 10) == 0) {
            (void)snprintf(text, sizeof(text), "%.*s", (int)bundle.parts[part].data_size,
                           bundle.parts[part].data);
        }
    }
    return text;
}

struct kernel *cellkit_kernel(enum cell_language language, const struct box_limits *limits)
{
    struct kernel_config config = { .language = language, .deadline = clock_deadline_after_s(60) };
    struct box *box = cellkit_box(limits);
    struct kernel *kernel = NULL;
    struct err err = ERR_INIT;

    if (kernel_open(box, &config, &kernel, &err) < 0) {
        fail_msg("kernel_open: %s", err.msg);
    }
    return kernel;
}

void cellkit_run(struct kernel *kernel, const char *code, double timeout_s,
                 struct cellkit_result *result)
{
    struct kernel_cell cell = { .code = code, .code_size = strlen(code) };
    struct err err = ERR_INIT;

    cellkit_prepare(result, timeout_s);
    cell.io = &result->io;
    cell.results = &result->results;
    if (kernel_run(kernel, &cell, &result->reply, &err) < 0) {
        fail_msg("kernel_run: %s", err.msg);
    }
    result->stop = result->reply.stop;
}

void cellkit_expect(struct kernel *kernel, const char *code, const char *out)
{
    struct cellkit_result result;

    cellkit_run(kernel, code, 60, &result);
    if (!result.reply.alive || result.reply.exit_code != 0) {
        fail_msg("'%s': stop %d, exit %d, stderr: %s", code, result.stop, result.reply.exit_code,
                 cellkit_err(&result));
    }
    assert_string_equal(cellkit_out(&result), out);
    cellkit_done(&result);
}
