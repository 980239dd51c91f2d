// SPDX-License-Identifier: Apache-2.0
/*
 * The tunnel around a flow: which samples say what of it, and when it is known as it is now.
 */
#include "config.h"

#include "daemon/join/flow_tunnel.h"

#include "tests/unit/join_rig.h"

#define SPORT 0xc123
#define LEAF  0
#define SPINE 2 /* of leafspine(2, 2, 2): the first */

static struct join_rig rig;
static uint32_t window; /* the lowest that is open */

static void open_rig(void)
{
    join_rig_open(&rig);
    window = JOIN_RIG_WINDOW;
}

static struct ft_tuple header(uint16_t sport)
{
    return (struct ft_tuple){.src = ft_ip4((uint8_t[4]){10, 255, 0, 1}),
                             .dst = ft_ip4((uint8_t[4]){10, 255, 0, 2}),
                             .sport = sport,
                             .dport = 4789,
                             .proto = FT_PROTO_UDP};
}

/* A sample so many milliseconds after the start; outer: NULL, in no tunnel. */
static void sample(uint32_t at, uint32_t in, uint32_t out, int64_t ms, const struct ft_tuple *outer)
{
    struct ft_observed_rest rest = {.has_outer = outer != NULL};
    struct ft_observation o = join_rig_seen(SPORT, 0, 1000000, 1);

    while (JOIN_RIG_START_MS + ms >= (int64_t)(window + 2) * JOIN_RIG_WINDOW_MS) {
        ft_join_seal(rig.join);
        ft_join_close(rig.join);
        window++;
    }
    if (outer)
        rest.outer = *outer;
    o.agent = leafspine_switch_ip(at);
    o.in_ifindex = in;
    o.out_ifindex = out;
    o.first_ms = o.last_ms = JOIN_RIG_START_MS + ms;
    o.rest = &rest;
    ck_assert_int_eq(join_observe(rig.join, &o), FT_JOIN_OK);
}

/* Between leaf0 and leaf1. */
static void in_transit(int64_t ms, const struct ft_tuple *outer)
{
    sample(SPINE, 1, 2, ms, outer);
}

static struct ft_flow *flow(void)
{
    struct ft_tuple tuple = join_rig_tuple(SPORT);

    return ft_join_find(rig.join, &tuple);
}

static bool is_known(const struct ft_tuple *outer)
{
    const struct ft_tuple *known = ft_flow_outer(rig.join, flow());

    ck_assert(!known || ft_tuple_equal(known, &ft_flow_tunnel(flow())->outer));
    return known && ft_tuple_equal(known, outer);
}

START_TEST(the_newest_sample_says_it)
{
    const struct ft_tuple a = header(1), b = header(2);

    open_rig();
    in_transit(3000, &a);
    ck_assert(is_known(&a));
    /* What comes late is of before. */
    in_transit(2000, &b);
    ck_assert(ft_tuple_equal(&ft_flow_tunnel(flow())->outer, &a));
    ck_assert(!ft_flow_outer(rig.join, flow()));
    join_rig_close(&rig);
}
END_TEST

START_TEST(one_that_changed_is_known_when_it_has_stayed)
{
    const struct ft_tuple a = header(1), b = header(2);

    open_rig();
    in_transit(1000, &a);
    ft_flow_tunnel(flow())->learnt = true;
    in_transit(2000, &a);
    ck_assert(ft_flow_tunnel(flow())->learnt);
    in_transit(3000, &b);
    ck_assert(ft_tuple_equal(&ft_flow_tunnel(flow())->outer, &b));
    ck_assert(!ft_flow_tunnel(flow())->learnt);
    for (int64_t ms = 3000; ms < 32000; ms += 1000) {
        in_transit(ms, &b);
        ck_assert(!ft_flow_outer(rig.join, flow()));
    }
    in_transit(32000, &b);
    ck_assert(is_known(&b));
    /* Two at once, as before and behind a gateway, never are. */
    for (int64_t ms = 33000; ms < 100000; ms += 5000) {
        in_transit(ms, &a);
        in_transit(ms + 2500, &b);
        ck_assert(!ft_flow_outer(rig.join, flow()));
    }
    join_rig_close(&rig);
}
END_TEST

START_TEST(samples_without_one_deny_it_between_switches_alone)
{
    const struct ft_tuple a = header(1);

    open_rig();
    in_transit(1000, &a);
    /* Before it is put in, and after it was taken out. */
    sample(LEAF, 1, 100, 1500, NULL);
    sample(LEAF + 1, 100, 1, 1600, NULL);
    ck_assert(is_known(&a));
    in_transit(2000, NULL);
    ck_assert(!ft_flow_outer(rig.join, flow()));
    in_transit(2500, &a);
    ck_assert(!ft_flow_outer(rig.join, flow()));
    in_transit(32500, &a);
    ck_assert(is_known(&a));
    /* Who does not say where it came from and went may be in between. */
    sample(SPINE, 0, 0, 32600, NULL);
    ck_assert(!ft_flow_outer(rig.join, flow()));
    join_rig_close(&rig);
}
END_TEST

START_TEST(an_old_sample_says_nothing_of_now)
{
    const struct ft_tuple a = header(1);

    open_rig();
    in_transit(1000, &a);
    sample(LEAF, 1, 100, 3000, NULL);
    ck_assert(is_known(&a));
    sample(LEAF, 1, 100, 3001, NULL);
    ck_assert(!ft_flow_outer(rig.join, flow()));
    in_transit(4000, &a);
    ck_assert(is_known(&a));
    /* Nor one that is no evidence of its path any more. */
    ck_assert(ft_join_age(rig.join, flow(), window + 4, JOIN_RIG_START_MS + 50000));
    ck_assert_uint_eq(flow()->evidence.count, 0);
    ck_assert(!ft_flow_outer(rig.join, flow()));
    join_rig_close(&rig);
}
END_TEST

/* Behind each segment of SRv6 the destination is another one, seen or not. */
START_TEST(what_may_be_srv6_is_not_known)
{
    uint8_t bytes[16] = {0x20, 0x01, 0x0d, 0xb8};
    struct ft_tuple outer = header(1);

    open_rig();
    outer.src = outer.dst = ft_ip6(bytes);
    in_transit(1000, &outer);
    ck_assert(is_known(&outer));
    join_rig_close(&rig);
    open_rig();
    outer.sport = outer.dport = 0;
    outer.proto = 41;
    in_transit(1000, &outer);
    ck_assert(ft_tuple_equal(&ft_flow_tunnel(flow())->outer, &outer));
    ck_assert(!ft_flow_outer(rig.join, flow()));
    join_rig_close(&rig);
}
END_TEST

FT_UNIT_MAIN("flow_tunnel", the_newest_sample_says_it, one_that_changed_is_known_when_it_has_stayed,
             samples_without_one_deny_it_between_switches_alone, an_old_sample_says_nothing_of_now,
             what_may_be_srv6_is_not_known)
