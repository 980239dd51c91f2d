// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/disk/spool_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/base/digest.h"
#include "lib/base/reader.h"

#define MAGIC      0x465453504f4f4c31u /* "FTSPOOL1" */
#define SUFFIX     ".spool"
#define READ_BYTES (256u << 10) /* at once, at least */

void ft_segment_name(uint64_t first, char name[FT_SEGMENT_NAME_BYTES])
{
    snprintf(name, FT_SEGMENT_NAME_BYTES, "%016" PRIx64 SUFFIX, first);
}

int ft_segment_number(const char *name, uint64_t *first)
{
    char again[FT_SEGMENT_NAME_BYTES], *end;
    uint64_t number = strtoull(name, &end, 16);

    ft_segment_name(number, again);
    if (number == 0 || strcmp(name, again) != 0)
        return -EINVAL;
    *first = number;
    return 0;
}

static void write_be(uint8_t *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = bytes; i-- > 0; value >>= 8)
        to[i] = (uint8_t)value;
}

static void make_head(uint64_t first, uint8_t head[FT_SEGMENT_HEAD_BYTES])
{
    write_be(head, MAGIC, 8);
    write_be(head + 8, first, 8);
    write_be(head + 16, ft_digest_bytes(head, 16, 0), 8);
}

int ft_segment_create(int folder, uint64_t first, struct ft_spool_segment *segment)
{
    uint8_t head[FT_SEGMENT_HEAD_BYTES];
    char name[FT_SEGMENT_NAME_BYTES];
    int fd, err;
    ssize_t n;

    ft_segment_name(first, name);
    make_head(first, head);
    fd = openat(folder, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    n = pwrite(fd, head, sizeof(head), 0);
    if (n == (ssize_t)sizeof(head)) {
        *segment = (struct ft_spool_segment){.first = first, .bytes = sizeof(head)};
        return fd;
    }
    err = n < 0 ? -errno : -ENOSPC;
    close(fd);
    unlinkat(folder, name, 0);
    return err;
}

int ft_segment_append(int fd, struct ft_spool_segment *segment, const void *bytes, size_t len)
{
    uint64_t number = segment->first + segment->count;
    uint8_t head[FT_SEGMENT_ENTRY_BYTES];
    struct iovec parts[] = {{head, sizeof(head)}, {(void *)(uintptr_t)bytes, len}};
    ssize_t n;
    int err;

    write_be(head, len, 4);
    write_be(head + 4, number, 8);
    write_be(head + 12, ft_digest_bytes(bytes, len, number), 8);
    n = pwritev(fd, parts, 2, (off_t)segment->bytes);
    if (n == (ssize_t)(sizeof(head) + len)) {
        segment->count++;
        segment->bytes += sizeof(head) + len;
        return 0;
    }
    err = n < 0 ? -errno : -ENOSPC;
    /* The next one overwrites what this one left; only a reader after a kill would stumble. */
    if (n > 0 && ftruncate(fd, (off_t)segment->bytes) < 0)
        return -errno;
    return err;
}

/* Sees to it that `bytes` bytes from the reader's offset on are kept. -ENODATA: the file has none
 * there, -EBADMSG: fewer. */
static int keep(struct ft_segment_reader *r, size_t bytes)
{
    size_t behind = (size_t)(r->offset - r->kept_at), needed;
    uint8_t *room;
    ssize_t n;

    if (r->kept.len - behind >= bytes)
        return 0;
    memmove(r->kept.bytes, r->kept.bytes + behind, r->kept.len - behind);
    r->kept.len -= behind;
    r->kept_at = r->offset;
    needed = bytes > READ_BYTES ? bytes : READ_BYTES;
    while (r->kept.len < bytes) {
        size_t more = needed - r->kept.len;

        room = ft_write_room(&r->kept, more);
        if (!room)
            return -ENOMEM;
        n = pread(r->fd, room, more, (off_t)(r->kept_at + r->kept.len - more));
        r->kept.len -= more - (n > 0 ? (size_t)n : 0);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return r->kept.len ? -EBADMSG : -ENODATA;
    }
    return 0;
}

int ft_segment_reader_open(struct ft_segment_reader *r, int fd, uint64_t first, size_t bytes_max)
{
    uint8_t head[FT_SEGMENT_HEAD_BYTES];
    int rc;

    ft_segment_reader_close(r);
    r->fd = fd;
    ft_writer_init(&r->kept, FT_SEGMENT_ENTRY_BYTES + bytes_max + READ_BYTES);
    /* So that there is memory, also of a file of nothing. */
    if (!ft_write_room(&r->kept, 1))
        return -ENOMEM;
    r->kept.len = 0;
    rc = keep(r, sizeof(head));
    make_head(first, head);
    if (rc == -ENODATA || (rc == 0 && memcmp(r->kept.bytes, head, sizeof(head)) != 0))
        return -EBADMSG;
    r->next = first;
    r->offset = sizeof(head);
    return rc;
}

int ft_segment_read(struct ft_segment_reader *r, size_t bytes_max, const uint8_t **bytes,
                    size_t *len)
{
    struct ft_reader head;
    uint64_t number, digest;
    const uint8_t *body;
    size_t size;
    int rc = keep(r, FT_SEGMENT_ENTRY_BYTES);

    if (rc < 0)
        return rc;
    ft_reader_init(&head, r->kept.bytes + (r->offset - r->kept_at), FT_SEGMENT_ENTRY_BYTES);
    size = ft_read_be32(&head);
    number = ft_read_be64(&head);
    digest = ft_read_be64(&head);
    if (size > bytes_max || number != r->next)
        return -EBADMSG;
    rc = keep(r, FT_SEGMENT_ENTRY_BYTES + size);
    if (rc < 0)
        return rc;
    body = r->kept.bytes + (r->offset - r->kept_at) + FT_SEGMENT_ENTRY_BYTES;
    if (ft_digest_bytes(body, size, number) != digest)
        return -EBADMSG;
    r->offset += FT_SEGMENT_ENTRY_BYTES + size;
    r->next++;
    *bytes = body;
    *len = size;
    return 0;
}

void ft_segment_reader_close(struct ft_segment_reader *r)
{
    ft_writer_free(&r->kept);
    *r = (struct ft_segment_reader){.fd = -1};
}
