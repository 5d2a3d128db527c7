/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read a process's memory from smaps.
 * Owns: nothing.
 * Threads: any.
 * May include: base.
 */
#include "lib/box/smaps.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

#define KIB UINT64_C(1024)
#define PIECE_SIZE ((size_t)16 * 1024)

/* Closes the mapping read so far. */
static void close_mapping(struct smaps *smaps)
{
    if (smaps->kind == SMAPS_WHOLE) {
        smaps->bytes += (smaps->pss + smaps->swap_pss) * KIB;
    } else if (smaps->kind == SMAPS_ANONYMOUS_PART) {
        smaps->bytes += (smaps->anonymous + smaps->swap) * KIB;
    }
    smaps->kind = SMAPS_NONE;
    smaps->pss = 0;
    smaps->swap_pss = 0;
    smaps->anonymous = 0;
    smaps->swap = 0;
}

/* Shared anonymous memory, or a memory file that nobody has open any more. */
static bool is_uncounted_shared(const struct smaps *smaps, uint64_t device, uint64_t inode)
{
    return smaps->files->device != 0 && device == smaps->files->device &&
           !memfiles_has(smaps->files, inode);
}

/* "start-end perms offset major:minor inode path" opens a mapping. False: not such a line. */
static bool open_mapping(struct smaps *smaps, const char *line)
{
    unsigned major_number = 0;
    unsigned minor_number = 0;
    uint64_t inode = 0;

    /* NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers */
    if (sscanf(line, "%*[0-9a-f]-%*[0-9a-f] %*s %*s %x:%x %" SCNu64, &major_number, &minor_number,
               &inode) != 3) {
        return false;
    }
    close_mapping(smaps);
    smaps->kind =
        inode == 0 || is_uncounted_shared(smaps, makedev(major_number, minor_number), inode)
            ? SMAPS_WHOLE
            : SMAPS_ANONYMOUS_PART;
    return true;
}

/* The number in "Name:   12 kB" if the line has that name. */
static void take(const char *line, const char *name, uint64_t *value)
{
    size_t size = strlen(name);

    if (strncmp(line, name, size) == 0) {
        uint64_t number = 0;

        for (const char *at = line + size + strspn(line + size, " "); *at >= '0' && *at <= '9';
             at++) {
            number = number * 10 + (uint64_t)(*at - '0');
        }
        *value = number;
    }
}

void smaps_line(struct smaps *smaps, const char *line)
{
    /* Names of values start with a capital letter, addresses are lower-case hexadecimal. */
    if (line[0] >= 'A' && line[0] <= 'Z') {
        take(line, "Pss:", &smaps->pss);
        take(line, "SwapPss:", &smaps->swap_pss);
        take(line, "Anonymous:", &smaps->anonymous);
        take(line, "Swap:", &smaps->swap);
    } else {
        (void)open_mapping(smaps, line);
    }
}

void smaps_finish(struct smaps *smaps)
{
    close_mapping(smaps);
}

/*
 * Feeds the complete lines of data; returns how many bytes it is done with. A line may be longer
 * than a piece: a file's path has no bound here, and four characters for each newline in a name
 * (seq_path() in fs/seq_file.c). All that is wanted of it stands at its start; *in_long_line: the
 * rest is still to come.
 */
static size_t feed_lines(struct smaps *smaps, char *data, size_t size, bool *in_long_line)
{
    size_t used = 0;
    char *end = NULL;

    while ((end = memchr(data + used, '\n', size - used)) != NULL) {
        *end = '\0';
        if (!*in_long_line) {
            smaps_line(smaps, data + used);
        }
        *in_long_line = false;
        used = (size_t)(end - data) + 1;
    }
    if (size - used < PIECE_SIZE) {
        return used;
    }
    data[size - 1] = '\0';
    if (!*in_long_line) {
        smaps_line(smaps, data);
    }
    *in_long_line = true;
    return size;
}

uint64_t smaps_of_process(pid_t pid, const struct memfiles *files)
{
    struct smaps smaps = { .files = files };
    char path[64];
    char piece[PIECE_SIZE];
    CLEANUP_FD int fd = -1;
    bool in_long_line = false;
    size_t held = 0;
    ssize_t got = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (got = read(fd, piece + held, sizeof(piece) - held)) > 0) {
        size_t size = held + (size_t)got;
        size_t used = feed_lines(&smaps, piece, size, &in_long_line);

        held = size - used;
        memmove(piece, piece + used, held);
    }
    smaps_finish(&smaps);
    return smaps.bytes;
}
