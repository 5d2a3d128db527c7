/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/run_in.h"
#include "lib/base/buf.h"

static const struct limits defaults = {
    .timeout_s = 30, .memory_mb = 512, .pids = 256, .max_output_bytes = 1000
};

static struct run_request *decode(enum run_kind kind, const char *body, struct err *err)
{
    *err = ERR_INIT;
    return run_in_decode(kind, body, strlen(body), &(struct run_in_base){ .defaults = &defaults },
                         err);
}

static void command_with_everything(void **state)
{
    struct err err;
    struct run_request *request = decode(
        RUN_COMMAND,
        "{\"command\":[\"sh\",\"-c\",\"\"],\"stdin\":{\"base64\":\"AP8Q\"},"
        "\"env\":{\"A_1\":\"x=y\",\"_\":\"\"},\"cwd\":\"sub\",\"files\":{\"a/b\":\"text\\u0000\","
        "\"c\":{\"base64\":\"\"}},\"fetchFiles\":[\"out\"],\"timeoutS\":1.5,\"memoryMb\":64.0,"
        "\"cpus\":0.5,\"pids\":8,\"diskMb\":10,\"maxOutputBytes\":1,\"network\":true,"
        "\"trackFiles\":false,\"stdoutEncoding\":\"base64\"}",
        &err);

    (void)state;
    assert_non_null(request);
    assert_int_equal(request->kind, RUN_COMMAND);
    assert_int_equal(request->command.count, 3);
    assert_string_equal(request->command.items[1], "-c");
    assert_int_equal(request->stdin_size, 3);
    assert_memory_equal(request->stdin_data, "\x00\xFF\x10", 3);
    assert_int_equal(request->env.count, 2);
    assert_string_equal(request->env.items[0], "A_1=x=y");
    assert_string_equal(request->cwd, "/workspace/sub");
    assert_int_equal(request->file_count, 2);
    assert_string_equal(request->files[0].path, "a/b");
    assert_int_equal(request->files[0].size, 5);
    assert_int_equal(request->files[1].size, 0);
    assert_string_equal(request->fetch.items[0], "out");
    assert_true(request->limits.timeout_s > 1.49 && request->limits.timeout_s < 1.51);
    assert_int_equal(request->limits.memory_mb, 64);
    assert_int_equal(request->limits.pids, 8);
    assert_int_equal(request->limits.disk_mb, 10);
    assert_int_equal(request->limits.max_output_bytes, 1);
    assert_true(request->network);
    assert_false(request->track_files);
    assert_true(request->stdout_base64);
    run_request_free(request);
}

static void code_with_defaults(void **state)
{
    struct err err;
    struct run_request *request = decode(
        RUN_CODE, "{\"code\":\"\\ufeffprint(1)\",\"timeoutS\":null,\"language\":null}", &err);

    (void)state;
    assert_non_null(request);
    assert_int_equal(request->language, RUN_PYTHON);
    assert_int_equal(request->code_size, 11);
    assert_int_equal(request->limits.memory_mb, 512);
    assert_null(request->cwd);
    assert_null(request->stdin_data);
    assert_true(request->track_files);
    run_request_free(request);
    request = decode(RUN_CODE, "{\"code\":\"\",\"language\":\"node\",\"cwd\":\"/tmp\"}", &err);
    assert_non_null(request);
    assert_int_equal(request->language, RUN_NODE);
    assert_string_equal(request->cwd, "/tmp");
    run_request_free(request);
}

struct sample {
    enum run_kind kind;
    const char *body;
    enum err_code code;
    const char *pointer;
};

static void bad_bodies_are_refused(void **state)
{
    static const struct sample samples[] = {
        { RUN_CODE, "{}", ERR_BAD_VALUE, "/code" },
        { RUN_CODE, "{\"code\":null}", ERR_BAD_VALUE, "/code" },
        { RUN_CODE, "{\"code\":5}", ERR_BAD_VALUE, "/code" },
        { RUN_CODE, "{\"code\":\"print(1)\\u0000print(2)\"}", ERR_BAD_JSON, "/code" },
        { RUN_CODE, "{\"code\":\"\",\"language\":\"perl\"}", ERR_BAD_VALUE, "/language" },
        { RUN_CODE, "{\"code\":\"\",\"language\":\"node\\u0000\"}", ERR_BAD_VALUE, "/language" },
        { RUN_CODE, "{\"code\":\"\",\"language\":1}", ERR_BAD_VALUE, "/language" },
        { RUN_CODE, "{\"code\":\"\",\"command\":[\"x\"]}", ERR_UNKNOWN_FIELD, "/command" },
        { RUN_CODE, "{\"code\":\"\",\"timeoutSeconds\":1}", ERR_UNKNOWN_FIELD, "/timeoutSeconds" },
        { RUN_CODE, "{\"code\":\"\",\"a/b~c\":null}", ERR_UNKNOWN_FIELD, "/a~1b~0c" },
        { RUN_CODE, "{\"code\":\"\",\"timeoutS\":0}", ERR_BAD_VALUE, "/timeoutS" },
        { RUN_CODE, "{\"code\":\"\",\"timeoutS\":-1}", ERR_BAD_VALUE, "/timeoutS" },
        { RUN_CODE, "{\"code\":\"\",\"timeoutS\":\"5\"}", ERR_BAD_VALUE, "/timeoutS" },
        { RUN_CODE, "{\"code\":\"\",\"timeoutS\":true}", ERR_BAD_VALUE, "/timeoutS" },
        { RUN_CODE, "{\"code\":\"\",\"timeoutS\":1e300}", ERR_BAD_VALUE, "/timeoutS" },
        { RUN_CODE, "{\"code\":\"\",\"timeoutS\":123456789012345678901234567890}", ERR_BAD_VALUE,
          "/timeoutS" },
        { RUN_CODE, "{\"code\":\"\",\"memoryMb\":1.5}", ERR_BAD_VALUE, "/memoryMb" },
        { RUN_CODE, "{\"code\":\"\",\"memoryMb\":123456789012345678901234567890}", ERR_BAD_VALUE,
          "/memoryMb" },
        { RUN_CODE, "{\"code\":\"\",\"pids\":-5}", ERR_BAD_VALUE, "/pids" },
        { RUN_CODE, "{\"code\":\"\",\"network\":\"false\"}", ERR_BAD_VALUE, "/network" },
        { RUN_CODE, "{\"code\":\"\",\"network\":0}", ERR_BAD_VALUE, "/network" },
        { RUN_CODE, "{\"code\":\"\",\"isolation\":\"vm\"}", ERR_BAD_VALUE, "/isolation" },
        { RUN_CODE, "{\"code\":\"\",\"isolation\":true}", ERR_BAD_VALUE, "/isolation" },
        { RUN_CODE, "{\"code\":\"\",\"stdoutEncoding\":\"latin1\"}", ERR_BAD_VALUE,
          "/stdoutEncoding" },
        { RUN_COMMAND, "{}", ERR_BAD_VALUE, "/command" },
        { RUN_COMMAND, "{\"command\":\"ls\"}", ERR_BAD_VALUE, "/command" },
        { RUN_COMMAND, "{\"command\":[]}", ERR_BAD_VALUE, "/command" },
        { RUN_COMMAND, "{\"command\":[\"\"]}", ERR_BAD_VALUE, "/command" },
        { RUN_COMMAND, "{\"command\":[\"a\",1]}", ERR_BAD_VALUE, "/command/1" },
        { RUN_COMMAND, "{\"command\":[null]}", ERR_BAD_VALUE, "/command/0" },
        { RUN_COMMAND, "{\"command\":[\"a\",\"b\\u0000c\"]}", ERR_BAD_JSON, "/command/1" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"stdin\":5}", ERR_BAD_VALUE, "/stdin" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"stdin\":{\"base64\":\"A\"}}", ERR_BAD_VALUE,
          "/stdin" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"stdin\":{\"base64\":\"QUJD\\u0000\"}}",
          ERR_BAD_VALUE, "/stdin" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"stdin\":{\"text\":\"A\"}}", ERR_BAD_VALUE,
          "/stdin" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"stdin\":{\"base64\":\"\",\"x\":1}}", ERR_BAD_VALUE,
          "/stdin" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"env\":[]}", ERR_BAD_VALUE, "/env" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"env\":{\"\":\"x\"}}", ERR_BAD_VALUE, "/env/" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"env\":{\"1A\":\"x\"}}", ERR_BAD_VALUE, "/env/1A" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"env\":{\"A=B\":\"x\"}}", ERR_BAD_VALUE, "/env/A=B" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"env\":{\"KERND_X\":\"x\"}}", ERR_BAD_VALUE,
          "/env/KERND_X" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"env\":{\"A\":1}}", ERR_BAD_VALUE, "/env/A" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"env\":{\"A\":\"s3cret\\u0000\"}}", ERR_BAD_VALUE,
          "/env/A" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"cwd\":\"\"}", ERR_BAD_PATH, "/cwd" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"cwd\":\"a\\u0000\"}", ERR_BAD_PATH, "/cwd" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"cwd\":1}", ERR_BAD_VALUE, "/cwd" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"files\":[\"a\"]}", ERR_BAD_VALUE, "/files" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"files\":{\"\":\"a\"}}", ERR_BAD_PATH, "/files/" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"files\":{\"a/b\":null}}", ERR_BAD_VALUE,
          "/files/a~1b" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"fetchFiles\":\"a\"}", ERR_BAD_VALUE, "/fetchFiles" },
        { RUN_COMMAND, "{\"command\":[\"a\"],\"fetchFiles\":[\"a\",\"\"]}", ERR_BAD_PATH,
          "/fetchFiles/1" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct err err;

        assert_null(decode(samples[i].kind, samples[i].body, &err));
        if (err.code != samples[i].code || strcmp(err.pointer, samples[i].pointer) != 0 ||
            strstr(err.msg, "s3cret") != NULL) {
            fail_msg("%s: %d %s %s", samples[i].body, (int)err.code, err.pointer, err.msg);
        }
    }
}

static void hints_are_given(void **state)
{
    static const struct {
        const char *body;
        const char *hint;
    } samples[] = {
        { "{\"command\":\"ls | wc\"}", "[\"sh\", \"-c\"" },
        { "{\"command\":[\"a\"],\"timeout\":1}", "\"timeoutS\"" },
        { "{\"command\":[\"a\"],\"timeoutSeconds\":1}", "\"timeoutS\"" },
        { "{\"command\":[\"a\"],\"memory_mb\":1}", "\"memoryMb\"" },
        { "{\"command\":[\"a\"],\"comand\":1}", "\"command\"" },
        { "{\"command\":[\"a\"],\"fetchfile\":1}", "\"fetchFiles\"" },
        { "{\"command\":[\"a\"],\"Env\":1}", "\"env\"" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct err err;

        assert_null(decode(RUN_COMMAND, samples[i].body, &err));
        if (strstr(err.remedy, samples[i].hint) == NULL) {
            fail_msg("%s: %s", samples[i].body, err.remedy);
        }
    }
}

static void far_names_get_no_hint(void **state)
{
    struct err err;

    (void)state;
    assert_null(decode(RUN_COMMAND, "{\"command\":[\"a\"],\"zzz\":1}", &err));
    assert_string_equal(err.remedy, "");
    assert_null(decode(RUN_COMMAND, "{\"command\":[\"a\"],\"-\":1}", &err));
    assert_string_equal(err.remedy, "");
    assert_null(decode(RUN_COMMAND,
                       "{\"command\":[\"a\"],\"commandcommandcommandcommandcommand\":1}", &err));
    assert_string_equal(err.remedy, "");
}

static void too_many_arguments_are_refused(void **state)
{
    CLEANUP_BUF struct buf body = BUF_INIT(4000000);
    struct err err;

    (void)state;
    (void)buf_append_text(&body, "{\"command\":[\"a\"");
    for (int i = 0; i < 150000; i++) {
        (void)buf_append_text(&body, ",\"bcd\"");
    }
    (void)buf_append_text(&body, "]}");
    assert_null(decode(RUN_COMMAND, body.data, &err));
    assert_int_equal(err.code, ERR_BAD_VALUE);
    assert_string_equal(err.pointer, "/command");
}

static void a_long_argument_is_refused(void **state)
{
    CLEANUP_BUF struct buf body = BUF_INIT(400000);
    struct err err;

    (void)state;
    (void)buf_append_text(&body, "{\"command\":[\"a\",\"");
    for (int i = 0; i <= RUN_IN_ARGUMENT_MAX; i++) {
        (void)buf_append_text(&body, "x");
    }
    (void)buf_append_text(&body, "\"]}");
    assert_null(decode(RUN_COMMAND, body.data, &err));
    assert_string_equal(err.pointer, "/command/1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_with_everything),
        cmocka_unit_test(code_with_defaults),
        cmocka_unit_test(bad_bodies_are_refused),
        cmocka_unit_test(hints_are_given),
        cmocka_unit_test(far_names_get_no_hint),
        cmocka_unit_test(too_many_arguments_are_refused),
        cmocka_unit_test(a_long_argument_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
