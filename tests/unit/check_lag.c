// SPDX-License-Identifier: Apache-2.0
/* Aggregates whose samples name no member: what they leave of a flow's path, and never more. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "daemon/window/loads.h"
#include "lib/files/topology_file.h"
#include "tests/unit/join_rig.h"
#include "tests/unit/unit.h"

/* leaf1 has an aggregate to each spine, which the spine has as one too with spine1 alone; the
 * spines have single links to leaf2, spine1 two of an aggregate. */
#define SWITCHES                                                                                   \
    "fabric: lab\n"                                                                                \
    "switches:\n"                                                                                  \
    "  - {name: leaf1, addresses: [192.0.2.1], ports: [{name: h, ifindex: 1},\n"                   \
    "      {name: a1, ifindex: 11}, {name: a2, ifindex: 12},\n"                                    \
    "      {name: b1, ifindex: 21}, {name: b2, ifindex: 22}],\n"                                   \
    "     lags: [{name: A, ifindex: 101, members: [a1, a2]},\n"                                    \
    "            {name: B, ifindex: 102, members: [b1, b2]}]}\n"                                   \
    "  - {name: leaf2, addresses: [192.0.2.2], ports: [{name: h, ifindex: 1},\n"                   \
    "      {name: c1, ifindex: 31}, {name: c2, ifindex: 32}, {name: d, ifindex: 41}]}\n"           \
    "  - {name: spine1, addresses: [192.0.2.11], ports: [{name: a1, ifindex: 11},\n"               \
    "      {name: a2, ifindex: 12}, {name: c1, ifindex: 31}, {name: c2, ifindex: 32}],\n"          \
    "     lags: [{name: A, ifindex: 101, members: [a1, a2]},\n"                                    \
    "            {name: C, ifindex: 103, members: [c1, c2]}]}\n"                                   \
    "  - {name: spine2, addresses: [192.0.2.12], ports: [{name: b1, ifindex: 21},\n"               \
    "      {name: b2, ifindex: 22}, {name: d, ifindex: 41}]}\n"
#define LINK(from, to, port)                                                                       \
    "  - {a: " from ", a_port: " port ", b: " to ", b_port: " port ", speed_bps: 1000000000}\n"
#define LINKS                                                                                      \
    "links:\n" LINK("leaf1", "spine1", "a1") LINK("leaf1", "spine1", "a2")                         \
        LINK("leaf1", "spine2", "b1") LINK("leaf2", "spine1", "c1") LINK("leaf2", "spine1", "c2")  \
            LINK("leaf2", "spine2", "d")
#define HOSTS                                                                                      \
    "hosts:\n"                                                                                     \
    "  - {name: g1, nics: [{addresses: [10.0.1.1], attach: [{switch: leaf1, port: h}]}]}\n"        \
    "  - {name: g2, nics: [{addresses: [10.0.2.1], attach: [{switch: leaf2, port: h}]}]}\n"
#define WHOLE SWITCHES LINKS LINK("leaf1", "spine2", "b2") HOSTS

#define START_MS 1000000

static const struct ft_evidence_policy policy = {.hold_down_ms = 2000, .tolerance_ms = 2000};
static struct ft_topology *t;

static struct ft_topology *read_text(const char *text)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_yaml *root = ft_yaml_parse(text, strlen(text), "t.yaml", diag);
    struct ft_topology *found = ft_topology_file_read(root, diag);

    for (size_t i = 0; i < ft_diag_count(diag); i++)
        printf("%s\n", ft_diag_text(diag, i));
    ck_assert_ptr_nonnull(found);
    ft_yaml_free(root);
    ft_diag_free(diag);
    return found;
}

static uint32_t switch_of(const char *name)
{
    return ft_topology_find_switch(t, name);
}

/* A port or aggregate by the name of its switch and its own. */
static uint32_t end(const char *switch_name, const char *name)
{
    uint32_t id = switch_of(switch_name), found = ft_topology_find_port(t, id, name);

    return found != FT_NONE ? found : ft_topology_find_lag(t, id, name);
}

static void see(struct ft_evidence *ev, const char *switch_name, const char *in, const char *out,
                int64_t ms)
{
    uint32_t from = in ? end(switch_name, in) : FT_NONE, to = out ? end(switch_name, out) : FT_NONE;
    struct ft_seen seen = {switch_of(switch_name), from, to, 0, ms, ms, false};
    int64_t before_ms;
    struct ft_sighting *s = ft_evidence_see(ev, &seen, INT64_MIN, &before_ms);

    ck_assert_ptr_nonnull(s);
    ft_sighting_add_samples(s, 0, 1);
}

static struct ft_judgement judge(struct ft_evidence *ev)
{
    const struct ft_judging by = {.t = t, .policy = policy, .src_nic = 0, .dst_nic = 1};
    struct ft_judgement j;

    ft_evidence_judge(ev, &by, &j);
    ft_evidence_apply(ev, &j, NULL);
    return j;
}

/* "leaf1 h>A, spine1 A>?": what is certain. */
static const char *text_of(const struct ft_judgement *j)
{
    static char text[400];

    *text = '\0';
    for (uint32_t h = 0; h < j->path.hop_count; h++) {
        const struct ft_hop *hop = &j->path.hops[h];

        sprintf(text + strlen(text), "%s%s %s>%s", h ? ", " : "",
                j->switches[h] == FT_NONE ? "?" : ft_topology_switch(t, j->switches[h])->name,
                hop->in == FT_NONE ? "?" : ft_topology_end_name(t, hop->in),
                hop->out == FT_NONE ? "?" : ft_topology_end_name(t, hop->out));
    }
    return text;
}

static void expect(struct ft_evidence *ev, enum ft_path_state state, uint64_t candidates,
                   const char *text)
{
    struct ft_judgement j = judge(ev);

    ck_assert_int_eq(j.state, state);
    ck_assert_uint_eq(j.candidates, candidates);
    ck_assert_str_eq(text_of(&j), text);
}

START_TEST(an_aggregate_limits_to_its_members)
{
    struct ft_evidence ev;

    t = read_text(WHOLE);
    ft_evidence_init(&ev);
    ck_assert_uint_eq(ft_topology_port_at(t, 0, 101), FT_NONE);
    ck_assert(ft_is_lag(ft_topology_end_at(t, 0, 101)));
    see(&ev, "leaf1", "h", "A", 0);
    expect(&ev, FT_PATH_PARTIAL, 4, "leaf1 h>A, spine1 A>C, leaf2 ?>h");
    /* leaf2 has no aggregate of its two ports, and names the one that the flow came by. */
    see(&ev, "leaf2", "c2", "h", 0);
    expect(&ev, FT_PATH_PARTIAL, 2, "leaf1 h>A, spine1 A>c2, leaf2 c2>h");
    see(&ev, "spine1", "A", "C", 0);
    expect(&ev, FT_PATH_PARTIAL, 2, "leaf1 h>A, spine1 A>c2, leaf2 c2>h");
    /* The other side decides. */
    see(&ev, "spine1", "a2", "C", 0);
    expect(&ev, FT_PATH_RESOLVED, 1, "leaf1 h>a2, spine1 a2>c2, leaf2 c2>h");
    ft_evidence_free(&ev);
    /* Of the last way nothing else is certain than the switch. */
    see(&ev, "leaf1", "h", "B", 0);
    expect(&ev, FT_PATH_PARTIAL, 2, "leaf1 h>B, spine2 ?>d, leaf2 d>h");
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

START_TEST(one_member_is_the_aggregate)
{
    struct ft_evidence ev;

    t = read_text("fabric: lab\nswitches:\n  - {name: leaf1, lags: [{name: A, ifindex: 101, "
                  "members: [a1]}]}\n  - {name: leaf2}\n  - {name: spine1}\n  - {name: spine2}\n"
                  "links:\n" LINK("leaf1", "spine1", "a1") LINK("leaf1", "spine2", "b1")
                      LINK("leaf2", "spine1", "c1") LINK("leaf2", "spine2", "d") HOSTS);
    ck_assert_uint_eq(ft_topology_port_at(t, 0, 101), end("leaf1", "a1"));
    ck_assert_uint_eq(ft_topology_port(t, end("leaf1", "a1"))->lag_ifindex, 101);
    ft_evidence_init(&ev);
    see(&ev, "leaf1", NULL, "a1", 0);
    expect(&ev, FT_PATH_RESOLVED, 1, "leaf1 h>a1, spine1 a1>c1, leaf2 c1>h");
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

/* The flow may have gone by the member whose link is not known: the aggregate tells nothing. */
START_TEST(a_member_that_leads_nowhere_spoils_its_aggregate)
{
    t = read_text(SWITCHES LINKS HOSTS);
    ck_assert_uint_eq(ft_topology_end_at(t, 0, 102), FT_NONE);
    ck_assert(ft_is_lag(ft_topology_end_at(t, 0, 101)));
    ck_assert(!ft_topology_lag(t, end("leaf1", "B"))->complete);
    ck_assert_uint_eq(ft_topology_port(t, end("leaf1", "b1"))->lag, FT_NONE);
    ft_topology_free(t);
}
END_TEST

START_TEST(members_are_changed_within_an_aggregate)
{
    struct ft_evidence ev;

    t = read_text(WHOLE);
    ft_evidence_init(&ev);
    for (int64_t ms = 0; ms <= 5000; ms += 500) {
        see(&ev, "leaf1", "h", "B", ms);
        see(&ev, "spine2", "b1", "d", ms);
    }
    expect(&ev, FT_PATH_RESOLVED, 1, "leaf1 h>b1, spine2 b1>d, leaf2 d>h");
    see(&ev, "spine2", "b2", "d", 5500);
    ck_assert_int_eq(judge(&ev).reason, FT_REASON_CHANGING);
    for (int64_t ms = 6000; ms <= 9000; ms += 500) {
        see(&ev, "leaf1", "h", "B", ms);
        see(&ev, "spine2", "b2", "d", ms);
    }
    expect(&ev, FT_PATH_RESOLVED, 1, "leaf1 h>b2, spine2 b2>d, leaf2 d>h");
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

static void spray(struct ft_evidence *ev, bool members)
{
    for (int64_t ms = 0; ms < 20000; ms += 100) {
        bool first = ms / 100 % 4 == 0;

        see(ev, "leaf1", "h", first ? "A" : "B", ms);
        see(ev, "spine1", "A", "C", ms);
        see(ev, "spine2", members ? "b2" : NULL, "d", ms);
        see(ev, "leaf2", first ? "c1" : "d", "h", ms);
    }
}

/* Shares are of aggregates where no sample tells their members apart. */
START_TEST(sprayed_over_aggregates)
{
    struct ft_path_share shares[8];
    struct ft_evidence ev;

    t = read_text(WHOLE);
    ft_evidence_init(&ev);
    spray(&ev, false);
    ck_assert_int_eq(judge(&ev).state, FT_PATH_MULTIPATH);
    ck_assert_uint_eq(ft_evidence_shares(&ev, t, 0, 1, FT_SLOTS_BOTH, shares, 8), 2);
    ck_assert_double_eq_tol(shares[0].share, 0.25, 1e-9);
    ck_assert_double_eq_tol(shares[1].share, 0.75, 1e-9);
    ck_assert_uint_eq(shares[0].path.hops[0].out, end("leaf1", "A"));
    ck_assert_uint_eq(shares[0].path.hops[1].in, end("spine1", "A"));
    ck_assert_uint_eq(shares[0].path.hops[1].out, end("spine1", "c1"));
    ck_assert_uint_eq(shares[1].path.hops[0].out, end("leaf1", "B"));
    ck_assert_uint_eq(shares[1].path.hops[1].in, FT_NONE);
    ft_evidence_free(&ev);
    spray(&ev, true);
    ck_assert_uint_eq(ft_evidence_shares(&ev, t, 0, 1, FT_SLOTS_BOTH, shares, 8), 2);
    ck_assert_uint_eq(shares[1].path.hops[0].out, end("leaf1", "b2"));
    ck_assert_double_eq_tol(shares[1].share, 0.75, 1e-9);
    ft_evidence_free(&ev);
    ft_topology_free(t);
}
END_TEST

static uint32_t dice(uint64_t *state, uint32_t sides)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % sides;
}

/* What a switch might say of a port: it, its aggregate, nothing. */
static uint32_t blur(uint64_t *state, uint32_t port)
{
    uint32_t lag = ft_topology_port(t, port)->lag;

    switch (dice(state, 3)) {
    case 0:
        return port;
    case 1:
        return lag != FT_NONE ? lag : port;
    default:
        return FT_NONE;
    }
}

static void assert_holds(uint32_t certain, uint32_t truth)
{
    ck_assert(certain == FT_NONE || certain == truth || certain == ft_topology_port(t, truth)->lag);
}

/* Any path, seen at any of its switches in any words: what is said of it holds, and one path is
 * named only where the samples leave no other. */
START_TEST(what_is_certain_is_true)
{
    struct ft_path paths[8];
    uint64_t state = 7, seen[4] = {0};
    uint64_t count;

    t = read_text(WHOLE);
    count = ft_paths_walk(t, 0, 1, NULL, NULL, paths, 8, 8);
    ck_assert_uint_eq(count, 6);
    for (int round = 0; round < 20000; round++) {
        const struct ft_path *truth = &paths[dice(&state, (uint32_t)count)];
        uint32_t samples = 1 + dice(&state, 3);
        struct ft_judgement j;
        struct ft_evidence ev;
        int64_t before_ms;

        ft_evidence_init(&ev);
        for (uint32_t i = 0; i < samples; i++) {
            const struct ft_hop *hop = &truth->hops[dice(&state, truth->hop_count)];
            struct ft_seen seen_at = {ft_topology_port(t, hop->in)->switch_id,
                                      blur(&state, hop->in),
                                      blur(&state, hop->out),
                                      0,
                                      0,
                                      0,
                                      false};

            ft_sighting_add_samples(ft_evidence_see(&ev, &seen_at, INT64_MIN, &before_ms), 0, 1);
        }
        j = judge(&ev);
        seen[j.state]++;
        ck_assert(j.state == FT_PATH_RESOLVED || j.state == FT_PATH_PARTIAL);
        ck_assert_uint_eq(j.path.hop_count, truth->hop_count);
        for (uint32_t h = 0; h < truth->hop_count; h++) {
            assert_holds(j.path.hops[h].in, truth->hops[h].in);
            assert_holds(j.path.hops[h].out, truth->hops[h].out);
            ck_assert(j.switches[h] == FT_NONE ||
                      j.switches[h] == ft_topology_port(t, truth->hops[h].in)->switch_id);
            if (j.state == FT_PATH_RESOLVED)
                ck_assert_uint_eq(j.path.hops[h].out, truth->hops[h].out);
        }
        ft_evidence_free(&ev);
    }
    ck_assert_uint_gt(seen[FT_PATH_RESOLVED], 3000);
    ck_assert_uint_gt(seen[FT_PATH_PARTIAL], 3000);
    ft_topology_free(t);
}
END_TEST

static const struct ft_loads_config loads_config = {
    .window_ms = 10000, .elephant_share = 1, .elephants_max = 10};

static struct ft_join *open_join(void)
{
    const struct ft_join_config config = {.flows_max = 10,
                                          .window_ms = 10000,
                                          .evidence_ms = 30000,
                                          .idle_ms = 60000,
                                          .trust_topology = true,
                                          .policy = policy};
    const struct ft_join_hooks hooks = {.judged = NULL};
    struct ft_join *join = ft_join_new(&config, t, &hooks);

    ck_assert_ptr_nonnull(join);
    return join;
}

/* One flow at one switch, by ifIndexes. */
static struct ft_flow *observe(struct ft_join *join, uint8_t switch_byte, uint32_t in, uint32_t out,
                               int64_t ms)
{
    const struct ft_observation o = {
        .tuple = {.src = ft_ip4((uint8_t[4]){10, 0, 1, 1}),
                  .dst = ft_ip4((uint8_t[4]){10, 0, 2, 1}),
                  .sport = 50000,
                  .dport = 4791,
                  .proto = 17},
        .agent = ft_ip4((uint8_t[4]){192, 0, 2, switch_byte}),
        .in_ifindex = in,
        .out_ifindex = out,
        .first_ms = ms,
        .last_ms = ms,
        .samples = 10,
        .data_samples = 10,
        .bytes = 10000,
    };

    ck_assert_int_eq(join_observe(join, &o), FT_JOIN_OK);
    return ft_join_find(join, &o.tuple);
}

static double bytes_by(const struct ft_loads *loads, const char *switch_name, const char *port)
{
    return loads->link[end(switch_name, port)].bytes;
}

/* No member is loaded with what may have gone by another; what is certain beside it is. */
START_TEST(no_member_carries_what_is_not_certain)
{
    struct ft_loads loads;
    struct ft_join *join;
    struct ft_flow *flow;
    uint32_t up, down;

    t = read_text(WHOLE);
    join = open_join();
    flow = observe(join, 1, 1, 101, START_MS);
    ck_assert_int_eq(flow->state, FT_PATH_PARTIAL);
    ck_assert_uint_eq(ft_join_stats(join)->unknown_port, 0);
    ft_join_age(join, flow, START_MS / 10000, START_MS);
    ck_assert_int_eq(ft_loads_init(&loads, t), 0);
    ck_assert_int_eq(ft_loads_add(&loads, &loads_config, join, flow, 0), 0);
    up = ft_topology_find_group(t, 0, FT_DIRECTION_UP);
    down = ft_topology_find_group(t, 1, FT_DIRECTION_DOWN);
    for (uint32_t i = 0; i < ft_topology_ports(t); i++)
        ck_assert_double_eq(loads.link[i].bytes, i == end("leaf2", "h") ? 10000 : 0);
    ck_assert_uint_eq(loads.unplaced[up], 1);
    ck_assert_uint_eq(loads.unplaced[down], 1);
    ck_assert_uint_eq(loads.flows, 1);
    ck_assert_uint_eq(loads.placed, 0);
    /* spine1 names the ports by which the flow comes and goes. */
    observe(join, 11, 12, 31, START_MS + 10);
    ck_assert_int_eq(flow->state, FT_PATH_RESOLVED);
    ft_loads_reset(&loads, t);
    ck_assert_int_eq(ft_loads_add(&loads, &loads_config, join, flow, 0), 0);
    ck_assert_double_eq(bytes_by(&loads, "leaf1", "a2"), 10000);
    ck_assert_double_eq(bytes_by(&loads, "leaf1", "a1"), 0);
    ck_assert_uint_eq(loads.unplaced[up], 0);
    ck_assert_uint_eq(loads.placed, 1);
    ft_loads_free(&loads);
    ft_join_free(join);
    ft_topology_free(t);
}
END_TEST

START_TEST(a_sprayed_flow_loads_no_member_that_is_not_certain)
{
    struct ft_loads loads;
    struct ft_join *join;
    struct ft_flow *flow = NULL;

    t = read_text(WHOLE);
    join = open_join();
    for (int64_t ms = START_MS; ms < START_MS + 9000; ms += 100) {
        flow = observe(join, 1, 1, ms % 200 ? 101 : 102, ms);
        observe(join, 2, ms % 200 ? 31 : 41, 1, ms);
    }
    ck_assert_int_eq(flow->state, FT_PATH_MULTIPATH);
    ft_join_age(join, flow, START_MS / 10000, START_MS + 9000);
    ck_assert_int_eq(ft_loads_init(&loads, t), 0);
    ck_assert_int_eq(ft_loads_add(&loads, &loads_config, join, flow, 0), 0);
    for (const char *const *port = (const char *const[]){"a1", "a2", "b1", "b2", NULL}; *port;
         port++)
        ck_assert_double_eq(bytes_by(&loads, "leaf1", *port), 0);
    ck_assert_double_eq_tol(bytes_by(&loads, "spine2", "d"), flow->bytes / 2.0, 1);
    ck_assert_double_eq_tol(bytes_by(&loads, "spine1", "c1"), flow->bytes / 2.0, 1);
    ck_assert_uint_eq(loads.unplaced[ft_topology_find_group(t, 0, FT_DIRECTION_UP)], 1);
    ck_assert_uint_eq(loads.unplaced[ft_topology_find_group(t, 1, FT_DIRECTION_DOWN)], 0);
    ck_assert_uint_eq(loads.placed, 0);
    ft_loads_free(&loads);
    ft_join_free(join);
    ft_topology_free(t);
}
END_TEST

#define ONE_MEMBER                                                                                 \
    "fabric: lab\nswitches:\n  - {name: leaf1, addresses: [192.0.2.1], ports: [{name: h, "         \
    "ifindex: 1}, {name: a1, ifindex: 11}, {name: b1, ifindex: 21}], lags: [{name: A, ifindex: "   \
    "101, "                                                                                        \
    "members: [a1]}]}\n  - {name: leaf2}\n  - {name: spine1}\n  - {name: spine2}\nlinks:\n" LINK(  \
        "leaf1", "spine1", "a1") LINK("leaf1", "spine2", "b1") LINK("leaf2", "spine1", "c1")       \
        LINK("leaf2", "spine2", "d") HOSTS

/* A second member comes up: what the first was named by does not tell them apart any more. */
START_TEST(a_member_that_comes_back_makes_it_open)
{
    struct ft_topology *more = read_text(WHOLE), *one;
    struct ft_join *join;
    struct ft_flow *flow;

    t = one = read_text(ONE_MEMBER);
    join = open_join();
    flow = observe(join, 1, 1, 101, START_MS);
    ck_assert_int_eq(flow->state, FT_PATH_RESOLVED);
    ck_assert_uint_eq(flow->path.hops[0].out, end("leaf1", "a1"));
    ck_assert_int_eq(ft_join_set_topology(join, more, 0), 0);
    ck_assert(!ft_join_judge_step(join, UINT32_MAX));
    t = more;
    ck_assert_int_eq(flow->state, FT_PATH_PARTIAL);
    ck_assert_uint_eq(flow->candidates, 4);
    /* And goes again: what came by the aggregate may have been its. */
    ck_assert_int_eq(ft_join_set_topology(join, one, 0), 0);
    ck_assert(!ft_join_judge_step(join, UINT32_MAX));
    t = one;
    ck_assert_int_eq(flow->state, FT_PATH_PARTIAL);
    ck_assert_uint_eq(flow->candidates, 2);
    observe(join, 1, 1, 101, START_MS + 10);
    ck_assert_int_eq(flow->state, FT_PATH_RESOLVED);
    ck_assert_uint_eq(flow->path.hops[0].out, end("leaf1", "a1"));
    ft_join_free(join);
    ft_topology_free(one);
    ft_topology_free(more);
}
END_TEST

FT_UNIT_MAIN("lag", an_aggregate_limits_to_its_members, one_member_is_the_aggregate,
             a_member_that_leads_nowhere_spoils_its_aggregate,
             members_are_changed_within_an_aggregate, sprayed_over_aggregates,
             what_is_certain_is_true, no_member_carries_what_is_not_certain,
             a_sprayed_flow_loads_no_member_that_is_not_certain,
             a_member_that_comes_back_makes_it_open)
