// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_DISK_SPOOL_H
#define FT_IO_DISK_SPOOL_H
/*
 * A queue on disk, for what cannot go out now: opaque entries, each with a digest, in files of a
 * folder (spool_segment.h), in order. It is bounded: at its cap, or where the disk is full, the
 * oldest file is replaced or the newest entry is refused, and each entry lost is counted. Entries
 * are written as they come, so that a kill of the program loses none; they are forced to the disk
 * when a file is complete and when the spool is closed, so that a power failure loses those of the
 * last file at most. After a kill the last file is read up to its last complete entry.
 *
 * found + appended = released + dropped + damaged + those kept. One process at a time. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ft_spool;

struct ft_spool_config {
    const char *folder; /* made where it is missing, its parent not; for its owner alone */
    uint64_t bytes_max; /* of all files, at least FT_SPOOL_BYTES_MIN */
    size_t entry_bytes_max;
    bool keep_oldest; /* at the cap the newest entry is refused, else the oldest file goes */
    /* What an entry weighs, for the sums below; NULL: nothing. What is found at the start is
     * weighed when it is read, since nobody reads all of it before. */
    uint32_t (*weigh)(const uint8_t *bytes, size_t len);
};

#define FT_SPOOL_BYTES_MIN (UINT64_C(64) << 10)

struct ft_spool_stats {
    uint64_t found;          /* at the start, from before */
    uint64_t appended;       /* since */
    uint64_t released;       /* done with */
    uint64_t dropped_oldest; /* that were removed at the cap, not read before */
    uint64_t damaged;        /* that could not be read back */
    uint64_t refused_newest; /* at the cap, and the next by the disk: not in appended */
    uint64_t refused_disk;
    uint64_t torn;          /* files that a kill had cut off within an entry */
    uint64_t unread;        /* entries that ft_spool_next() has not given yet */
    uint64_t kept, bytes;   /* entries not done with, and the bytes of the files */
    uint64_t weight_unread; /* of entries that this process appended */
    uint64_t weight_found;  /* of those found at the start, as far as they were read */
};

/* NULL with a complaint that names the folder. */
struct ft_spool *ft_spool_open(const struct ft_spool_config *config, char *error,
                               size_t error_bytes);

/* Forces to the disk what is kept. Takes NULL. */
void ft_spool_close(struct ft_spool *spool);

/* -ENOSPC: the cap, or the disk is full; -EMSGSIZE; -errno of the disk: each counted as refused.
 * *number is greater than all before. */
int ft_spool_append(struct ft_spool *spool, const void *bytes, size_t len, uint64_t *number);

/* Counts all entries as read: they are kept for a start after a kill alone. Only where there was
 * nothing to read before they were appended. */
void ft_spool_skip(struct ft_spool *spool);

/* The oldest entry that was not read; the bytes are borrowed until the next call. -ENOENT: there is
 * none; -ENOMEM. What is damaged is left out, and counted. */
int ft_spool_next(struct ft_spool *spool, const uint8_t **bytes, size_t *len, uint64_t *number);

/* All entries before this number, which were read, are done with. */
void ft_spool_release(struct ft_spool *spool, uint64_t before);

/* The number of the next entry to be read. */
uint64_t ft_spool_unread_from(const struct ft_spool *spool);

void ft_spool_stats(const struct ft_spool *spool, struct ft_spool_stats *stats);

#endif
