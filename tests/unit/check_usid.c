// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/usid.h"

#include "tests/unit/unit.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct ft_usid_blocks blocks_of(const char *a, const char *b, uint32_t local)
{
    struct ft_usid_blocks blocks = {.local = local};

    ck_assert_int_eq(ft_usid_block_parse(a, &blocks.list[blocks.count++]), 0);
    if (b)
        ck_assert_int_eq(ft_usid_block_parse(b, &blocks.list[blocks.count++]), 0);
    return blocks;
}

/* NULL: it is not known; the same address: of no block. */
static void stays_is(const struct ft_usid_blocks *blocks, const char *dst, const char *expected)
{
    struct ft_ip ip, stays;
    char text[FT_IP_TEXT_BYTES];
    enum ft_usid got;

    ck_assert_int_eq(ft_ip_parse(dst, &ip), 0);
    stays = ip;
    got = ft_usid_stays(blocks, &ip, &stays);
    ft_ip_format(&stays, text);
    ck_assert_msg((got == FT_USID_UNKNOWN) == !expected, "%s: %d", dst, (int)got);
    ck_assert_str_eq(text, expected ? expected : dst);
}

/* Each line is one packet at its hops, as RFC 9800 section 4.1.1 shifts it. */
START_TEST(one_flow_at_every_hop)
{
    static const struct {
        const char *stays, *hops[5];
    } flows[] = {
        {"fc00:0:105::",
         {"fc00:0:11:21:13:105::", "fc00:0:21:13:105::", "fc00:0:13:105::", "fc00:0:105::"}},
        {"fc00:0:105::", {"fc00:0:11:22:13:105::", "fc00:0:22:13:105::"}},  /* another path */
        {"fc00:0:106::", {"fc00:0:1:2:3:4:5:106", "fc00:0:2:3:4:5:106:0"}}, /* no zero is left */
        {"fc00:0:13:e001::",
         {"fc00:0:11:e002:21:13:e001::", "fc00:0:e002:21:13:e001:0:0",
          "fc00:0:21:13:e001::", "fc00:0:13:e001::"}},
        {"fc00:0:13:e001:e002::", {"fc00:0:21:13:e001:e002::"}},
        {"2001:db8:1:105::", {"2001:db8:1:11:21:105::", "2001:db8:1:21:105::"}},
    };
    struct ft_usid_blocks blocks = blocks_of("fc00:0::/32", "2001:db8:1::/48", FT_USID_LOCAL);

    for (size_t i = 0; i < COUNT(flows); i++)
        for (size_t k = 0; k < COUNT(flows[i].hops) && flows[i].hops[k]; k++) {
            struct ft_ip ip, stays, expected;

            ck_assert_int_eq(ft_ip_parse(flows[i].hops[k], &ip), 0);
            ck_assert_int_eq(ft_ip_parse(flows[i].stays, &expected), 0);
            ck_assert_int_eq(ft_usid_stays(&blocks, &ip, &stays), FT_USID_KNOWN);
            ck_assert_msg(ft_ip_equal(&stays, &expected), "%s", flows[i].hops[k]);
        }
}
END_TEST

START_TEST(what_is_not_certain_is_left)
{
    struct ft_usid_blocks blocks = blocks_of("fc00::/32", NULL, FT_USID_LOCAL);

    stays_is(&blocks, "fc00::", NULL);             /* all are taken off */
    stays_is(&blocks, "fc00:0:e001::", NULL);      /* of which node? */
    stays_is(&blocks, "fc00:0:e001:e002::", NULL); /* likewise */
    stays_is(&blocks, "fc00:0:13::1", NULL);       /* an argument, or a host in a subnet */
    stays_is(&blocks, "fc00:0:13:0:5::", NULL);
    stays_is(&blocks, "fc00:0:0:5::", NULL);
    /* of no block */
    stays_is(&blocks, "fc00:1:11:21::", "fc00:1:11:21::");
    stays_is(&blocks, "10.0.0.1", "10.0.0.1");
    blocks.count = 0;
    stays_is(&blocks, "fc00:0:11:21::", "fc00:0:11:21::");
}
END_TEST

START_TEST(the_local_range)
{
    struct ft_usid_blocks blocks = blocks_of("fc00::/32", NULL, 0x8000);

    stays_is(&blocks, "fc00:0:11:7fff:8000::", "fc00:0:7fff:8000::");
    blocks.local = FT_USID_LOCAL_NONE;
    stays_is(&blocks, "fc00:0:11:7fff:8000::", "fc00:0:8000::");
    stays_is(&blocks, "fc00:0:11:ffff::", "fc00:0:ffff::");
}
END_TEST

/* An address with any bit of the block changed is of none, whatever the block's length; with any
 * other bit changed it is in it. */
START_TEST(each_bit_of_a_block_counts)
{
    struct ft_ip in, stays;
    char text[64];

    ck_assert_int_eq(ft_ip_parse("fc11:2233:4455:6677:8899:aabb:15:0", &in), 0);
    for (unsigned bits = FT_USID_BLOCK_BITS_MIN; bits <= FT_USID_BLOCK_BITS_MAX; bits += 16) {
        struct ft_usid_blocks blocks;

        snprintf(text, sizeof(text), "fc11:2233:4455:6677:8899:aabb::/%u", bits);
        blocks = blocks_of("fd00::/16", text, FT_USID_LOCAL_NONE);
        for (unsigned bit = 0; bit < 128; bit++) {
            struct ft_ip other = in;

            other.b[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
            ck_assert_msg((ft_usid_stays(&blocks, &other, &stays) == FT_USID_NONE) == (bit < bits),
                          "/%u, bit %u", bits, bit);
        }
    }
}
END_TEST

START_TEST(blocks)
{
    static const char *const bad[] = {"fc00::",     "fc00::/0",  "fc00::/33",  "fc00::/112",
                                      "fc00::/128", "fc00::/-1", "10.0.0.0/8", "0.0.0.0/0",
                                      "fc00::/32x", "",          "/32",        "fabric"};
    struct ft_prefix block;

    for (size_t i = 0; i < COUNT(bad); i++)
        ck_assert_msg(ft_usid_block_parse(bad[i], &block), "%s", bad[i]);
    ck_assert_int_eq(ft_usid_block_parse("fc00::/16", &block), 0);
    ck_assert_uint_eq(block.bits, 16);
    ck_assert_int_eq(ft_usid_block_parse("fc00:1:2:3:4:5::/96", &block), 0);
    ck_assert_uint_eq(block.bits, 96);
}
END_TEST

FT_UNIT_MAIN("usid", one_flow_at_every_hop, what_is_not_certain_is_left, the_local_range,
             each_bit_of_a_block_counts, blocks)
