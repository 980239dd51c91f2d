// SPDX-License-Identifier: Apache-2.0
/* What samples say of the links of a topology: daemon/discovery/wiring.h. */
#include "config.h"

#include "daemon/discovery/wiring.h"
#include "daemon/health/losses.h"

#include "tests/unit/wiring_rig.h"

#define PORTS_MAX 64

static struct ft_topology *t;
static struct ft_wiring *w;
static unsigned told[PORTS_MAX]; /* how often a port was reported as changed */

static void changed(void *arg, uint32_t port)
{
    (void)arg;
    ck_assert_uint_lt(port, PORTS_MAX);
    told[port]++;
}

static void begin(struct ft_topology *topology, const struct ft_crossings_config *config)
{
    rig_reset();
    memset(told, 0, sizeof(told));
    t = topology;
    w = ft_wiring_new(config, t);
    ck_assert_ptr_nonnull(w);
}

static struct ft_topology *leaf_spine(void)
{
    return leafspine(RIG_LEAVES, RIG_SPINES, RIG_HOSTS);
}

static void end(void)
{
    ft_wiring_free(w);
    ft_topology_free(t);
}

static bool confirms(const char *at, const char *name)
{
    uint32_t port = rig_port(t, at, name);
    bool yes = ft_wiring_confirms(w, port);

    /* A link has one judgement, whichever end is asked. */
    if (ft_topology_port(t, port)->peer != FT_NONE)
        ck_assert_int_eq(ft_wiring_confirms(w, ft_topology_port(t, port)->peer), yes);
    return yes;
}

static uint32_t confirmed(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < ft_topology_ports(t); i++)
        count += ft_wiring_confirms(w, i);
    return count;
}

static size_t findings(const char *at, const char *port)
{
    struct ft_findings f = {0};
    uint32_t index = 0;
    size_t count = 0;

    while (ft_wiring_find(w, rig_ms, &index, &f))
        ;
    for (size_t i = 0; i < f.count; i++)
        count +=
            !at || (strcmp(f.items[i].switch_name, at) == 0 && strcmp(f.items[i].port, port) == 0);
    ft_findings_free(&f);
    return count;
}

/* Every link, and no port of a host. Nothing is news: the topology says the same. */
START_TEST(samples_of_both_ends_confirm_a_link)
{
    begin(leaf_spine(), &rig_config);
    ck_assert_uint_eq(confirmed(), 0);
    rig_run(w, 15, changed, NULL);
    ck_assert_uint_eq(confirmed(), 2 * RIG_LEAVES * RIG_SPINES);
    for (uint32_t i = 0; i < ft_topology_ports(t); i++) {
        bool link = ft_topology_port(t, i)->peer != FT_NONE;

        ck_assert_int_eq(ft_wiring_confirms(w, i), link);
        ck_assert_int_eq(told[i] > 0, link);
        ck_assert(!ft_wiring_missing(w, i));
        if (link) {
            ck_assert_uint_ge(ft_wiring_proof(w, i).flows, 2);
            ck_assert_uint_gt(ft_wiring_proof(w, i).samples, 0);
        }
    }
    ck_assert(!ft_wiring_take_news(w));
    ck_assert_uint_eq(findings(NULL, NULL), 0);
    end();
}
END_TEST

/* A spine that sends no samples: its links stay open, those of the other are confirmed. */
START_TEST(one_end_alone_confirms_nothing)
{
    begin(leaf_spine(), &rig_config);
    silent[RIG_LEAVES] = true;
    rig_run(w, 30, changed, NULL);
    for (uint32_t l = 0; l < RIG_LEAVES; l++) {
        char leaf[16];

        snprintf(leaf, sizeof(leaf), "leaf%u", l);
        ck_assert(!confirms(leaf, "up0"));
        ck_assert(confirms(leaf, "up1"));
    }
    ck_assert(!ft_wiring_take_news(w));
    end();
}
END_TEST

/* What one spine has is of another network: a flow that both ends have is not the same one. */
START_TEST(a_flow_of_another_network_is_another_one)
{
    begin(leaf_spine(), &rig_config);
    for (uint32_t i = 0; i < RIG_SWITCHES; i++)
        network[i] = i == RIG_LEAVES ? 5003 : 5002;
    rig_run(w, 30, changed, NULL);
    for (uint32_t l = 0; l < RIG_LEAVES; l++) {
        char leaf[16];

        snprintf(leaf, sizeof(leaf), "leaf%u", l);
        ck_assert(!confirms(leaf, "up0"));
        ck_assert(confirms(leaf, "up1"));
    }
    end();
}
END_TEST

/* Hosts send with a TTL that does not tell whether their switch counted it down before it sampled:
 * then flows of one direction find no link, however long, and those of both do. Where flows go to
 * higher numbers alone, only leaf1 both sends and receives. */
START_TEST(a_link_needs_flows_of_both_directions)
{
    struct ft_crossing_found f;
    uint32_t index = 0, found = 0;

    for (unsigned both = 0; both < 2; both++) {
        begin(leaf_spine(), &rig_config);
        one_way = !both;
        first_ttl = 50;
        rig_run(w, 40, changed, NULL);
        for (index = found = 0; ft_crossings_next(ft_wiring_crossings(w), &index, &f);)
            found += f.linked;
        ck_assert_uint_eq(found, 2 * RIG_SPINES * (both ? RIG_LEAVES : 1));
        end();
    }
}
END_TEST

/* The uplinks of leaf0 are swapped, and the topology has them as planned. */
START_TEST(a_contradicted_link_is_news_and_not_confirmed)
{
    begin(leaf_spine(), &rig_config);
    rig_swap(0);
    rig_run(w, 20, changed, NULL);
    ck_assert(!confirms("leaf0", "up0"));
    ck_assert(!confirms("leaf0", "up1"));
    ck_assert(confirms("leaf1", "up0"));
    ck_assert(confirms("leaf2", "up1"));
    ck_assert_uint_gt(told[rig_port(t, "leaf0", "up0")], 0);
    ck_assert_uint_gt(told[rig_port(t, "spine1", "down0")], 0);
    ck_assert(ft_wiring_take_news(w));
    ck_assert(!ft_wiring_take_news(w));
    end();
}
END_TEST

/* Without the TTL no link is found that could be news: the contradiction alone is. */
START_TEST(a_contradiction_alone_is_news)
{
    begin(leaf_spine(), &rig_config);
    untold = true;
    rig_swap(0);
    rig_run(w, 30, changed, NULL);
    ck_assert(!confirms("leaf0", "up0"));
    ck_assert(ft_wiring_take_news(w));
    ck_assert(!ft_wiring_take_news(w));
    end();
}
END_TEST

/* It was right for a while. */
START_TEST(a_confirmed_link_is_contradicted_once_it_is_swapped)
{
    begin(leaf_spine(), &rig_config);
    rig_run(w, 15, changed, NULL);
    ck_assert(confirms("leaf0", "up0"));
    ft_wiring_take_news(w);
    rig_swap(0);
    rig_run(w, 180, changed, NULL);
    ck_assert(!confirms("leaf0", "up0"));
    ck_assert(confirms("leaf1", "up0"));
    ck_assert(ft_wiring_take_news(w));
    end();
}
END_TEST

START_TEST(a_link_that_the_topology_misses_is_news)
{
    begin(leafspine_without(RIG_LEAVES, RIG_SPINES, RIG_HOSTS, 0, 0), &rig_config);
    rig_run(w, 20, changed, NULL);
    ck_assert_uint_eq(confirmed(), 2 * (RIG_LEAVES * RIG_SPINES - 1));
    ck_assert(ft_wiring_take_news(w));
    end();
}
END_TEST

/* Links that are found later are news while another one is missing, and none once a topology has
 * it. */
START_TEST(news_goes_by_the_present_topology)
{
    for (unsigned follows = 0; follows < 2; follows++) {
        struct ft_topology *missing = leafspine_without(RIG_LEAVES, RIG_SPINES, RIG_HOSTS, 0, 0);

        begin(missing, &rig_config);
        silent[RIG_LEAVES + 1] = true;
        rig_run(w, 20, changed, NULL);
        ck_assert(ft_wiring_take_news(w));
        ck_assert(!ft_wiring_take_news(w));
        if (follows) {
            t = leaf_spine();
            ck_assert_int_eq(ft_wiring_follow(w, t), 0);
            ft_topology_free(missing);
        }
        silent[RIG_LEAVES + 1] = false;
        rig_run(w, 20, changed, NULL);
        ck_assert(confirms("leaf1", "up1"));
        ck_assert_int_eq(ft_wiring_take_news(w), !follows);
        /* Indices are given again. */
        ft_wiring_restart(w);
        rig_run(w, 20, changed, NULL);
        ck_assert_int_eq(ft_wiring_take_news(w), !follows);
        end();
    }
}
END_TEST

/* Where it leads cannot be found while the spine is silent: known after a moment, told to the
 * doctor after a minute, and gone a minute after the flows. */
START_TEST(an_open_port_is_reported_after_a_minute)
{
    begin(leafspine_without(RIG_LEAVES, RIG_SPINES, RIG_HOSTS, 0, 0), &rig_config);
    silent[RIG_LEAVES] = true;
    rig_run(w, 40, changed, NULL);
    ck_assert(ft_wiring_missing(w, rig_port(t, "leaf0", "up1")));
    ck_assert(!ft_wiring_missing(w, rig_port(t, "leaf1", "up1")));
    ck_assert_uint_gt(told[rig_port(t, "leaf0", "up1")], 0);
    ck_assert_uint_eq(findings(NULL, NULL), 0);
    rig_run(w, 30, changed, NULL);
    ck_assert_uint_eq(findings("leaf0", "up0"), 1);
    ck_assert_uint_eq(findings(NULL, NULL), 1);
    rig_ms += 62000;
    ft_wiring_step(w, rig_ms, changed, NULL);
    ck_assert(!ft_wiring_missing(w, rig_port(t, "leaf0", "up1")));
    ck_assert_uint_eq(findings(NULL, NULL), 0);
    end();
}
END_TEST

/* Another topology is judged at once; what was learnt does not depend on the one it was learnt by.
 */
START_TEST(another_topology_is_judged_at_once)
{
    struct ft_topology *before;

    begin(leafspine_without(RIG_LEAVES, RIG_SPINES, RIG_HOSTS, 0, 0), &rig_config);
    rig_run(w, 20, changed, NULL);
    before = t;
    t = leaf_spine();
    ck_assert_int_eq(ft_wiring_follow(w, t), 0);
    ft_topology_free(before);
    ck_assert(confirms("leaf0", "up0"));
    ck_assert_uint_eq(confirmed(), 2 * RIG_LEAVES * RIG_SPINES);
    end();
}
END_TEST

START_TEST(an_hour_of_silence_and_a_restart_forget)
{
    begin(leaf_spine(), &rig_config);
    rig_run(w, 15, changed, NULL);
    memset(told, 0, sizeof(told));
    rig_ms += 3700000;
    for (uint32_t i = 0; i < 3; i++, rig_ms += 1000)
        ft_wiring_step(w, rig_ms, changed, NULL);
    ck_assert_uint_eq(confirmed(), 0);
    ck_assert_uint_gt(told[rig_port(t, "leaf0", "up0")], 0);
    rig_run(w, 15, changed, NULL);
    ck_assert_uint_eq(confirmed(), 2 * RIG_LEAVES * RIG_SPINES);
    ft_wiring_restart(w);
    rig_ms += 1000;
    ft_wiring_step(w, rig_ms, changed, NULL);
    ck_assert_uint_eq(confirmed(), 0);
    end();
}
END_TEST

/* Flows and ports over the caps are counted, and times out of reach are not taken at all. */
START_TEST(what_finds_no_room_is_counted)
{
    static const struct ft_crossings_config few[] = {
        {.flows_max = 2, .ports_max = 100, .rate_max = 100000},
        {.flows_max = 1000, .ports_max = 2, .rate_max = 100000}};

    for (unsigned i = 0; i < 2; i++) {
        struct ft_account account = {0};
        const struct ft_account_stage *stage = &account.stages[0];
        uint64_t dropped = 0, received;

        begin(leaf_spine(), &few[i]);
        rig_run(w, 3, changed, NULL);
        ft_wiring_account(w, &account);
        ck_assert_uint_eq(account.stage_count, 1);
        for (size_t d = 0; d < stage->drop_count; d++)
            dropped += stage->drops[d].count;
        ck_assert_uint_gt(stage->received, 0);
        /* Of few ports a switch has a share of its own. */
        ck_assert_uint_gt(stage->drops[i].count + (i ? stage->drops[2].count : 0), 0);
        ck_assert_uint_eq(stage->received, stage->processed + dropped);
        received = stage->received;
        for (int64_t off = -70000; off <= 20000; off += 90000) {
            const struct ft_observation o = {.agent = leafspine_switch_ip(0),
                                             .in_ifindex = 1,
                                             .out_ifindex = 100,
                                             .first_ms = rig_ms + off,
                                             .last_ms = rig_ms + off,
                                             .samples = 1};

            ck_assert(!ft_wiring_observe(w, &o, 64, rig_ms));
        }
        memset(&account, 0, sizeof(account));
        ft_wiring_account(w, &account);
        ck_assert_uint_eq(stage->received, received);
        end();
    }
}
END_TEST

static bool nobody(void *arg, uint32_t switch_id)
{
    (void)arg;
    (void)switch_id;
    return false;
}

/* Made-up exporters fill their share, the switches of the inventory find room; where nothing but
 * samples reports a switch, all of them may be the fabric. */
START_TEST(who_is_not_listed_has_a_share)
{
    const struct ft_crossings_config config = {
        .flows_max = 1000, .ports_max = 4000, .rate_max = 10000000};
    const struct ft_account_stage *stage;
    struct ft_account account;

    for (int listed = 1; listed >= 0; listed--) {
        uint32_t index = 0, count = 0;
        struct ft_crossing_found f;

        begin(leaf_spine(), &config);
        if (!listed)
            ft_wiring_list(w, nobody, NULL);
        for (uint32_t i = 0; i < 10000; i++) {
            const struct ft_observation o = {
                .agent = ft_ip4((uint8_t[4]){198, 18, (uint8_t)(i >> 8), (uint8_t)i}),
                .in_ifindex = 1,
                .first_ms = rig_ms,
                .last_ms = rig_ms,
                .samples = 1};

            ft_wiring_observe(w, &o, 64, rig_ms);
        }
        while (ft_crossings_next(ft_wiring_crossings(w), &index, &f))
            count++;
        ck_assert_uint_eq(count, listed ? 1000 : 4000);
        memset(&account, 0, sizeof(account));
        ft_wiring_account(w, &account);
        stage = &account.stages[0];
        ck_assert_str_eq(stage->drops[3].reason, "unlisted_full");
        ck_assert_uint_eq(stage->drops[3].count, listed ? 9000 : 0);
        ck_assert_ptr_nonnull(ft_losses_advice(stage->name, stage->drops[3].reason));
        end();
    }
}
END_TEST

FT_UNIT_MAIN("wiring", samples_of_both_ends_confirm_a_link, one_end_alone_confirms_nothing,
             a_flow_of_another_network_is_another_one, a_link_needs_flows_of_both_directions,
             a_contradiction_alone_is_news, a_contradicted_link_is_news_and_not_confirmed,
             a_confirmed_link_is_contradicted_once_it_is_swapped,
             a_link_that_the_topology_misses_is_news, news_goes_by_the_present_topology,
             an_open_port_is_reported_after_a_minute, another_topology_is_judged_at_once,
             an_hour_of_silence_and_a_restart_forget, what_finds_no_room_is_counted,
             who_is_not_listed_has_a_share)
