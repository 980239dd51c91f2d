// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/evidence.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"
#include "tests/unit/wide_pods.h"

/* leaf0 to leaf1 by one of three spines; where a flow left its path, and what it chose there. */
#define SPINES 3

static struct ft_topology *t;
static struct ft_evidence ev;
static struct ft_path known;
static struct ft_judging by;

static struct ft_path by_spine(uint32_t spine)
{
    struct ft_path paths[SPINES];

    ck_assert_uint_eq(ft_paths_walk(t, 0, 1, NULL, NULL, paths, SPINES, SPINES), SPINES);
    return paths[spine];
}

static void setup(void)
{
    t = leafspine(2, SPINES, 1);
    ft_evidence_init(&ev);
    known = by_spine(0);
    by = (struct ft_judging){.t = t, .src_nic = 0, .dst_nic = 1, .known = &known};
}

static void teardown(void)
{
    ft_evidence_free(&ev);
    ft_topology_free(t);
}

static struct ft_sighting *sample(struct ft_hop hop, int64_t ms, int64_t *before_ms)
{
    struct ft_seen seen = {.switch_id = ft_topology_end_switch(t, hop.out),
                           .in = hop.in,
                           .out = hop.out,
                           .first_ms = ms,
                           .last_ms = ms};

    return ft_evidence_see(&ev, &seen, INT64_MIN, before_ms);
}

START_TEST(a_leaf_chooses_among_its_uplinks)
{
    uint32_t ports[8];

    setup();
    ck_assert_uint_eq(ft_evidence_choice(&by, &known, 0, ports, 8), SPINES);
    for (uint32_t i = 0; i < SPINES; i++)
        ck_assert_uint_eq(ports[i], by_spine(i).hops[0].out);
    /* A spine has one way down, the last leaf one port. */
    ck_assert_uint_eq(ft_evidence_choice(&by, &known, 1, ports, 8), 1);
    ck_assert_uint_eq(ports[0], known.hops[1].out);
    ck_assert_uint_eq(ft_evidence_choice(&by, &known, 2, ports, 8), 1);
    ck_assert_uint_eq(ft_evidence_choice(&by, &known, 0, ports, 2), 2);
    teardown();
}
END_TEST

/* Of more paths than are compared at once, those by its first uplinks are many enough. */
START_TEST(of_very_many_paths_every_port_is_a_choice)
{
    struct ft_topology *wide = wide_pods();
    struct ft_judging of_wide = {.t = wide, .src_nic = 0, .dst_nic = 1};
    struct ft_path path;
    uint32_t ports[WIDE_PATHS];

    ck_assert_uint_eq(ft_paths_walk(wide, 0, 1, NULL, NULL, &path, 1, 1000), WIDE_PATHS);
    ck_assert_uint_eq(ft_evidence_choice(&of_wide, &path, 0, ports, WIDE_PATHS), WIDE_SPINES);
    for (uint32_t s = 0; s < WIDE_SPINES; s++)
        ck_assert_uint_eq(ports[s], wide_port(wide, wide_leaf(0), wide_spine(0, s)));
    ck_assert_uint_eq(ft_evidence_choice(&of_wide, &path, 1, ports, WIDE_PATHS), WIDE_SUPERS);
    ck_assert_uint_eq(ft_evidence_choice(&of_wide, &path, 2, ports, WIDE_PATHS), 1);
    ft_topology_free(wide);
}
END_TEST

START_TEST(it_left_where_it_came_in_as_before)
{
    uint32_t first = 9, last = 9;
    int64_t before_ms;

    setup();
    sample(known.hops[0], 1000, &before_ms);
    ck_assert(!ft_evidence_left_at(&ev, &by, &first, &last));
    ck_assert_uint_eq(first, 9);
    sample(by_spine(2).hops[0], 2000, &before_ms);
    ck_assert(ft_evidence_left_at(&ev, &by, &first, &last));
    ck_assert_uint_eq(first, 0);
    ck_assert_uint_eq(last, 0);
    teardown();
}
END_TEST

/* Seen at another spine alone, it left before that: by the leaf. */
START_TEST(it_left_before_the_hop_that_differs)
{
    uint32_t first, last;
    int64_t before_ms;

    setup();
    sample(by_spine(1).hops[2], 2000, &before_ms);
    ck_assert(ft_evidence_left_at(&ev, &by, &first, &last));
    ck_assert_uint_eq(last, 1);
    sample(by_spine(1).hops[1], 2000, &before_ms);
    ck_assert(ft_evidence_left_at(&ev, &by, &first, &last));
    ck_assert_uint_eq(first, 0);
    ck_assert_uint_eq(last, 0);
    teardown();
}
END_TEST

START_TEST(what_is_past_says_nothing_of_where_it_left)
{
    uint32_t first, last;
    int64_t before_ms;

    setup();
    sample(by_spine(1).hops[0], 2000, &before_ms)->past = 1;
    ck_assert(!ft_evidence_left_at(&ev, &by, &first, &last));
    teardown();
}
END_TEST

/* Samples of one switch cannot tell that it came back from another: those of both can. */
START_TEST(who_comes_back_from_another_switch_is_counted)
{
    struct ft_sighting *s;
    int64_t before_ms;

    setup();
    sample(by_spine(0).hops[1], 1000, &before_ms);
    sample(by_spine(1).hops[1], 1500, &before_ms);
    s = sample(by_spine(0).hops[1], 1900, &before_ms);
    ck_assert_int_eq(before_ms, 1000);
    ck_assert(ft_evidence_recount(&ev, &by, s, before_ms, INT64_MIN));
    ck_assert_uint_eq(ev.returns, 1);
    /* It has not been elsewhere since, or others moved at that time. */
    ck_assert(!ft_evidence_recount(&ev, &by, s, 1600, INT64_MIN));
    ck_assert(!ft_evidence_recount(&ev, &by, s, before_ms, 1700));
    ck_assert_uint_eq(ev.returns, 1);
    /* Two hops of one path are no coming back. */
    sample(by_spine(0).hops[0], 1950, &before_ms);
    s = sample(by_spine(0).hops[1], 1990, &before_ms);
    ck_assert(!ft_evidence_recount(&ev, &by, s, 1900, INT64_MIN));
    teardown();
}
END_TEST

FT_UNIT_MAIN("departure", a_leaf_chooses_among_its_uplinks,
             of_very_many_paths_every_port_is_a_choice, it_left_where_it_came_in_as_before,
             it_left_before_the_hop_that_differs, what_is_past_says_nothing_of_where_it_left,
             who_comes_back_from_another_switch_is_counted)
