// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/hinted.h"

#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

enum { SPINES = 4, DST = 1 };

static const struct ft_path NOTHING = {.hop_count = 0};

static struct ft_topology *t;

/* NIC 0 is on leaf0, NIC 1 on leaf1. */
static struct ft_hinted_from from_of(const struct ft_path *certain)
{
    return (struct ft_hinted_from){.t = t, .src_nic = 0, .dst_nic = DST, .certain = certain};
}

static uint32_t port(const char *name, const char *port_name)
{
    uint32_t id = ft_topology_find_port(t, ft_topology_find_switch(t, name), port_name);

    ck_assert_uint_ne(id, FT_NONE);
    return id;
}

static struct ft_hint hint(const char *name, const char *out, enum ft_hop_by by)
{
    return (struct ft_hint){ft_topology_find_switch(t, name), port(name, out), (uint8_t)by, 0};
}

START_TEST(without_hints_the_first_choice_is_asked_for)
{
    struct ft_hinted way;
    struct ft_hinted_from from;

    t = leafspine(2, SPINES, 1);
    from = from_of(&NOTHING);
    ck_assert(ft_hinted_path(&from, NULL, 0, &way));
    ck_assert(!way.hinted);
    ck_assert_uint_eq(way.path.hop_count, 3);
    ck_assert_uint_eq(way.ask, 0);
    ck_assert_uint_eq(way.path.hops[0].in, port("leaf0", "host0"));
    ck_assert_uint_eq(way.path.hops[0].out, FT_NONE);
    ck_assert_uint_eq(way.switches[1], FT_NONE);
    ck_assert_uint_eq(way.path.hops[2].in, FT_NONE);
    ck_assert_uint_eq(way.path.hops[2].out, port("leaf1", "host0"));
    ck_assert_uint_eq(way.switches[2], ft_topology_find_switch(t, "leaf1"));
    ft_topology_free(t);
}
END_TEST

START_TEST(a_hint_decides_what_follows_from_it)
{
    struct ft_hinted way;
    struct ft_hinted_from from;
    struct ft_hint list[1];

    t = leafspine(2, SPINES, 1);
    from = from_of(&NOTHING);
    list[0] = hint("leaf0", "up2", FT_BY_ORACLE);
    ck_assert(ft_hinted_path(&from, list, 1, &way));
    ck_assert(way.hinted);
    ck_assert_uint_eq(way.ask, FT_NONE);
    ck_assert_uint_eq(way.path.hops[0].out, port("leaf0", "up2"));
    ck_assert_uint_eq(way.path.hops[1].in, port("spine2", "down0"));
    ck_assert_uint_eq(way.path.hops[1].out, port("spine2", "down1"));
    ck_assert_uint_eq(way.path.hops[2].in, port("leaf1", "up2"));
    for (int h = 0; h < 3; h++)
        ck_assert_uint_eq(way.by[h], FT_BY_ORACLE);
    ft_topology_free(t);
}
END_TEST

/* A hint of a switch that the flow does not cross changes nothing. */
START_TEST(samples_go_first)
{
    struct ft_path certain = {.hop_count = 3};
    struct ft_hinted way;
    struct ft_hinted_from from;
    struct ft_hint list[2];

    t = leafspine(2, SPINES, 1);
    for (int h = 0; h < 3; h++)
        certain.hops[h] = (struct ft_hop){FT_NONE, FT_NONE};
    certain.hops[0] = (struct ft_hop){port("leaf0", "host0"), port("leaf0", "up1")};
    from = from_of(&certain);
    list[0] = hint("leaf0", "up2", FT_BY_ORACLE);
    ck_assert(!ft_hinted_path(&from, list, 1, &way));
    list[0] = hint("leaf0", "up1", FT_BY_ORACLE);
    list[1] = hint("spine3", "down1", FT_BY_PROBE);
    ck_assert(ft_hinted_path(&from, list, 2, &way));
    ck_assert(!way.hinted);
    ck_assert_uint_eq(way.by[0], FT_BY_SAMPLES);
    ck_assert_uint_eq(way.path.hops[1].in, port("spine1", "down0"));
    ft_topology_free(t);
}
END_TEST

/* More equal-cost paths than any list of them would hold. */
START_TEST(wide_fabrics_are_compared_completely)
{
    struct ft_hinted way;
    struct ft_hinted_from from;
    struct ft_hint list[1];

    t = leafspine(2, 200, 1);
    from = from_of(&NOTHING);
    ck_assert(ft_hinted_path(&from, NULL, 0, &way));
    ck_assert_uint_eq(way.ask, 0);
    list[0] = hint("leaf0", "up199", FT_BY_PREDICTION);
    ck_assert(ft_hinted_path(&from, list, 1, &way));
    ck_assert_uint_eq(way.path.hops[2].in, port("leaf1", "up199"));
    ck_assert_uint_eq(way.by[2], FT_BY_PREDICTION);
    ft_topology_free(t);
}
END_TEST

static struct ft_hinted way_in(uint32_t spines, const char *sampled_in, const char *hinted_out)
{
    struct ft_path certain = {.hop_count = 3};
    struct ft_hinted way;
    struct ft_hinted_from from;
    struct ft_hint list[1];

    t = leafspine(2, spines, 2);
    for (int h = 0; h < 3; h++)
        certain.hops[h] = (struct ft_hop){FT_NONE, FT_NONE};
    if (sampled_in)
        certain.hops[2].in = port("leaf1", sampled_in);
    from = from_of(&certain);
    from.dst_nic = 2;
    if (hinted_out)
        list[0] = hint("leaf0", hinted_out, FT_BY_ORACLE);
    ck_assert(ft_hinted_path(&from, list, hinted_out ? 1 : 0, &way));
    return way;
}

/* Few paths are listed and compared, of many each end is looked for: both find the same. */
START_TEST(few_paths_and_many_are_decided_alike)
{
    static const struct {
        const char *sampled_in, *hinted_out;
        uint32_t asked, known; /* stage; ends that all paths share */
    } cases[] = {{NULL, NULL, 0, 2}, {"up3", NULL, FT_NONE, 6}, {NULL, "up5", FT_NONE, 6}};

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
        for (uint32_t spines = 64; spines <= 65; spines++) {
            struct ft_hinted way = way_in(spines, cases[c].sampled_in, cases[c].hinted_out);
            uint32_t known = 0;

            for (int h = 0; h < 3; h++)
                known += (way.path.hops[h].in != FT_NONE) + (way.path.hops[h].out != FT_NONE);
            ck_assert_uint_eq(way.path.hop_count, 3);
            ck_assert_uint_eq(way.ask, cases[c].asked);
            ck_assert_uint_eq(known, cases[c].known);
            ck_assert_uint_eq(way.path.hops[2].in, cases[c].sampled_in   ? port("leaf1", "up3")
                                                   : cases[c].hinted_out ? port("leaf1", "up5")
                                                                         : FT_NONE);
            ck_assert_int_eq(way.hinted, cases[c].hinted_out != NULL);
            ft_topology_free(t);
        }
}
END_TEST

FT_UNIT_MAIN("hinted", without_hints_the_first_choice_is_asked_for,
             a_hint_decides_what_follows_from_it, samples_go_first,
             wide_fabrics_are_compared_completely, few_paths_and_many_are_decided_alike)
