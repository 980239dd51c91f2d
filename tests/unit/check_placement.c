// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/placement.h"

#include <string.h>

#include "lib/sim/loads.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define LEAVES    4
#define HOSTS     4
#define FLOWS_MAX 16

static struct ft_topology *t;
static struct ft_demand demands[FLOWS_MAX];
static double weight[FLOWS_MAX], *limit;
static struct ft_path paths[FLOWS_MAX];
static uint32_t count, spines;

static void begin(uint32_t of)
{
    spines = of;
    t = leafspine(LEAVES, spines, HOSTS);
    limit = calloc(ft_links_of(t), sizeof(*limit));
    for (uint32_t i = 0; i < ft_links_of(t); i++)
        limit[i] = 1;
    memset(paths, 0, sizeof(paths));
    count = 0;
}

static void end(struct ft_placement *p)
{
    ft_placement_free(p);
    free(limit);
    ft_topology_free(t);
}

static uint32_t port(uint32_t switch_id, uint32_t ifindex)
{
    return ft_topology_port_at(t, switch_id, ifindex);
}

/* From the host-th host of a leaf to that of another; over a spine, or spines: not yet placed. */
static void add(uint32_t from, uint32_t to, uint32_t host, uint32_t spine)
{
    struct ft_path *p = &paths[count];

    demands[count] = (struct ft_demand){from * HOSTS + host, to * HOSTS + host, 1000};
    weight[count++] = 1;
    if (spine == spines)
        return;
    p->hop_count = 3;
    p->hops[0] = (struct ft_hop){port(from, 1 + host), port(from, 100 + spine)};
    p->hops[1] = (struct ft_hop){port(LEAVES + spine, 1 + from), port(LEAVES + spine, 1 + to)};
    p->hops[2] = (struct ft_hop){port(to, 100 + spine), port(to, 1 + host)};
}

static struct ft_placement *open_placement(const bool *dead)
{
    struct ft_placement *p = ft_placement_new(t, dead, demands, weight, count, limit, paths);

    ck_assert_ptr_nonnull(p);
    return p;
}

/* The loads are those of the paths, whatever was moved. */
static void check_loads(const struct ft_placement *p)
{
    uint32_t *flows = calloc(ft_links_of(t), sizeof(*flows));

    ft_loads_count(t, demands, paths, count, flows, NULL);
    for (uint32_t i = 0; i < ft_links_of(t); i++)
        if (ft_link_chosen(t, i)) {
            ck_assert_double_eq(ft_placement_load(p)[i], flows[i]);
            ck_assert_double_le(ft_placement_load(p)[i], limit[i]);
        }
    free(flows);
}

START_TEST(each_flow_has_a_link_of_its_own)
{
    struct ft_placement *p;

    begin(4);
    for (uint32_t i = 0; i < 4; i++)
        add(0, 1, i, spines);
    add(0, 2, 0, spines);
    p = open_placement(NULL);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert(!ft_placement_valid(p, i, &paths[i]));
        ck_assert(ft_placement_within(p, i, 0));
        ck_assert(ft_placement_valid(p, i, &paths[i]));
    }
    check_loads(p);
    /* The fifth finds no room, however many others it may move: all is as before. */
    ck_assert(!ft_placement_within(p, 4, 1000));
    ck_assert_uint_eq(paths[4].hop_count, 0);
    check_loads(p);
    /* It gets the least full path all the same where it must have one. */
    ck_assert(ft_placement_least(p, 4));
    ck_assert(ft_placement_valid(p, 4, &paths[4]));
    ck_assert_double_eq(ft_placement_load(p)[paths[4].hops[0].out], 2);
    end(p);
}
END_TEST

/* leaf0 to leaf1 over spine0, leaf2 to leaf3 over spine1: leaf0 to leaf3 has an uplink to spine1
 * and a downlink from spine0, but no path. The first flow has to go to spine1. */
START_TEST(another_flow_is_moved)
{
    struct ft_placement *p;
    struct ft_path before[2];

    begin(2);
    add(0, 1, 0, 0);
    add(2, 3, 1, 1);
    add(0, 3, 2, spines);
    memcpy(before, paths, sizeof(before));
    p = open_placement(NULL);
    ck_assert(!ft_placement_within(p, 2, 0));
    ck_assert_int_eq(memcmp(before, paths, sizeof(before)), 0);
    ck_assert(ft_placement_within(p, 2, 100));
    check_loads(p);
    for (uint32_t i = 0; i < count; i++)
        ck_assert(ft_placement_valid(p, i, &paths[i]));
    ck_assert_int_ne(memcmp(before, paths, sizeof(before)), 0);
    ck_assert_uint_gt(ft_placement_looked(p), 0);
    end(p);
}
END_TEST

START_TEST(flows_on_a_link_are_listed)
{
    uint32_t list[FLOWS_MAX];
    struct ft_placement *p;

    begin(2);
    for (uint32_t i = 0; i < ft_links_of(t); i++)
        limit[i] = 10;
    for (uint32_t i = 0; i < 4; i++)
        add(0, 1 + i % 2, i, i == 3);
    p = open_placement(NULL);
    ck_assert_uint_eq(ft_placement_list(p, port(0, 100), list, FLOWS_MAX), 3);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_uint_lt(list[i], 3);
    ck_assert_uint_eq(ft_placement_list(p, port(0, 100), list, 2), 2);
    ck_assert_uint_eq(ft_placement_list(p, port(0, 101), list, FLOWS_MAX), 1);
    ck_assert_uint_eq(list[0], 3);
    ck_assert_uint_eq(ft_placement_list(p, port(3, 100), list, FLOWS_MAX), 0);
    end(p);
}
END_TEST

/* What is down is no path, neither one that was there nor a new one. */
START_TEST(dead_links_are_no_path)
{
    struct ft_placement *p;
    bool *dead;

    begin(2);
    dead = calloc(ft_topology_ports(t), sizeof(*dead));
    add(0, 1, 0, 0);
    add(0, 1, 1, spines);
    dead[port(0, 100)] = true;
    p = open_placement(dead);
    ck_assert(!ft_placement_valid(p, 0, &paths[0]));
    ck_assert(ft_placement_within(p, 1, 0));
    ck_assert_uint_eq(paths[1].hops[0].out, port(0, 101));
    ft_placement_free(p);
    dead[port(0, 101)] = true;
    memset(paths, 0, sizeof(paths));
    p = open_placement(dead);
    ck_assert(!ft_placement_within(p, 1, 10));
    ck_assert(!ft_placement_least(p, 1));
    ck_assert_uint_eq(paths[1].hop_count, 0);
    free(dead);
    end(p);
}
END_TEST

/* Of more paths than a look compares the flow is counted, once. */
START_TEST(paths_that_are_not_compared_are_counted)
{
    struct ft_placement *p;

    for (uint32_t more = 0; more < 2; more++) {
        begin(256 + more);
        add(0, 1, 0, spines);
        add(0, 1, 1, spines);
        p = open_placement(NULL);
        ck_assert(ft_placement_within(p, 0, 4));
        ck_assert_uint_eq(ft_placement_cut(p), 0);
        ck_assert(ft_placement_least(p, 1));
        ck_assert(ft_placement_least(p, 1));
        ck_assert_uint_eq(ft_placement_cut(p), more);
        end(p);
    }
}
END_TEST

FT_UNIT_MAIN("placement", each_flow_has_a_link_of_its_own, another_flow_is_moved,
             flows_on_a_link_are_listed, dead_links_are_no_path,
             paths_that_are_not_compared_are_counted)
