// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_JOIN_RIG_H
#define FT_TESTS_JOIN_RIG_H
/*
 * A join over a leaf-spine of two leaves, two spines and two hosts a leaf, for tests of what is
 * made of its flows: one window, number 100, is filled, sealed and aged. All flows go from the
 * first host of leaf0 to the first of leaf1 and differ in their source port.
 */
#include "daemon/join/join.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define JOIN_RIG_WINDOW    100
#define JOIN_RIG_WINDOW_MS 10000
#define JOIN_RIG_START_MS  ((int64_t)JOIN_RIG_WINDOW * JOIN_RIG_WINDOW_MS)
#define JOIN_RIG_END_MS    (JOIN_RIG_START_MS + JOIN_RIG_WINDOW_MS)

/* Joins one observation; how it ended. */
static inline enum ft_join_result join_observe(struct ft_join *join, const struct ft_observation *o)
{
    uint64_t results[FT_JOIN_RESULTS] = {0};
    unsigned result = FT_JOIN_OK;

    ft_join_observe_batch(join, o, 1, results);
    while (!results[result])
        result++;
    return (enum ft_join_result)result;
}

struct join_rig {
    struct ft_topology *t;
    struct ft_join *join;
};

/* The same over another topology, which it takes. */
static inline void join_rig_open_over(struct join_rig *rig, struct ft_topology *t)
{
    const struct ft_join_config config = {.flows_max = 1000,
                                          .window_ms = JOIN_RIG_WINDOW_MS,
                                          .evidence_ms = 30000,
                                          .idle_ms = 60000,
                                          .trust_topology = true,
                                          .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}};

    rig->t = t;
    rig->join = ft_join_new(&config, rig->t, &(struct ft_join_hooks){.arg = NULL});
    ck_assert_ptr_nonnull(rig->join);
    ft_join_open(rig->join, JOIN_RIG_WINDOW);
}

/* The same with so many spines. */
static inline void join_rig_open_wide(struct join_rig *rig, uint32_t spines)
{
    join_rig_open_over(rig, leafspine(2, spines, 2));
}

static inline void join_rig_open(struct join_rig *rig)
{
    join_rig_open_wide(rig, 2);
}

static inline void join_rig_close(struct join_rig *rig)
{
    ft_join_free(rig->join);
    ft_topology_free(rig->t);
}

static inline struct ft_tuple join_rig_tuple(uint16_t sport)
{
    return (struct ft_tuple){.src = leafspine_host_ip(0, 0),
                             .dst = leafspine_host_ip(1, 0),
                             .sport = sport,
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};
}

/* Samples of a data flow at leaf0, where it leaves for a spine, that stand for a rate over the
 * window; to be changed before it is taken. */
static inline struct ft_observation join_rig_seen(uint16_t sport, uint32_t spine, uint64_t bps,
                                                  uint32_t samples)
{
    return (struct ft_observation){.tuple = join_rig_tuple(sport),
                                   .agent = leafspine_switch_ip(0),
                                   .in_ifindex = 1,
                                   .out_ifindex = 100 + spine,
                                   .first_ms = JOIN_RIG_START_MS + 1000,
                                   .last_ms = JOIN_RIG_START_MS + 6000,
                                   .samples = samples,
                                   .data_samples = samples,
                                   .bytes = bps / 8000 * JOIN_RIG_WINDOW_MS};
}

static inline void join_rig_take(struct join_rig *rig, const struct ft_observation *o)
{
    ck_assert_int_eq(join_observe(rig->join, o), FT_JOIN_OK);
}

static inline void join_rig_sample(struct join_rig *rig, uint16_t sport, uint32_t spine,
                                   uint64_t bps, uint32_t samples)
{
    struct ft_observation o = join_rig_seen(sport, spine, bps, samples);

    join_rig_take(rig, &o);
}

/* The end of the window: after it the volumes are those of the whole window. */
static inline void join_rig_seal(struct join_rig *rig)
{
    ft_join_seal(rig->join);
    for (uint32_t i = 0; i < ft_join_limit(rig->join); i++)
        if (ft_join_at(rig->join, i))
            ck_assert(
                ft_join_age(rig->join, ft_join_at(rig->join, i), JOIN_RIG_WINDOW, JOIN_RIG_END_MS));
}

static inline struct ft_flow *join_rig_flow(const struct join_rig *rig, uint16_t sport)
{
    struct ft_tuple tuple = join_rig_tuple(sport);
    struct ft_flow *flow = ft_join_find(rig->join, &tuple);

    ck_assert_ptr_nonnull(flow);
    return flow;
}

static inline uint32_t join_rig_port(const struct join_rig *rig, const char *at, const char *name)
{
    uint32_t port = ft_topology_find_port(rig->t, ft_topology_find_switch(rig->t, at), name);

    ck_assert_uint_ne(port, FT_NONE);
    return port;
}

#endif
