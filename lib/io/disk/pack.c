// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/disk/pack.h"

#include <errno.h>
#include <string.h>

#ifdef HAVE_ZSTD
#include <zstd.h>

#define LEVEL 1 /* half a second's input in some milliseconds of the loop */
#endif

enum ft_packing ft_pack(const void *bytes, size_t len, struct ft_writer *out)
{
#ifdef HAVE_ZSTD
    size_t before = out->len, bound = ZSTD_compressBound(len), packed;
    uint8_t *room = ft_write_room(out, bound);

    packed = room ? ZSTD_compress(room, bound, bytes, len, LEVEL) : 0;
    if (!room)
        return FT_PACKING_NONE;
    if (!ZSTD_isError(packed) && packed < len) {
        out->len = before + packed;
        return FT_PACKING_ZSTD;
    }
    out->len = before;
#endif
    ft_write_bytes(out, bytes, len);
    return FT_PACKING_NONE;
}

int ft_pack_open(enum ft_packing packing, const uint8_t *packed, size_t packed_len, uint8_t *plain,
                 size_t plain_len)
{
    if (packing == FT_PACKING_NONE) {
        if (packed_len != plain_len)
            return -EBADMSG;
        if (plain_len)
            memcpy(plain, packed, plain_len);
        return 0;
    }
#ifdef HAVE_ZSTD
    if (packing == FT_PACKING_ZSTD)
        return ZSTD_decompress(plain, plain_len, packed, packed_len) == plain_len ? 0 : -EBADMSG;
#endif
    return -ENOTSUP;
}
