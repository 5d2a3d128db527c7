/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read a configuration file by libinih; say precisely what is wrong with it.
 * Owns: nothing.
 * Threads: main, before any other starts.
 * May include: config.h, lib/base, libinih.
 */
#include "server/config_file.h"

#include <errno.h>
#include <ini.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"

#define FILE_BYTES_MAX ((size_t)1 << 20)

struct reading {
    struct config *config;
    const char *name;
    const char *rest; /* of the text */
    struct err *err;
    int line;        /* being read, from 1 */
    int failed_line; /* 0: none */
};

static void fail(struct reading *reading)
{
    reading->failed_line = reading->line;
    (void)err_prefix(reading->err, "%s:%d", reading->name, reading->line);
}

/*
 * libinih's fgets(3). It takes a line that begins with a blank for the last one's continuation, and
 * one that is too long for two: neither gets there. libinih calls it for a line only after the one
 * before was handled, which is how the number of the line is known.
 */
static char *next_line(char *line, int size, void *context)
{
    struct reading *reading = context;
    const size_t length = strcspn(reading->rest, "\n");
    const size_t blanks = strspn(reading->rest, " \t");
    const size_t skipped = blanks < length ? blanks : length;

    if (reading->failed_line != 0 || reading->rest[0] == '\0') {
        return NULL;
    }
    reading->line++;
    if (length - skipped + 2 > (size_t)size) {
        (void)err_set(reading->err, ERR_BAD_VALUE, 0, "a line must not be above %d bytes",
                      size - 2);
        fail(reading);
        return NULL;
    }
    memcpy(line, reading->rest + skipped, length - skipped);
    memcpy(line + length - skipped, "\n", 2);
    reading->rest += length + (reading->rest[length] == '\n' ? 1 : 0);
    return line;
}

static int set_key(struct reading *reading, const char *section, const char *name,
                   const char *value)
{
    CLEANUP_FREE char *origin = alloc_printf("%s:%d", reading->name, reading->line);

    if (section[0] != '\0') {
        return err_set(reading->err, ERR_BAD_VALUE, 0,
                       "%.40s stands below [%.40s], but there are no sections", name, section);
    }
    if (!config_is_list(name) && config_was_set(reading->config, name)) {
        return err_set(reading->err, ERR_BAD_VALUE, 0, "%.40s is given twice", name);
    }
    return config_set(reading->config, name, value, origin, reading->err);
}

/* 1: go on; 0: an error on this line. */
static int on_key(void *context, const char *section, const char *name, const char *value)
{
    struct reading *reading = context;

    if (set_key(reading, section, name, value) == 0) {
        return 1;
    }
    fail(reading);
    return 0;
}

int config_file_parse(struct config *config, const char *name, const char *text, struct err *err)
{
    struct reading reading = { .config = config, .name = name, .rest = text, .err = err };
    int failed_line;

    config_layer(config);
    /* The first line at fault, which libinih reads past when it is no "key = value". */
    failed_line = ini_parse_stream(next_line, &reading, on_key, &reading);
    if (failed_line > 0 && (reading.failed_line == 0 || failed_line < reading.failed_line)) {
        (void)err_set(err, ERR_BAD_VALUE, 0, "a line must be 'key = value'");
        return err_prefix(err, "%s:%d", name, failed_line);
    }
    return reading.failed_line == 0 && failed_line == 0 ? 0 : -1;
}

int config_file_load(struct config *config, const char *path, struct err *err)
{
    size_t size = 0;
    CLEANUP_FREE char *text = fd_read_file(path, FILE_BYTES_MAX, &size);

    if (text == NULL) {
        return err_set(err, ERR_IO, errno, "%s: %s", path, err_errno_text(errno));
    }
    if (strlen(text) != size) {
        return err_set(err, ERR_BAD_VALUE, 0, "%s: not a text file", path);
    }
    return config_file_parse(config, path, text, err);
}
