/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash: SHA-256.
 * Owns: the state of a hash under way.
 * Threads: any, one at a time per hash.
 * May include: libc, nettle.
 */
#include "lib/base/hash.h"

#include <nettle/sha2.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/id.h"

struct hash {
    struct sha256_ctx context;
};

struct hash *hash_new(void)
{
    struct hash *hash = alloc_zero(1, sizeof(*hash));

    sha256_init(&hash->context);
    return hash;
}

void hash_add(struct hash *hash, const void *data, size_t size)
{
    sha256_update(&hash->context, size, data);
}

void hash_end_hex(struct hash *hash, char out[static HASH_HEX_SIZE])
{
    unsigned char digest[SHA256_DIGEST_SIZE];

    sha256_digest(&hash->context, sizeof(digest), digest);
    id_hex(digest, sizeof(digest), out);
    free(hash);
}

void hash_sha256_hex(const void *data, size_t size, char out[static HASH_HEX_SIZE])
{
    struct hash *hash = hash_new();

    hash_add(hash, data, size);
    hash_end_hex(hash, out);
}
