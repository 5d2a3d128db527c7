/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash: SHA-256 (FIPS 180-4), by the nettle library that libmicrohttpd's TLS brings along anyway.
 */
#ifndef KERND_BASE_HASH_H
#define KERND_BASE_HASH_H

#include <stddef.h>

#define HASH_HEX_SIZE 65

struct hash; /* a hash under way, for one thread at a time */

struct hash *hash_new(void);
void hash_add(struct hash *hash, const void *data, size_t size);
/* Lower-case hex of all that was added; frees. */
void hash_end_hex(struct hash *hash, char out[static HASH_HEX_SIZE]);

/* All at once. Any thread. */
void hash_sha256_hex(const void *data, size_t size, char out[static HASH_HEX_SIZE]);

#endif
