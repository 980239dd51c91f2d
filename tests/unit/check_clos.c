// SPDX-License-Identifier: Apache-2.0
/* Paths by edge colouring: no link carries more than the bound that no placement can improve on,
 * which lib/sim/loads.h gives and is worked out here by counting. */
#include "config.h"

#include "lib/sim/clos.h"

#include <string.h>

#include "lib/sim/loads.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define LEAVES    6
#define SPINES    4
#define HOSTS     8
#define FLOWS_MAX 400

static struct ft_topology *t;
static struct ft_demand demands[FLOWS_MAX];
static struct ft_hop ends[FLOWS_MAX];
static struct ft_path paths[FLOWS_MAX];
static uint32_t order[FLOWS_MAX], count;
static uint64_t dice_state;

static uint32_t dice(uint32_t sides)
{
    dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((dice_state >> 33) % sides);
}

static void add(uint32_t from, uint32_t to, uint64_t bps)
{
    ck_assert_uint_lt(count, FLOWS_MAX);
    demands[count] = (struct ft_demand){from, to, bps};
    ends[count].in = ft_topology_nic(t, from)->attach[0];
    ends[count].out = ft_topology_nic(t, to)->attach[0];
    order[count] = count;
    count++;
}

/* Between leaves, at random. */
static void draw(uint64_t seed, uint32_t flows)
{
    dice_state = seed;
    count = 0;
    while (count < flows) {
        uint32_t from = dice(LEAVES * HOSTS), to = dice(LEAVES * HOSTS);

        if (from / HOSTS != to / HOSTS)
            add(from, to, 1000);
    }
}

static uint32_t port(uint32_t switch_id, uint32_t ifindex)
{
    uint32_t id = ft_topology_port_at(t, switch_id, ifindex);

    ck_assert_uint_ne(id, FT_NONE);
    return id;
}

/* From its NIC to its NIC, each hop into the next switch by the cable that is there. */
static void check_path(uint32_t i, const bool *dead)
{
    const struct ft_path *p = &paths[i];

    ck_assert_uint_eq(p->hop_count, 3);
    ck_assert_uint_eq(p->hops[0].in, ends[i].in);
    ck_assert_uint_eq(p->hops[2].out, ends[i].out);
    for (uint32_t k = 0; k < p->hop_count; k++) {
        ck_assert_uint_eq(ft_topology_port(t, p->hops[k].in)->switch_id,
                          ft_topology_port(t, p->hops[k].out)->switch_id);
        ck_assert(!dead || !dead[p->hops[k].out]);
        if (k + 1 < p->hop_count)
            ck_assert_uint_eq(ft_topology_port(t, p->hops[k].out)->peer, p->hops[k + 1].in);
    }
}

START_TEST(no_link_carries_more_than_the_bound)
{
    uint32_t *flows;

    t = leafspine(LEAVES, SPINES, HOSTS);
    flows = calloc(ft_links_of(t), sizeof(*flows));
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct ft_clos *clos = ft_clos_new(t, NULL);
        uint32_t out[LEAVES] = {0}, in[LEAVES] = {0};

        draw(seed, 20 + (uint32_t)seed * 7);
        ck_assert_int_eq(ft_clos_colour(clos, ends, order, count, paths), 0);
        for (uint32_t i = 0; i < count; i++) {
            check_path(i, NULL);
            out[demands[i].src_nic / HOSTS]++;
            in[demands[i].dst_nic / HOSTS]++;
        }
        ft_loads_count(t, demands, paths, count, flows, NULL);
        for (uint32_t l = 0; l < LEAVES; l++)
            for (uint32_t s = 0; s < SPINES; s++) {
                ck_assert_uint_le(flows[port(l, 100 + s)], (out[l] + SPINES - 1) / SPINES);
                ck_assert_uint_le(flows[port(LEAVES + s, 1 + l)], (in[l] + SPINES - 1) / SPINES);
            }
        ft_clos_free(clos);
    }
    free(flows);
    ft_topology_free(t);
}
END_TEST

/* What is down is not used; a leaf with fewer links than others leaves flows without a path, and
 * never gives them one that there is not. */
START_TEST(dead_links_carry_nothing)
{
    uint32_t found = 0;
    struct ft_clos *clos;
    bool *dead;

    t = leafspine(LEAVES, SPINES, HOSTS);
    dead = calloc(ft_topology_ports(t), sizeof(*dead));
    dead[port(0, 100)] = dead[port(LEAVES, 1)] = true;
    clos = ft_clos_new(t, dead);
    draw(5, 200);
    ck_assert_int_eq(ft_clos_colour(clos, ends, order, count, paths), 0);
    for (uint32_t i = 0; i < count; i++)
        if (paths[i].hop_count) {
            check_path(i, dead);
            found++;
        }
    /* Only flows of leaf0 may be without one. */
    ck_assert_uint_gt(found, count / 2);
    for (uint32_t i = 0; i < count; i++)
        if (demands[i].src_nic / HOSTS != 0 && demands[i].dst_nic / HOSTS != 0)
            ck_assert_uint_eq(paths[i].hop_count, 3);
    ft_clos_free(clos);
    ft_clos_free(NULL);
    free(dead);
    ft_topology_free(t);
}
END_TEST

START_TEST(links_of_a_path_and_their_loads)
{
    uint32_t links[FT_PATH_LINKS_MAX], *flows;
    struct ft_clos *clos;
    double *bps;

    t = leafspine(LEAVES, SPINES, HOSTS);
    clos = ft_clos_new(t, NULL);
    flows = calloc(ft_links_of(t), sizeof(*flows));
    bps = calloc(ft_links_of(t), sizeof(*bps));
    count = 0;
    add(0, HOSTS, 700);
    add(0, HOSTS + 1, 300);
    ck_assert_int_eq(ft_clos_colour(clos, ends, order, count, paths), 0);
    ck_assert_uint_eq(ft_path_links(t, &paths[0], links), 4);
    ck_assert_uint_eq(links[0], ft_topology_ports(t) + ends[0].in);
    ck_assert_uint_eq(links[3], ends[0].out);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_lt(links[i], ft_links_of(t));
        ck_assert_uint_eq(ft_link_speed(t, links[i]), LINK_BPS);
        /* A NIC with one attachment has no choice. */
        ck_assert_int_eq(ft_link_chosen(t, links[i]), i == 1 || i == 2);
    }
    ft_loads_count(t, demands, paths, count, flows, bps);
    ck_assert_uint_eq(flows[links[0]], 2);
    ck_assert_double_eq(bps[links[0]], 1000);
    ck_assert_uint_eq(flows[links[1]], 1);
    ck_assert_double_eq(bps[links[3]], 700);
    /* Without a path a flow is on no link. */
    paths[0].hop_count = paths[1].hop_count = 0;
    ck_assert_uint_eq(ft_path_links(t, &paths[0], links), 0);
    ft_loads_count(t, demands, paths, count, flows, bps);
    for (uint32_t i = 0; i < ft_links_of(t); i++)
        ck_assert(flows[i] == 0 && bps[i] == 0);
    ft_clos_free(clos);
    free(flows);
    free(bps);
    ft_topology_free(t);
}
END_TEST

/* Ten flows over four links are three on one of them, over three alive ones four. */
START_TEST(bounds_of_sets)
{
    struct ft_bounds b;
    bool *dead;

    t = leafspine(LEAVES, SPINES, HOSTS);
    dead = calloc(ft_topology_ports(t), sizeof(*dead));
    count = 0;
    for (uint32_t i = 0; i < 10; i++)
        add(i % HOSTS, HOSTS * (1 + i % 2), 100 * (i + 1));
    add(0, 1, 9999); /* under one leaf: it takes no link between switches */
    for (int i = 0; i < 2; i++) {
        uint32_t up, into;

        dead[port(0, 100)] = i == 1;
        ck_assert_int_eq(ft_bounds_init(&b, t, dead, demands, ends, count), 0);
        up = b.set[port(0, 101)];
        into = b.set[port(LEAVES, 2)];
        ck_assert_uint_eq(b.set[port(0, 103)], up);
        ck_assert_uint_ne(up, into);
        ck_assert_uint_eq(b.set[ends[0].out], FT_NONE);
        ck_assert_uint_eq(b.flows[up], 10);
        ck_assert_double_eq(b.bps[up], 5500);
        ck_assert_double_eq(b.most_bps[up], 1000);
        ck_assert_uint_eq(b.links[up], i ? 3 : 4);
        ck_assert_double_eq(b.speed[up], (i ? 3.0 : 4.0) * LINK_BPS);
        ck_assert_uint_eq(ft_bound_flows(&b, up), i ? 4 : 3);
        ck_assert_uint_eq(b.flows[into], 5);
        ck_assert_uint_eq(ft_bound_flows(&b, into), 2);
        ft_bounds_free(&b);
    }
    free(dead);
    ft_topology_free(t);
}
END_TEST

FT_UNIT_MAIN("clos", no_link_carries_more_than_the_bound, dead_links_carry_nothing,
             links_of_a_path_and_their_loads, bounds_of_sets)
