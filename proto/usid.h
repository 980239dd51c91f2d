// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_USID_H
#define FT_PROTO_USID_H
/*
 * Destinations that are a path: containers of SRv6 micro-SIDs (RFC 9800, flavor NEXT-CSID).
 *
 * Such an address is a block, then micro-SIDs of 16 bits, then zeros. Each switch on the way takes
 * the first micro-SID off and shifts the rest up to the block:
 *
 *     fc00:0:11:21:13:105::    as the sender wrote it: leaf 11, spine 21, leaf 13, NIC 105
 *     fc00:0:21:13:105::       from leaf 11 on
 *     fc00:0:13:105::          from spine 21 on
 *     fc00:0:105::             from leaf 13 on, and as the NIC receives it
 *
 * So one flow has another 5-tuple on every link, and other ones on every path. What stays: source,
 * ports, destination queue pair; of the destination the block and the last micro-SID. That is the
 * address by which the packet arrives (RFC 9800 section 6.5 has checksums computed with it), and
 * the NIC's own, so it is what a flow is called here.
 *
 * A micro-SID from the local range on (RFC 9800 section 4: of the LIB) means something at one node
 * alone: two NICs may have the same. It stays together with the global one before it. Where that
 * was taken off already, or the address has something behind its first zero (an argument, or no
 * container at all), nobody knows what stays: such a destination is left as it is. No host has it,
 * so that flow's path is unresolved, never wrong.
 *
 * The name leaves the queue pair out: a transport that gives each path a source port of its own
 * has a flow for each, whose path is known, and their connection spreads over all. Pure.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/prefix.h"

/* Of a block, in steps of 16: there is room for two micro-SIDs at least. */
#define FT_USID_BLOCK_BITS_MIN 16
#define FT_USID_BLOCK_BITS_MAX 96
#define FT_USID_BLOCKS_MAX     16

/* First micro-SIDs that are local: what vendors have as default; and a range without any. */
#define FT_USID_LOCAL      0xe000
#define FT_USID_LOCAL_NONE 0x10000

enum ft_usid {
    FT_USID_NONE,    /* of no block */
    FT_USID_KNOWN,   /* *stays is set */
    FT_USID_UNKNOWN, /* a container of which is not known what stays */
};

struct ft_usid_blocks {
    struct ft_prefix list[FT_USID_BLOCKS_MAX]; /* none within another one */
    size_t count;
    uint32_t local; /* the first micro-SID that is local */
};

/* The setting of poller and agent, whose flows have to bear the same names. */
#define FT_USID_BLOCKS_HELP                                                                        \
    "Prefixes (fc00:0::/32) of addresses that are containers of SRv6 micro-SIDs of 16 bits, "      \
    "which "                                                                                       \
    "switches shift on the way (RFC 9800, NEXT-CSID), where senders write them into the "          \
    "destination of their flows, without a header around these. Lengths are 16, 32, 48, 64, 80 "   \
    "or 96, 16 prefixes at most. A flow then has one destination on all links and paths: block "   \
    "and last micro-SID, with which its packets arrive; the topology has to have it as an "        \
    "address of the NIC. Nothing else may have addresses in these prefixes. Destinations of "      \
    "which that is not certain are left as they are, and counted. "
#define FT_USID_LOCAL_HELP                                                                         \
    "First micro-SID that means something at one node alone, by default 0xe000. It stays in a "    \
    "destination together with the one before it. 65536: there are none."

/* A block in text, "fc00:0::/32". -EINVAL: it is no IPv6 prefix, or of a length that cannot be. */
int ft_usid_block_parse(const char *text, struct ft_prefix *block);

/* Those of a setting, each in text, of which some may lie within others. -EINVAL: error has what is
 * wrong; it may be NULL, of 0 bytes. */
int ft_usid_blocks_parse(char *const *texts, size_t count, uint64_t local,
                         struct ft_usid_blocks *blocks, char *error, size_t error_bytes);

/* What stays of a destination on its way. */
enum ft_usid ft_usid_stays(const struct ft_usid_blocks *blocks, const struct ft_ip *dst,
                           struct ft_ip *stays);

#endif
