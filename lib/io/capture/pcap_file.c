// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/capture/pcap_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/reader.h"

/* draft-ietf-opsawg-pcap sections 4 and 5 */
#define MAGIC_MICROSECONDS 0xa1b2c3d4
#define MAGIC_NANOSECONDS  0xa1b23c4d
#define FORMAT_VERSION     (2 | 4u << 16)
#define FILE_HEAD_BYTES    24
#define PACKET_HEAD_BYTES  16
#define LINK_ETHERNET      1
#define LINK_RAW           101
#define LINK_COOKED        113
#define LINK_COOKED2       276

/* As libpcap has it for these link types. */
#define CAPTURED_MAX 262144
/* A packet of any length and its head, and small enough for the cache. */
#define BUFFER_BYTES (CAPTURED_MAX + PACKET_HEAD_BYTES)
#define CACHE_LINE   64
/* The next packet is asked for while this one is worked on, as far as this. */
#define AHEAD_MAX 2048

struct ft_pcap_file {
    int fd;
    enum ft_pcap_link link;
    uint32_t snap_bytes;
    uint32_t per_ms;    /* fractions of a time in a millisecond */
    uint64_t at;        /* of the buffer in the file */
    struct ft_reader r; /* over what is in it */
    uint8_t buffer[BUFFER_BYTES];
};

static uint32_t host32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* Whether a file that ended at an offset had been longer. */
static bool was_cut(const struct ft_pcap_file *f, uint64_t at)
{
    struct stat st;

    return fstat(f->fd, &st) == 0 && (uint64_t)st.st_size < at;
}

/* Reads on from where the reader is, so that at least n bytes are there. -ENODATA when the file has
 * less, with 0 in *left at its very end; -ESTALE when it had more before. */
static int fill(struct ft_pcap_file *f, size_t n, uint64_t *left)
{
    uint64_t at = f->at + (uint64_t)(f->r.pos - f->buffer);
    ssize_t got = pread(f->fd, f->buffer, BUFFER_BYTES, (off_t)at);

    if (got < 0)
        return -errno;
    *left = (uint64_t)got;
    if (*left < n)
        return was_cut(f, at) ? -ESTALE : -ENODATA;
    f->at = at;
    ft_reader_init(&f->r, f->buffer, (size_t)got);
    return 0;
}

/* Borrows the next n bytes, at most a packet's. */
static int take(struct ft_pcap_file *f, size_t n, const uint8_t **bytes, uint64_t *left)
{
    int rc = ft_reader_left(&f->r) < n ? fill(f, n, left) : 0;

    if (rc < 0)
        return rc;
    *bytes = ft_read_bytes(&f->r, n);
    return 0;
}

static bool read_head(struct ft_pcap_file *f)
{
    const uint8_t *h;
    uint64_t left;

    if (take(f, FILE_HEAD_BYTES, &h, &left) < 0 || host32(h + 4) != FORMAT_VERSION)
        return false;
    if (host32(h) != MAGIC_MICROSECONDS && host32(h) != MAGIC_NANOSECONDS)
        return false;
    f->per_ms = host32(h) == MAGIC_MICROSECONDS ? 1000 : 1000000;
    f->snap_bytes = host32(h + 16);
    if (f->snap_bytes == 0 || f->snap_bytes > CAPTURED_MAX)
        return false;
    switch (host32(h + 20)) {
    case LINK_ETHERNET:
        f->link = FT_PCAP_ETHERNET;
        return true;
    case LINK_RAW:
        f->link = FT_PCAP_RAW;
        return true;
    case LINK_COOKED:
        f->link = FT_PCAP_COOKED;
        return true;
    case LINK_COOKED2:
        f->link = FT_PCAP_COOKED2;
        return true;
    default:
        return false;
    }
}

struct ft_pcap_file *ft_pcap_file_new(const char *name)
{
    struct ft_pcap_file *f = calloc(1, sizeof(*f));
    struct stat st;

    if (!f)
        return NULL;
    ft_reader_init(&f->r, f->buffer, 0);
    /* A pipe can be opened once: to look into it here would cut off whoever writes it. */
    f->fd = stat(name, &st) == 0 && S_ISREG(st.st_mode)
                ? open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                : -1;
    if (f->fd < 0 || fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode) || !read_head(f)) {
        ft_pcap_file_free(f);
        return NULL;
    }
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return f;
}

void ft_pcap_file_free(struct ft_pcap_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    free(f);
}

/* The processor fetches ahead within a page only. */
static void hint_next(const struct ft_pcap_file *f, size_t bytes)
{
    size_t left = ft_reader_left(&f->r);
    size_t ahead = bytes < AHEAD_MAX ? bytes : AHEAD_MAX;

    if (ahead > left)
        ahead = left;
    for (size_t at = 0; at < ahead; at += CACHE_LINE)
        __builtin_prefetch(f->r.pos + at);
}

int ft_pcap_file_next(struct ft_pcap_file *f, struct ft_pcap_packet *packet)
{
    const uint8_t *h, *bytes;
    struct ft_pcap_packet p;
    uint32_t in_file;
    uint64_t left = 0;
    int rc = take(f, PACKET_HEAD_BYTES, &h, &left);

    if (rc < 0)
        return rc == -ENODATA && left == 0 ? 0 : rc;
    p.when.ms = (int64_t)host32(h) * 1000 + host32(h + 4) / f->per_ms;
    in_file = host32(h + 8);
    p.wire = host32(h + 12);
    if (in_file > CAPTURED_MAX)
        return -EMSGSIZE;
    rc = take(f, in_file, &bytes, &left);
    if (rc < 0)
        return rc;
    p.link = f->link;
    p.bytes = bytes;
    p.captured = in_file < f->snap_bytes ? in_file : f->snap_bytes;
    hint_next(f, in_file + PACKET_HEAD_BYTES);
    *packet = p;
    return 1;
}
