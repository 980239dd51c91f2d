// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_PROBE_PACKET_H
#define FT_AGENT_PROBE_PACKET_H
/*
 * A probe: an IP packet with a flow's addresses, ports, DSCP and destination queue pair, which is
 * what switches hash, and a TTL that ends on the way.
 *
 * Should it ever reach a NIC, that drops it: its invariant CRC is wrong (IBTA volume 1, section
 * 9.2.4 in annex A17). Its UDP checksum is right, since some switches check it. Pure. Thread: any.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"

/* IPv6 header, UDP header, BTH, nonce, CRC. */
#define FT_PROBE_BYTES (40 + 8 + 12 + 8 + 4)

struct ft_probe_shot {
    struct ft_tuple tuple;
    uint32_t dst_qp; /* 24 bits */
    uint8_t dscp;    /* 6 bits */
    uint8_t ttl;
    uint16_t id;    /* IPv4's identification, not 0: the kernel would choose one */
    uint64_t nonce; /* comes back in answers that quote so far */
};

/* Returns the length, and the UDP checksum, by which the answer is known. */
size_t ft_probe_packet(const struct ft_probe_shot *shot, uint8_t bytes[FT_PROBE_BYTES],
                       uint16_t *udp_checksum);

#endif
