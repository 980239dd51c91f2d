// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/disk/unpack.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#define PACKED_BYTES (256u << 10)
#define MAGIC_BYTES  4

enum packing { PLAIN, GZIP, ZSTD };

struct ft_unpack {
    int fd;
    enum packing packing;
    bool begun, ended, inside; /* within a member or frame, which must not break off */
    const char *problem;
    uint8_t *packed; /* what was read and not yet unpacked: from at to len */
    size_t at, len;
    uint64_t bytes; /* read so far */
#ifdef HAVE_ZLIB
    z_stream gzip;
#endif
#ifdef HAVE_ZSTD
    ZSTD_DStream *zstd;
#endif
};

/* Reads on behind what is left; false at the end of the file or on failure. */
static bool fill(struct ft_unpack *u, size_t least)
{
    memmove(u->packed, u->packed + u->at, u->len - u->at);
    u->len -= u->at;
    u->at = 0;
    while (u->len < least && !u->ended) {
        ssize_t n = read(u->fd, u->packed + u->len, PACKED_BYTES - u->len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            u->problem = strerror(errno);
        u->ended = n <= 0;
        u->len += n > 0 ? (size_t)n : 0;
        u->bytes += n > 0 ? (uint64_t)n : 0;
    }
    return u->len > 0;
}

static int refuse(struct ft_unpack *u, const char *problem)
{
    u->problem = problem;
    return -1;
}

#ifdef HAVE_ZLIB
static ssize_t read_gzip(struct ft_unpack *u, char *to, size_t size)
{
    int rc;

    u->gzip.next_in = u->packed + u->at;
    u->gzip.avail_in = (uInt)(u->len - u->at);
    u->gzip.next_out = (uint8_t *)to;
    u->gzip.avail_out = (uInt)size;
    rc = inflate(&u->gzip, Z_NO_FLUSH);
    u->at = u->len - u->gzip.avail_in;
    u->inside = rc == Z_OK || rc == Z_BUF_ERROR;
    if (rc == Z_STREAM_END && inflateReset(&u->gzip) != Z_OK)
        return refuse(u, "gzip: no memory");
    if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
        return refuse(u, "gzip: its data is damaged");
    return (ssize_t)(size - u->gzip.avail_out);
}

static int begin_gzip(struct ft_unpack *u)
{
    /* 16: with gzip's head (zlib.h). */
    return inflateInit2(&u->gzip, 16 + MAX_WBITS) == Z_OK ? 0 : refuse(u, "gzip: no memory");
}
#else
static ssize_t read_gzip(struct ft_unpack *u, char *to, size_t size)
{
    (void)to;
    (void)size;
    return refuse(u, "gzip: this build has no support for zlib");
}

static int begin_gzip(struct ft_unpack *u)
{
    return refuse(u, "gzip: this build has no support for zlib");
}
#endif

#ifdef HAVE_ZSTD
static ssize_t read_zstd(struct ft_unpack *u, char *to, size_t size)
{
    ZSTD_inBuffer in = {u->packed + u->at, u->len - u->at, 0};
    ZSTD_outBuffer out = {to, size, 0};
    size_t rc = ZSTD_decompressStream(u->zstd, &out, &in);

    u->at += in.pos;
    if (ZSTD_isError(rc))
        return refuse(u, "zstd: its data is damaged");
    u->inside = rc != 0;
    return (ssize_t)out.pos;
}

static int begin_zstd(struct ft_unpack *u)
{
    u->zstd = ZSTD_createDStream();
    return u->zstd ? 0 : refuse(u, "zstd: no memory");
}
#else
static ssize_t read_zstd(struct ft_unpack *u, char *to, size_t size)
{
    (void)to;
    (void)size;
    return refuse(u, "zstd: this build has no support for libzstd");
}

static int begin_zstd(struct ft_unpack *u)
{
    return refuse(u, "zstd: this build has no support for libzstd");
}
#endif

/* RFC 1952 section 2.3.1, RFC 8878 section 3.1.1. */
static int begin(struct ft_unpack *u)
{
    static const uint8_t gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};

    u->begun = true;
    fill(u, MAGIC_BYTES);
    if (u->len >= sizeof(gzip) && memcmp(u->packed, gzip, sizeof(gzip)) == 0) {
        u->packing = GZIP;
        return begin_gzip(u);
    }
    if (u->len >= sizeof(zstd) && memcmp(u->packed, zstd, sizeof(zstd)) == 0) {
        u->packing = ZSTD;
        return begin_zstd(u);
    }
    return 0;
}

static ssize_t read_plain(struct ft_unpack *u, char *to, size_t size)
{
    size_t n = u->len - u->at < size ? u->len - u->at : size;

    memcpy(to, u->packed + u->at, n);
    u->at += n;
    return (ssize_t)n;
}

static ssize_t read_some(void *cookie, char *to, size_t size)
{
    struct ft_unpack *u = cookie;
    ssize_t n = 0;

    if (u->problem || (!u->begun && begin(u)))
        goto failed;
    /* A step may give nothing: it took in more, or ended a member that another follows. */
    while (n == 0) {
        if (u->at == u->len && !fill(u, 1) && !u->inside)
            break;
        if (u->at == u->len && u->ended && u->packing == PLAIN)
            break;
        n = u->packing == PLAIN  ? read_plain(u, to, size)
            : u->packing == GZIP ? read_gzip(u, to, size)
                                 : read_zstd(u, to, size);
        if (n == 0 && u->at == u->len && u->ended && u->inside)
            n = refuse(u, "it is cut off");
        if (n == 0 && u->at == u->len && u->ended)
            break;
    }
    if (n >= 0 && !u->problem)
        return n;
failed:
    errno = EIO;
    return -1;
}

struct ft_unpack *ft_unpack_new(int fd, FILE **stream)
{
    const cookie_io_functions_t functions = {.read = read_some};
    struct ft_unpack *u = calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    u->fd = fd;
    u->packed = malloc(PACKED_BYTES);
    *stream = u->packed ? fopencookie(u, "r", functions) : NULL;
    if (!*stream) {
        ft_unpack_free(u);
        return NULL;
    }
    return u;
}

void ft_unpack_free(struct ft_unpack *u)
{
    if (!u)
        return;
#ifdef HAVE_ZLIB
    if (u->packing == GZIP)
        inflateEnd(&u->gzip);
#endif
#ifdef HAVE_ZSTD
    ZSTD_freeDStream(u->zstd);
#endif
    free(u->packed);
    free(u);
}

bool ft_unpack_empty(const struct ft_unpack *u)
{
    return u->ended && u->bytes == 0 && !u->problem;
}

const char *ft_unpack_problem(const struct ft_unpack *u)
{
    return u->problem;
}
