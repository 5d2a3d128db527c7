/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/boxkit.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/strv.h"
#include "lib/box/tree.h"

#define ORDINARY_USER 65534
#define INIT_MAX ((size_t)64 << 20)

struct boxes *boxkit_boxes;
char boxkit_dir[64];
char boxkit_workspace[80];
char boxkit_library[80];
char boxkit_runtime[80];

/* build/tests/unit/test_x -> build/kernd-init. The caller frees. */
static char *read_init(size_t *ret_size)
{
    char self[4096];
    char path[4200];
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *init;

    self[size > 0 ? size : 0] = '\0';
    for (int i = 0; i < 3 && strrchr(self, '/') != NULL; i++) {
        *strrchr(self, '/') = '\0';
    }
    (void)snprintf(path, sizeof(path), "%s/kernd-init", self);
    init = fd_read_file(path, INIT_MAX, ret_size);
    if (init == NULL) {
        print_error("%s is missing: run make first\n", path);
    }
    return init;
}

static int become_ordinary(void)
{
    if (geteuid() != 0) {
        return 0;
    }
    if (chown(boxkit_dir, ORDINARY_USER, ORDINARY_USER) < 0 || setgroups(0, NULL) < 0 ||
        setresgid(ORDINARY_USER, ORDINARY_USER, ORDINARY_USER) < 0 ||
        setresuid(ORDINARY_USER, ORDINARY_USER, ORDINARY_USER) < 0) {
        return -1;
    }
    /* Cleared by the change of user; the leak checker needs it (prctl(2)). */
    return prctl(PR_SET_DUMPABLE, 1);
}

static int make_directories(const char *init, size_t init_size)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/kernd-init", boxkit_library);
    return mkdir(boxkit_library, 0700) < 0 || mkdir(boxkit_workspace, 0700) < 0 ||
                   mkdir(boxkit_runtime, 0700) < 0 || fd_write_file(path, init, init_size, 0755) < 0
               ? -1
               : 0;
}

static int make_places(void)
{
    size_t init_size = 0;
    char *init;
    int result;

    (void)snprintf(boxkit_dir, sizeof(boxkit_dir), "/tmp/kernd-box-XXXXXX");
    if (mkdtemp(boxkit_dir) == NULL) {
        return -1;
    }
    (void)snprintf(boxkit_workspace, sizeof(boxkit_workspace), "%s/work", boxkit_dir);
    (void)snprintf(boxkit_library, sizeof(boxkit_library), "%s/lib", boxkit_dir);
    (void)snprintf(boxkit_runtime, sizeof(boxkit_runtime), "%s/run", boxkit_dir);
    /* Read before root is given up: a build directory need not be open to everybody. */
    init = read_init(&init_size);
    result = init == NULL || become_ordinary() < 0 ? -1 : make_directories(init, init_size);
    free(init);
    return result;
}

int boxkit_begin(void **state)
{
    const struct boxes_config config = { .runtime_dir = boxkit_runtime,
                                         .library_dir = boxkit_library,
                                         .engine = "auto" };
    struct err err = ERR_INIT;

    const struct sigaction ignore = { .sa_handler = SIG_IGN };

    (void)state;
    (void)sigaction(SIGPIPE, &ignore, NULL);
    if (make_places() < 0) {
        print_error("can't make the test's directories: %s\n", strerrordesc_np(errno));
        return -1;
    }
    if (boxes_open(&config, &boxkit_boxes, &err) < 0) {
        print_error("boxes_open: %s\n", err.msg);
        return -1;
    }
    return 0;
}

int boxkit_end(void **state)
{
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result;

    (void)state;
    boxes_close(boxkit_boxes);
    result = tree_remove(tmp, strrchr(boxkit_dir, '/') + 1);
    if (result < 0) {
        print_error("%s was left behind: %s\n", boxkit_dir, strerrordesc_np(errno));
    }
    fd_close(tmp);
    return result;
}

struct box *boxkit_start(const struct boxkit_call *call)
{
    const struct box_spec spec = { .workspace = boxkit_workspace,
                                   .limits = call->limits,
                                   .network = call->network,
                                   .deadline = clock_deadline_after_s(60) };
    struct err err = ERR_INIT;
    struct box *box = NULL;

    if (box_start(boxkit_boxes, &spec, &box, &err) < 0) {
        fail_msg("box_start: %s (%s)", err.msg, err.remedy);
    }
    return box;
}

static void add_strings(const char *const *from, struct strv *to)
{
    for (size_t i = 0; from != NULL && from[i] != NULL; i++) {
        strv_add(to, from[i]);
    }
}

void boxkit_launch(struct box *box, const struct boxkit_call *call)
{
    struct strv argv = { 0 };
    struct strv env = { 0 };
    const struct box_program program = { .argv = &argv,
                                         .env = &env,
                                         .cwd = call->cwd,
                                         .code = call->code,
                                         .code_size = call->code == NULL ? 0 : strlen(call->code),
                                         .code_name = "cell.py" };
    struct err err = ERR_INIT;

    if (call->script != NULL) {
        strv_add_all(&argv, "bash", "-c", call->script, NULL);
    }
    add_strings(call->argv, &argv);
    add_strings(call->env, &env);
    if (box_begin(box, &program, &err) < 0) {
        fail_msg("box_begin: %s", err.msg);
    }
    strv_done(&argv);
    strv_done(&env);
}

void boxkit_prepare(const struct boxkit_call *call, struct boxkit_result *result)
{
    size_t max_output = call->max_output == 0 ? BOXKIT_MIB : call->max_output;

    *result = (struct boxkit_result){ .out = BUF_INIT(max_output), .err = BUF_INIT(max_output) };
    result->io = (struct box_io){
        .stdin_data = call->stdin_data,
        .stdin_size = call->stdin_size,
        .sink = call->sink,
        .max_output = max_output,
        .capture_stdout = &result->out,
        .capture_stderr = &result->err,
        .deadline = clock_deadline_after_s(call->timeout_s > 0 ? call->timeout_s : 60),
        .cancel = call->cancel,
        .peer_fd = -1,
    };
}

void boxkit_run(const struct boxkit_call *call, struct boxkit_result *result)
{
    struct box *box = boxkit_start(call);
    int64_t began = clock_mono_ns();
    int64_t ended;

    boxkit_prepare(call, result);
    result->init_pid = box_init_pid(box);
    boxkit_launch(box, call);
    result->stop = box_pump(box, &result->io);
    ended = clock_mono_ns();
    result->run_ms = clock_ms_between(began, ended);
    box_end(box, &result->io, &result->outcome);
    result->end_ms = clock_ms_between(ended, clock_mono_ns());
    assert_true(result->outcome.gone);
    assert_int_equal(kill(result->init_pid, 0), -1);
    assert_int_equal(boxes_running(boxkit_boxes), 0);
}

void boxkit_done(struct boxkit_result *result)
{
    buf_done(&result->out);
    buf_done(&result->err);
}

const char *boxkit_out(const struct boxkit_result *result)
{
    return result->out.size == 0 ? "" : result->out.data;
}

const char *boxkit_err(const struct boxkit_result *result)
{
    return result->err.size == 0 ? "" : result->err.data;
}

void boxkit_assert_exit(const struct boxkit_result *result, int exit_code)
{
    int status = result->outcome.wait_status;

    if (result->stop != BOX_STOP_EXITED || !result->outcome.has_status || !WIFEXITED(status) ||
        WEXITSTATUS(status) != exit_code) {
        fail_msg("stop %d, wait status %x, not exit %d; stderr: %s", result->stop, (unsigned)status,
                 exit_code, boxkit_err(result));
    }
}

const char *boxkit_file(const char *name, const char *text, unsigned mode)
{
    static char path[160];

    (void)snprintf(path, sizeof(path), "%s/%s", boxkit_dir, name);
    if (fd_write_file(path, text, strlen(text), (mode_t)mode) < 0) {
        fail_msg("can't write %s", path);
    }
    return path;
}
