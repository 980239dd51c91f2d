// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>

#include "lib/io/http/http_impl.h"

#ifdef HAVE_ZLIB
#include <zlib.h>

#define GZIP_BITS  (15 + 16) /* the gzip form (RFC 1952) */
#define PART_BYTES ((size_t)16 << 10)

struct ft_gzip {
    z_stream stream;
};

struct ft_gzip *ft_gzip_new(void)
{
    struct ft_gzip *gzip = calloc(1, sizeof(*gzip));

    if (!gzip)
        return NULL;
    if (deflateInit2(&gzip->stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_BITS, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        free(gzip);
        return NULL;
    }
    return gzip;
}

void ft_gzip_free(struct ft_gzip *gzip)
{
    if (!gzip)
        return;
    deflateEnd(&gzip->stream);
    free(gzip);
}

int ft_gzip_add(struct ft_gzip *gzip, const uint8_t *bytes, size_t len, bool last,
                struct evbuffer *out)
{
    uint8_t part[PART_BYTES];
    int rc;

    gzip->stream.next_in = (uint8_t *)(uintptr_t)bytes;
    gzip->stream.avail_in = (uInt)len;
    do {
        gzip->stream.next_out = part;
        gzip->stream.avail_out = sizeof(part);
        rc = deflate(&gzip->stream, last ? Z_FINISH : Z_NO_FLUSH);
        if (rc == Z_STREAM_ERROR ||
            evbuffer_add(out, part, sizeof(part) - gzip->stream.avail_out) < 0)
            return -ENOMEM;
    } while (gzip->stream.avail_out == 0);
    return 0;
}

int ft_gzip_unpack(const uint8_t *bytes, size_t len, size_t plain_bytes, struct ft_writer *w)
{
    z_stream stream = {.next_in = (uint8_t *)(uintptr_t)bytes, .avail_in = (uInt)len};
    uint8_t *room = ft_write_room(w, plain_bytes);
    int rc;

    if (!room || inflateInit2(&stream, GZIP_BITS) != Z_OK)
        return -ENOMEM;
    stream.next_out = room;
    stream.avail_out = (uInt)plain_bytes;
    rc = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    return rc == Z_STREAM_END && stream.avail_out == 0 ? 0 : -EBADMSG;
}

#else

struct ft_gzip *ft_gzip_new(void)
{
    return NULL;
}

void ft_gzip_free(struct ft_gzip *gzip)
{
    (void)gzip;
}

int ft_gzip_add(struct ft_gzip *gzip, const uint8_t *bytes, size_t len, bool last,
                struct evbuffer *out)
{
    (void)gzip;
    (void)bytes;
    (void)len;
    (void)last;
    (void)out;
    return -ENOMEM;
}

int ft_gzip_unpack(const uint8_t *bytes, size_t len, size_t plain_bytes, struct ft_writer *w)
{
    (void)bytes;
    (void)len;
    (void)plain_bytes;
    (void)w;
    return -ENOMEM;
}

#endif
