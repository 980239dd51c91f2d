// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_ROCE_H
#define FT_FABRIC_ROCE_H
/*
 * RoCEv2 packets for the lab: built whole, from the IP header to the ICRC, and their BTH read back.
 *
 * Shares nothing with proto/: what the product decodes here is not made by the product's own code.
 * Formats are those of the InfiniBand Architecture Specification volume 1, chapter 9 (BTH, RETH,
 * AETH) and annex A17 (RoCEv2). Pure: no socket, no clock.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"

#define FT_ROCE_PACKET_BYTES_MAX 4400 /* a path MTU of 4096 and every header */

/* Reliable connection, section 9.2.1. */
enum ft_roce_opcode {
    FT_ROCE_WRITE_FIRST = 0x06,
    FT_ROCE_WRITE_MIDDLE = 0x07,
    FT_ROCE_WRITE_LAST = 0x08,
    FT_ROCE_WRITE_ONLY = 0x0a,
    FT_ROCE_ACKNOWLEDGE = 0x11,
};

struct ft_roce_packet {
    struct ft_ip src;
    struct ft_ip dst; /* of src's family */
    uint16_t sport;
    uint16_t ip_id; /* IPv4; the ICRC covers it, and the kernel replaces 0 */
    enum ft_roce_opcode opcode;
    bool ack_request;
    uint32_t dst_qp;        /* 24 bits */
    uint32_t psn;           /* 24 bits */
    uint32_t dma_bytes;     /* RETH of WRITE_FIRST and WRITE_ONLY: length of the message */
    uint32_t msn;           /* AETH of ACKNOWLEDGE: messages completed, 24 bits */
    uint16_t payload_bytes; /* of WRITE_*; zeros; padded to a multiple of four */
};

/* Writes the IP packet and its length. -EINVAL when the families differ or it is over
 * FT_ROCE_PACKET_BYTES_MAX or size. */
int ft_roce_build(const struct ft_roce_packet *packet, uint8_t *bytes, size_t size, size_t *len);

/* The ICRC of an IP packet (IHL 5 or plain IPv6, then UDP) whose last four bytes are its place, as
 * a number whose least significant byte goes first on the wire (annex A17.3.3). 0 when the packet
 * is too short. */
uint32_t ft_roce_icrc(const uint8_t *bytes, size_t len);

struct ft_roce_bth {
    uint8_t opcode;
    bool ack_request;
    uint32_t dst_qp;
    uint32_t psn;
};

/* The BTH at the start of a UDP payload. -EINVAL when it is cut off or of another version. */
int ft_roce_read_bth(const uint8_t *bytes, size_t len, struct ft_roce_bth *bth);

/* A request of WRITE_*, as opposed to an acknowledgement and all else. */
bool ft_roce_is_write(uint8_t opcode);

/* Whether this request is the last packet of its message. */
bool ft_roce_ends_message(uint8_t opcode);

#endif
