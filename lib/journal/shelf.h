/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf: the files of logs in the journal's directory: where they are, making, expiring them. For
 * lib/journal alone; any thread.
 */
#ifndef KERND_JOURNAL_SHELF_H
#define KERND_JOURNAL_SHELF_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHELF_PATH_SIZE 80

/* Below the journal's directory: "5f/exe_abc". */
void shelf_path(const char *id, char out[static SHELF_PATH_SIZE]);

/* A number below 256 for an id, the same in every process. */
unsigned shelf_bucket(const char *id);

/* What is in one of its 256 directories. NULL if there is nothing. */
DIR *shelf_open_bucket(int directory, unsigned bucket);

/* Creates the file at such a path, which begins with a bucket. A descriptor, or -1, errno. */
int shelf_make_file(int directory, const char *path);

/* Creates (or empties) the file of a log, mode 0600. A descriptor for the caller, or -1, errno. */
int shelf_make(int directory, const char *id);

/* Opens it for reading. A descriptor for the caller, or -1, errno. */
int shelf_open(int directory, const char *id);

void shelf_remove(int directory, const char *id);

struct shelf_rules {
    int64_t oldest_ms;  /* files last written before are deleted */
    uint64_t max_bytes; /* then the oldest until no more than this is left */
    /* True: not to be deleted. A file's name: that of a log, or of a binder. */
    bool (*in_use)(void *context, const char *name);
    void *context;
};

struct shelf_usage {
    size_t files;
    uint64_t bytes;
    size_t expired;
};

void shelf_expire(int directory, const struct shelf_rules *rules, struct shelf_usage *ret_usage);

#endif
