/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of clients, JSON with comments and TOML: whatever they hold is refused, or changed so that
 * changing it again changes nothing.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "server/jsonc.h"
#include "server/toml_table.h"

#define TEXT_MAX ((size_t)1 << 20)

static int set(bool is_toml, const char *text, size_t size, struct buf *out)
{
    static const char *const keys[] = { "command", "args", NULL };
    static const struct toml_table table = { "s", "k", "command = 1\n", keys };
    static const struct jsonc_member member = { "s", "k", "{\"c\":1}" };
    struct err err = ERR_INIT;

    return is_toml ? toml_table_set(text, size, &table, out, &err)
                   : jsonc_set(text, size, &member, out, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = alloc_copy(data, size);

    for (int is_toml = 0; is_toml < 2; is_toml++) {
        CLEANUP_BUF struct buf once = BUF_INIT(TEXT_MAX);
        CLEANUP_BUF struct buf twice = BUF_INIT(TEXT_MAX);

        if (size < TEXT_MAX / 4 && set(is_toml == 1, text, size, &once) == 0 &&
            (set(is_toml == 1, once.data, once.size, &twice) < 0 || once.size != twice.size ||
             memcmp(once.data, twice.data, once.size) != 0)) {
            abort();
        }
    }
    return 0;
}
