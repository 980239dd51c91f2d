// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_DISK_SPOOL_SEGMENT_H
#define FT_IO_DISK_SPOOL_SEGMENT_H
/*
 * One file of a spool: a head (8 bytes of magic, the number of its first entry, a digest), then
 * entries, each its length (32 bits), its number (64 bits), a digest of its bytes and the bytes,
 * all big endian. Numbers rise by one. An entry that a kill cut off at the end has no right digest,
 * and is not there. Used by spool.c alone. Thread: the spool's.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/writer.h"

#define FT_SEGMENT_HEAD_BYTES  24
#define FT_SEGMENT_ENTRY_BYTES 20 /* in front of the bytes of each */

struct ft_spool_segment {
    uint64_t first; /* number of its first entry */
    uint64_t count;
    uint64_t bytes;  /* of the file, as far as entries are complete */
    uint64_t bad;    /* of these entries, at its end, that cannot be read */
    uint64_t weight; /* of those that this process appended and did not read; spool.c keeps it */
};

/* The file's name, and the number in it; -EINVAL for another file. */
#define FT_SEGMENT_NAME_BYTES 32
void ft_segment_name(uint64_t first, char name[FT_SEGMENT_NAME_BYTES]);
int ft_segment_number(const char *name, uint64_t *first);

/* An open file with its head, and the segment; -errno, and no file is left then. */
int ft_segment_create(int folder, uint64_t first, struct ft_spool_segment *segment);

/* -errno: the segment is as before. */
int ft_segment_append(int fd, struct ft_spool_segment *segment, const void *bytes, size_t len);

/* Reads entries in turn; zero it, and free what is kept. */
struct ft_segment_reader {
    int fd; /* the caller's */
    uint64_t next;
    uint64_t offset; /* of it in the file */
    struct ft_writer kept;
    uint64_t kept_at; /* where its bytes are in the file */
};

/* 0, or -EBADMSG: no segment with that number. bytes_max: of an entry. */
int ft_segment_reader_open(struct ft_segment_reader *reader, int fd, uint64_t first,
                           size_t bytes_max);

/* The next entry, borrowed until the next call. -ENODATA at the end of the file, -EBADMSG where
 * what follows is not a complete entry, -errno of the disk. */
int ft_segment_read(struct ft_segment_reader *reader, size_t bytes_max, const uint8_t **bytes,
                    size_t *len);

/* Frees what it keeps; the descriptor stays open. */
void ft_segment_reader_close(struct ft_segment_reader *reader);

#endif
