// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_RDMA_NLATTR_H
#define FT_AGENT_RDMA_NLATTR_H
/*
 * Netlink attributes (struct nlattr of linux/netlink.h) out of bytes: a length and a type in the
 * host's byte order, the value, padding to 4 bytes. Every value is read within its own bounds.
 */
#include <stdint.h>

#include "lib/base/reader.h"

struct ft_nlattr {
    uint16_t type; /* without the flags for nesting and byte order */
    struct ft_reader value;
};

/* The next attribute: 1, 0 at the end, -EBADMSG when its length does not fit. */
int ft_nlattr_next(struct ft_reader *r, struct ft_nlattr *attr);

/* Integers of the host's byte order; a value of another size makes *bad true and is 0. */
uint8_t ft_nlattr_u8(const struct ft_nlattr *attr, bool *bad);
uint32_t ft_nlattr_u32(const struct ft_nlattr *attr, bool *bad);
uint64_t ft_nlattr_u64(const struct ft_nlattr *attr, bool *bad);

/* A string up to its terminator, or the complete value without one, cut off at the size. */
void ft_nlattr_text(const struct ft_nlattr *attr, char *text, size_t text_bytes);

#endif
