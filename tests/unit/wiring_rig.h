// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_WIRING_RIG_H
#define FT_TESTS_WIRING_RIG_H
/*
 * Flows that cross the leaf-spine of leafspine.h, as its switches sample them, for tests of what
 * samples say of its links. The cables are the rig's own: uplink u of leaf l leads to the spine
 * plug[l][u], whatever a topology says. Switches sample before they count the TTL down.
 */
#include <string.h>

#include "daemon/discovery/wiring.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define RIG_LEAVES   3
#define RIG_SPINES   2
#define RIG_HOSTS    2
#define RIG_SWITCHES (RIG_LEAVES + RIG_SPINES)
#define RIG_FLOWS    4 /* of each pair of leaves and uplink */
#define RIG_START_MS INT64_C(1700000000000)

static const struct ft_crossings_config rig_config = {
    .flows_max = 1000, .ports_max = 100, .rate_max = 100000};

static uint32_t plug[RIG_LEAVES][RIG_SPINES];
static bool silent[RIG_SWITCHES];      /* sends no samples */
static uint32_t network[RIG_SWITCHES]; /* that its samples name, as in ft_observation */
static bool one_way;                   /* flows go to leaves of higher numbers alone */
static bool untold;                    /* samples do not tell the TTL */
static uint8_t first_ttl;              /* that hosts send with */
static int64_t rig_ms;

static inline void rig_reset(void)
{
    for (uint32_t l = 0; l < RIG_LEAVES; l++)
        for (uint32_t u = 0; u < RIG_SPINES; u++)
            plug[l][u] = u;
    memset(silent, 0, sizeof(silent));
    memset(network, 0, sizeof(network));
    one_way = untold = false;
    first_ttl = 64;
    rig_ms = RIG_START_MS;
}

static inline void rig_swap(uint32_t leaf)
{
    plug[leaf][0] = 1;
    plug[leaf][1] = 0;
}

static inline uint32_t rig_uplink(uint32_t leaf, uint32_t spine)
{
    return plug[leaf][0] == spine ? 0 : 1;
}

static inline void rig_see(struct ft_wiring *w, const struct ft_tuple *tuple, uint32_t id,
                           uint32_t in, uint32_t out, uint8_t ttl)
{
    const struct ft_observation o = {.tuple = *tuple,
                                     .agent = leafspine_switch_ip(id),
                                     .in_ifindex = in,
                                     .out_ifindex = out,
                                     .network = network[id],
                                     .first_ms = rig_ms,
                                     .last_ms = rig_ms + 900,
                                     .samples = 2};

    if (!silent[id])
        ft_wiring_observe(w, &o, untold ? 0 : ttl, rig_ms + 1000);
}

static inline void rig_flow(struct ft_wiring *w, uint32_t src, uint32_t dst, uint32_t up,
                            uint16_t sport)
{
    const struct ft_tuple tuple = {.src = leafspine_host_ip(src, 0),
                                   .dst = leafspine_host_ip(dst, 0),
                                   .sport = sport,
                                   .dport = 4791,
                                   .proto = 17};
    uint32_t spine = plug[src][up];

    rig_see(w, &tuple, src, 1, 100 + up, first_ttl);
    rig_see(w, &tuple, RIG_LEAVES + spine, 1 + src, 1 + dst, first_ttl - 1);
    rig_see(w, &tuple, dst, 100 + rig_uplink(dst, spine), 1, first_ttl - 2);
}

/* All leaves send to each other by each uplink for so many seconds. */
static inline void rig_run(struct ft_wiring *w, uint32_t seconds,
                           void (*changed)(void *arg, uint32_t port), void *arg)
{
    for (uint32_t s = 0; s < seconds; s++, rig_ms += 1000) {
        for (uint32_t i = 0; i < RIG_LEAVES * RIG_LEAVES * RIG_SPINES * RIG_FLOWS; i++) {
            uint32_t src = i % RIG_LEAVES, dst = i / RIG_LEAVES % RIG_LEAVES;
            uint32_t up = i / (RIG_LEAVES * RIG_LEAVES) % RIG_SPINES;

            if (src != dst && !(one_way && src > dst))
                rig_flow(w, src, dst, up, (uint16_t)(50000 + i));
        }
        ft_wiring_step(w, rig_ms + 1000, changed, arg);
    }
}

static inline uint32_t rig_port(const struct ft_topology *t, const char *at, const char *name)
{
    uint32_t port = ft_topology_find_port(t, ft_topology_find_switch(t, at), name);

    ck_assert_uint_ne(port, FT_NONE);
    return port;
}

#endif
