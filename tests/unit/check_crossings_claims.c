// SPDX-License-Identifier: Apache-2.0
/*
 * What crossings say of a link or a host when they are asked, and who gets how much of their
 * tables: those that export more than others, and switches of the inventory.
 */
#include "config.h"

#include "tests/unit/crossings_rig.h"

START_TEST(test_untold)
{
    run_seeds(&(struct world){.name = "no TTL: nothing is certain",
                              TWO_TIERS,
                              .flows = 400,
                              .rate = 3,
                              .seconds = 20,
                              .no_ttl = true,
                              .least = 0});
}
END_TEST

/* What flows say of a link that somebody states. */
static struct ft_crossing_judgement ask(struct ft_crossings *x, uint32_t m, uint32_t p, uint32_t n,
                                        uint32_t q)
{
    const struct ft_crossing_port ends[2] = {{agent_of(m), p}, {agent_of(n), q}};
    struct ft_crossing_judgement j;

    ft_crossings_judge(x, ends, &j);
    return j;
}

static struct ft_crossings *watched(const struct world *world, uint32_t seconds)
{
    struct ft_crossings *x = make();
    static struct crossed seen;

    w = *world;
    dice_state = dealt = 1;
    for (uint32_t s = 0; s < seconds; s++) {
        for (uint32_t flow = 0; flow < w.flows; flow++)
            sample(x, flow, START_MS + s * INT64_C(1000), &seen);
        ft_crossings_step(x, START_MS + s * INT64_C(1000) + 2000);
    }
    return x;
}

START_TEST(test_claims)
{
    struct world world = {TWO_TIERS, .flows = 400, .rate = 2};

    for (unsigned untold = 0; untold < 2; untold++) {
        struct ft_crossings *x;
        struct ft_crossing_judgement j;

        world.no_ttl = untold;
        x = watched(&world, 20);
        for (uint32_t up = 0; up < w.spines; up++) {
            j = ask(x, 3, up_port(up), spine_of(0, up), down_port(3, up));
            ck_assert_int_eq(j.verdict, FT_CROSSING_AGREES);
            ck_assert_uint_ge(j.proof.samples, 50);
            ck_assert_uint_ge(j.proof.flows, 10);
        }
        /* Right switch, wrong port: flows of leaf 2 come in there. */
        j = ask(x, 3, up_port(0), spine_of(0, 0), down_port(2, 0));
        ck_assert_int_eq(j.verdict, FT_CROSSING_DIFFERS);
        ck_assert_uint_eq(j.end, 0);
        ck_assert_uint_eq(j.other.ifindex, down_port(3, 0));
        ck_assert_uint_eq(j.other.agent.b[15], spine_of(0, 0) + 1);
        /* A port that nobody has seen. */
        j = ask(x, 3, up_port(0), spine_of(0, 0), 60);
        ck_assert_int_eq(j.verdict, untold ? FT_CROSSING_OPEN : FT_CROSSING_DIFFERS);
        ck_assert_int_eq(ask(x, 3, 61, spine_of(0, 0), 60).verdict, FT_CROSSING_OPEN);
        ft_crossings_free(x);
    }
}
END_TEST

/* The file has the uplinks of leaf 0 the other way round. */
START_TEST(test_claims_swapped)
{
    struct world world = {TWO_TIERS, .flows = 400, .rate = 2, .from_uplink = 1};

    for (unsigned untold = 0; untold < 2; untold++) {
        struct ft_crossings *x;

        world.no_ttl = untold;
        x = watched(&world, 25);
        for (uint32_t up = 0; up < 2; up++) {
            struct ft_crossing_judgement j =
                ask(x, 0, up_port(up), spine_of(0, up), down_port(0, up));

            if (untold && j.verdict == FT_CROSSING_OPEN)
                continue; /* which spine a flow passed first is not known */
            ck_assert_int_eq(j.verdict, FT_CROSSING_DIFFERS);
            ck_assert_uint_eq(j.other.ifindex, j.end ? up_port(1 - up) : down_port(0, 0));
        }
        ck_assert_int_eq(ask(x, 0, up_port(2), spine_of(0, 2), down_port(0, 2)).verdict,
                         FT_CROSSING_AGREES);
        ft_crossings_free(x);
    }
}
END_TEST

/* Ports where hosts' packets come in, at switches that sample before the countdown or after it; not
 * where a switch without samples is. */
START_TEST(test_hosts)
{
    for (uint32_t round = 0; round < 3; round++) {
        struct world world = {TWO_TIERS, .flows = 400, .rate = 2, .sent = round == 1,
                              .bridging = round == 2};
        struct ft_crossing_found f;
        struct ft_crossings *x;
        uint32_t index = 0, hosts = 0;

        /* Behind a silent leaf that does not count down a spine is like a leaf. */
        if (round < 2)
            world.silent = 1;
        x = watched(&world, 30);
        while (ft_crossings_next(x, &index, &f)) {
            uint32_t node = f.port.agent.b[15] - 1u;
            bool of_host = node < w.leaves && f.port.ifindex < UP_PORT;

            /* With the TTL of the spine behind it, either may be the first. */
            ck_assert(f.has_hosts == of_host || (of_host && round == 2));
            ck_assert(!of_host || !f.linked);
            hosts += of_host;
        }
        ck_assert_uint_eq(hosts, 4 * (w.leaves - (round < 2)));
        ft_crossings_free(x);
    }
}
END_TEST

/* Many flows: a share of them, another one every 20 seconds, and nothing beyond the caps. */
START_TEST(test_share)
{
    const struct ft_crossings_config config = {.flows_max = 64, .ports_max = 4096, .rate_max = 200};
    const struct ft_crossings_stats *stats;
    struct ft_crossings *x = ft_crossings_new(&config);
    struct ft_crossing_found f;
    static struct crossed seen;
    uint32_t right = 0, index = 0;

    w = (struct world){TWO_TIERS, .flows = 800, .rate = 1};
    dice_state = dealt = 1;
    for (uint32_t s = 0; s < 240; s++) {
        for (uint32_t flow = 0; flow < w.flows; flow++)
            sample(x, flow, START_MS + s * INT64_C(1000), &seen);
        ft_crossings_step(x, START_MS + s * INT64_C(1000) + 2000);
    }
    while (ft_crossings_next(x, &index, &f)) {
        right += f.linked;
        ck_assert(!f.linked || is_cable(&f.port, &f.peer, START_MS));
    }
    ck_assert_uint_ge(right, 2 * 16);
    stats = ft_crossings_stats(x);
    ck_assert_uint_eq(stats->observed, stats->taken + stats->left_out + stats->flows_full +
                                           stats->ports_full + stats->exporter_full +
                                           stats->unlisted_full);
    ck_assert_uint_lt(stats->taken, stats->observed / 4);
    ft_crossings_free(x);
}
END_TEST

/* What was not seen for an hour makes room. */
START_TEST(test_forgets)
{
    struct world world = {TWO_TIERS, .flows = 100, .rate = 2};
    struct ft_crossings *x = watched(&world, 10);
    static struct followed known;
    struct ft_crossing_found f;
    uint32_t index = 0;

    follow_changes(x, &known);
    ck_assert(ft_crossings_next(x, &index, &f));
    for (uint32_t s = 0; s < 3; s++)
        ft_crossings_step(x, START_MS + 3700000 + s * 1000);
    index = 0;
    ck_assert(!ft_crossings_next(x, &index, &f));
    ck_assert(ft_crossings_take_news(x));
    follow_changes(x, &known);
    /* Others get their indices. */
    ft_crossings_restart(x);
    follow_changes(x, &known);
    ft_crossings_free(x);
}
END_TEST

static void exports(struct ft_crossings *x, uint32_t exporter, uint32_t in, uint32_t out,
                    bool listed, int64_t ms)
{
    struct ft_crossing c = {
        .agent = ft_ip4((uint8_t[4]){listed ? 192 : 198, (uint8_t)(exporter >> 16),
                                     (uint8_t)(exporter >> 8), (uint8_t)exporter}),
        .in = in,
        .out = out,
        .flow = 7,
        .first_ms = ms,
        .last_ms = ms,
        .samples = 1,
        .ttl = 64,
        .listed = listed,
    };

    if (ft_crossings_follows(x, c.flow, ms))
        ft_crossings_observe(x, &c);
}

static uint32_t ports_of(const struct ft_crossings *x, bool listed)
{
    struct ft_crossing_found f;
    uint32_t index = 0, count = 0;

    while (ft_crossings_next(x, &index, &f))
        count += f.port.agent.b[12] == (listed ? 192 : 198);
    return count;
}

/* Whoever makes up ports or exporters leaves room for the others, and is forgotten. */
START_TEST(test_shares)
{
    const struct ft_crossings_config config = {
        .flows_max = 64, .ports_max = 32000, .rate_max = 1000000};
    struct ft_crossings *x = ft_crossings_new(&config);
    const struct ft_crossings_stats *stats = ft_crossings_stats(x);

    ft_crossings_set_inventory(x, true);
    /* One switch of the inventory says that it has 50,000 ports. */
    for (uint32_t i = 1; i <= 50000; i++)
        exports(x, 1, i, 0, true, START_MS);
    ck_assert_uint_eq(ports_of(x, true), 2000);
    ck_assert_uint_eq(stats->exporter_full, 48000);
    /* As many made-up exporters, of one port each; some name none at all. */
    for (uint32_t i = 0; i < 50000; i++)
        exports(x, i, 0, i % 3, false, START_MS);
    ck_assert_uint_eq(ports_of(x, false), 8000);
    ck_assert_uint_gt(stats->unlisted_full, 25000);
    /* All switches of the inventory find room. */
    for (uint32_t s = 2; s < 400; s++)
        for (uint32_t i = 1; i <= 48; i++)
            exports(x, s, i, i + 1, true, START_MS);
    ck_assert_uint_eq(ports_of(x, true), 2000 + 398 * 49);
    ck_assert_uint_eq(stats->ports_full, 0);
    /* What was not seen for an hour makes room. */
    for (uint32_t s = 0; s < 3; s++)
        ft_crossings_step(x, START_MS + 3700000 + s * 1000);
    ck_assert_uint_eq(ports_of(x, false), 0);
    for (uint32_t i = 0; i < 50000; i++)
        exports(x, i, 1, 0, false, START_MS + 3800000);
    ck_assert_uint_eq(ports_of(x, false), 8000);
    /* Without an inventory everybody may be one of the fabric. */
    ft_crossings_set_inventory(x, false);
    for (uint32_t i = 0; i < 50000; i++)
        exports(x, i, 1, 0, false, START_MS + 3800000);
    ck_assert_uint_eq(ports_of(x, false), 32000);
    ck_assert_uint_gt(stats->ports_full, 0);
    ck_assert_uint_eq(stats->observed, stats->taken + stats->left_out + stats->flows_full +
                                           stats->ports_full + stats->exporter_full +
                                           stats->unlisted_full);
    ft_crossings_free(x);
}
END_TEST

/* A switch that comes into the inventory takes its ports out of the share of the others. */
START_TEST(test_listed_later)
{
    const struct ft_crossings_config config = {
        .flows_max = 64, .ports_max = 4000, .rate_max = 1000000};
    struct ft_crossings *x = ft_crossings_new(&config);
    const struct ft_crossings_stats *stats = ft_crossings_stats(x);
    struct ft_crossing c = {.agent = ft_ip4((uint8_t[4]){198, 0, 0, 1}),
                            .flow = 7,
                            .first_ms = START_MS,
                            .last_ms = START_MS,
                            .samples = 1};

    ft_crossings_set_inventory(x, true);
    for (c.in = 1; c.in <= 1000; c.in++)
        ft_crossings_observe(x, &c);
    exports(x, 2, 1, 0, false, START_MS);
    ck_assert_uint_eq(stats->unlisted_full, 1);
    c.in = 1;
    c.listed = true;
    ft_crossings_observe(x, &c);
    exports(x, 2, 1, 0, false, START_MS);
    ck_assert_uint_eq(stats->unlisted_full, 1);
    ck_assert_uint_eq(ports_of(x, false), 1001);
    ft_crossings_free(x);
}
END_TEST

FT_UNIT_MAIN("crossings, claims", test_untold, test_claims, test_claims_swapped, test_hosts,
             test_share, test_forgets, test_shares, test_listed_later)
