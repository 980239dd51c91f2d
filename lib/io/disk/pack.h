// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_DISK_PACK_H
#define FT_IO_DISK_PACK_H
/*
 * Blocks of bytes packed by zstd, each alone, for what is kept or sent in parts. A build without
 * libzstd leaves them as they are. Thread: any.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/writer.h"

enum ft_packing {
    FT_PACKING_NONE,
    FT_PACKING_ZSTD,
};

/* Appends the block, packed where that makes it smaller. The writer fails without memory. */
enum ft_packing ft_pack(const void *bytes, size_t len, struct ft_writer *out);

/* Unpacks a block, whose length is known, to `plain`. -EBADMSG when it is none, or is of another
 * length; -ENOTSUP for a packing that this build does not have. Foreign. */
int ft_pack_open(enum ft_packing packing, const uint8_t *packed, size_t packed_len, uint8_t *plain,
                 size_t plain_len);

#endif
