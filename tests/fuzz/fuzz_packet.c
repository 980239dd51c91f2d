// SPDX-License-Identifier: Apache-2.0
/* Heads of frames; the first byte picks the link type. */
#include "config.h"

#include "proto/packet.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const uint8_t zero[sizeof(((struct ft_tuple *)0)->zero)];
    enum ft_link_type link;
    struct ft_reader r, payload;
    struct ft_packet k, again;

    if (len == 0)
        return 0;
    link = (enum ft_link_type)(bytes[0] % (FT_LINK_MPLS + 1));
    ft_reader_init(&r, bytes + 1, len - 1);
    if (ft_packet_decode(link, &r, &k) != FT_PACKET_OK)
        return 0;
    ft_fuzz_claim(memcmp(k.tuple.zero, zero, sizeof(zero)) == 0, "a tuple's padding is zero");
    ft_fuzz_claim(k.bth != FT_BTH_NONE || (k.opcode == 0 && k.dst_qp == 0 && k.psn == 0),
                  "no BTH, no fields of it");
    ft_fuzz_claim(k.dst_qp >> 24 == 0 && k.psn >> 24 == 0, "24 bits");

    ft_reader_init(&r, bytes + 1, len - 1);
    if (ft_packet_udp_payload(link, &r, &again, &payload) != FT_PACKET_OK)
        return 0;
    ft_fuzz_claim(ft_tuple_equal(k.has_outer ? &k.outer : &k.tuple, &again.tuple),
                  "both ways give one tuple");
    ft_fuzz_claim(payload.pos >= bytes && payload.end <= bytes + len, "the payload is in the head");
    return 0;
}
