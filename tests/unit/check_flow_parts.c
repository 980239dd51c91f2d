// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <string.h>

#include "daemon/join/flow_parts.h"
#include "daemon/join/moves.h"
#include "tests/unit/unit.h"

static const size_t bytes[FT_FLOW_PARTS] = {
    [FT_FLOW_HOST] = sizeof(struct ft_flow_host),
    [FT_FLOW_TUNNEL] = sizeof(struct ft_flow_tunnel),
    [FT_FLOW_MOVES] = sizeof(struct ft_moves),
    [FT_FLOW_NUMBERS] = sizeof(struct ft_flow_numbers),
    [FT_FLOW_PATH] = sizeof(struct ft_path),
    [FT_FLOW_CLUMPS] = sizeof(struct ft_flow_clumps),
    [FT_FLOW_NETWORKS] = sizeof(struct ft_flow_networks),
};

/* Each part is all of one letter. */
static void fill(struct ft_flow *flow, int part, char letter)
{
    memset(ft_flow_part(flow, part), letter, bytes[part]);
}

static bool is_filled(const struct ft_flow *flow, int part, char letter)
{
    const char *has = ft_flow_part(flow, part);

    for (size_t i = 0; i < bytes[part]; i++)
        if (has[i] != letter)
            return false;
    return true;
}

/* Whatever comes and goes, in any order, the others keep what they have. */
START_TEST(parts_keep_what_they_have_while_others_come_and_go)
{
    struct ft_flow flow = {.parts = NULL};
    char has[FT_FLOW_PARTS] = {0};
    uint32_t state = 1;

    for (int step = 0; step < 10000; step++) {
        size_t sum = 0;
        int part;

        state = state * 1664525 + 1013904223;
        part = (int)(state >> 16) % FT_FLOW_PARTS;
        if (has[part] && state >> 31) {
            ft_flow_remove_part(&flow, part);
            has[part] = 0;
        } else {
            ck_assert_ptr_nonnull(ft_flow_add_part(&flow, part));
            ck_assert(is_filled(&flow, part, has[part]));
            has[part] = (char)('a' + step % 26);
            fill(&flow, part, has[part]);
        }
        for (int i = 0; i < FT_FLOW_PARTS; i++) {
            ck_assert_int_eq(!ft_flow_part(&flow, i), !has[i]);
            ck_assert(!has[i] || is_filled(&flow, i, has[i]));
            sum += has[i] ? (bytes[i] + FT_FLOW_PART_UNIT - 1) / FT_FLOW_PART_UNIT : 0;
        }
        ck_assert_uint_eq(ft_flow_parts_bytes(&flow), sum ? (sum + 1) * FT_FLOW_PART_UNIT : 0);
    }
    free(flow.parts);
}
END_TEST

START_TEST(the_last_part_takes_all_with_it)
{
    struct ft_flow flow = {.parts = NULL};

    ft_flow_remove_part(&flow, FT_FLOW_MOVES);
    ck_assert_ptr_null(flow.parts);
    ft_flow_add_part(&flow, FT_FLOW_HOST);
    ft_flow_remove_part(&flow, FT_FLOW_MOVES);
    ck_assert_ptr_nonnull(ft_flow_host(&flow));
    ft_flow_remove_part(&flow, FT_FLOW_HOST);
    ck_assert_ptr_null(flow.parts);
}
END_TEST

FT_UNIT_MAIN("flow_parts", parts_keep_what_they_have_while_others_come_and_go,
             the_last_part_takes_all_with_it)
