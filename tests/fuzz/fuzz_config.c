/* SPDX-License-Identifier: Apache-2.0 */
/* Any configuration file: refused with the number of a line that exists, or all values in range. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "server/config.h"
#include "server/config_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_values(const struct config *config)
{
    require(text_equal(config->engine, "auto") || text_equal(config->engine, "kern") ||
            text_equal(config->engine, "bubblewrap"));
    require(config->capacity.workers <= 1024 && config->connections >= 8 &&
            config->connections <= 60000);
    require(config->grace_s >= 0 && config->grace_s <= 3600);
    require(config->request_timeout_s >= 0.1 && config->request_timeout_s <= 3600);
    require(config->maxima.timeout_s >= 0 && config->maxima.cpus <= 4096);
    require(config->state_dir == NULL || config->state_dir[0] != '\0');
    for (size_t i = 0; i < config->listens.count; i++) {
        require(config->listens.items[i][0] != '\0');
    }
}

static void check_complaint(const struct err *err, const char *text)
{
    char number[16] = "";
    uint64_t line = 0;
    uint64_t lines = 1;

    require(err->code == ERR_BAD_VALUE && text_starts_with(err->msg, "f:"));
    memcpy(number, err->msg + 2, strspn(err->msg + 2, "0123456789") % sizeof(number));
    for (; *text != '\0'; text++) {
        lines += *text == '\n' ? 1 : 0;
    }
    require(text_parse_u64(number, &line) == 0 && line >= 1 && line <= lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = alloc_copy(data, size);
    struct err err = ERR_INIT;
    struct config config;

    config_init(&config);
    if (config_file_parse(&config, "f", text, &err) == 0) {
        check_values(&config);
    } else {
        check_complaint(&err, text);
    }
    config_done(&config);
    free(text);
    return 0;
}
