// SPDX-License-Identifier: Apache-2.0
/* Heads of frames; the first byte picks the link type. */
#include "config.h"

#include "proto/packet.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

/* The short cut for plain frames says what the general way says of the packet inside. */
static void claim_no_special_case(const uint8_t *bytes, size_t len)
{
    struct ft_packet k, general;
    struct ft_reader r;
    enum ft_packet_status status;

    if (len < 14 || bytes[12] != 0x08 || bytes[13] != 0x00)
        return;
    ft_reader_init(&r, bytes, len);
    status = ft_packet_decode(FT_LINK_ETHERNET, &r, &k);
    ft_reader_init(&r, bytes + 14, len - 14);
    ft_fuzz_assert(ft_packet_decode(FT_LINK_IPV4, &r, &general) == status, "one status");
    if (status != FT_PACKET_OK)
        return;
    ft_fuzz_assert(ft_tuple_equal(&k.tuple, &general.tuple), "one tuple");
    ft_fuzz_assert(k.ecn == general.ecn && k.dscp == general.dscp && k.ttl == general.ttl &&
                       k.ip_bytes == general.ip_bytes && k.flow_label == general.flow_label &&
                       k.vni == general.vni,
                   "one IP header");
    ft_fuzz_assert(k.bth == general.bth && k.opcode == general.opcode &&
                       k.dst_qp == general.dst_qp && k.psn == general.psn,
                   "one BTH");
    ft_fuzz_assert(k.has_outer == general.has_outer, "one tunnel");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const uint8_t zero[sizeof(((struct ft_tuple *)0)->zero)];
    enum ft_link_type link;
    struct ft_reader r, payload;
    struct ft_packet k, again;

    if (len == 0)
        return 0;
    claim_no_special_case(bytes + 1, len - 1);
    link = (enum ft_link_type)(bytes[0] % (FT_LINK_MPLS + 1));
    ft_reader_init(&r, bytes + 1, len - 1);
    if (ft_packet_decode(link, &r, &k) != FT_PACKET_OK)
        return 0;
    ft_fuzz_assert(memcmp(k.tuple.zero, zero, sizeof(zero)) == 0, "a tuple's padding is zero");
    ft_fuzz_assert(k.bth != FT_BTH_NONE || (k.opcode == 0 && k.dst_qp == 0 && k.psn == 0),
                   "no BTH, no fields of it");
    ft_fuzz_assert(k.dst_qp >> 24 == 0 && k.psn >> 24 == 0, "24 bits");

    ft_reader_init(&r, bytes + 1, len - 1);
    if (ft_packet_udp_payload(link, &r, &again, &payload) != FT_PACKET_OK)
        return 0;
    ft_fuzz_assert(ft_tuple_equal(k.has_outer ? &k.outer : &k.tuple, &again.tuple),
                   "both ways give one tuple");
    ft_fuzz_assert(payload.pos >= bytes && payload.end <= bytes + len,
                   "the payload is in the head");
    return 0;
}
