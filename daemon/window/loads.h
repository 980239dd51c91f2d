// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_WINDOW_LOADS_H
#define FT_DAEMON_WINDOW_LOADS_H
/*
 * What each directed link carried in one window, added up flow by flow.
 *
 * A resolved flow loads each link of its path with its bytes and, when it counts (role data or
 * unknown, rate above the setting floor), with one flow. A partial flow loads the links that are
 * certain; a multipath flow loads each of its paths with that path's share. A flow that counts but
 * whose link in a group is not certain is "unplaced" there; that is so too
 * when no more than an aggregate of links is certain: no member is loaded with what only may have
 * gone over it. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/jobs/pair_links.h"
#include "daemon/join/join.h"
#include "lib/fabric/reach.h"
#include "lib/fabric/skewed.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_load {
    double flows; /* with parts of multipath flows */
    /* Flows with this link for certain, for chance: not those that bear their path, nor, of a link
     * down, those of switches whose weights make its group uneven (lib/fabric/skewed.h). */
    uint64_t certain;
    /* Likewise, but of those that have not all links of the group to choose from, as far as is
     * known (lib/fabric/reach.h); they are not in certain. */
    uint64_t narrow;
    int64_t last_ms; /* newest sample that left by it, of any window; 0: none */
    double bytes;
    double variance; /* of the bytes, from sampling */
    uint32_t elephants;
};

/* An elephant on a link, for collisions. */
struct ft_elephant {
    uint32_t port;
    uint32_t flow; /* index in the join; FT_NONE: another daemon says what it is */
    uint64_t lo_bps;
    const Fabrictrace__Victim *said; /* by another daemon; borrowed */
};

struct ft_loads_config {
    int64_t window_ms;
    double floor_share;    /* of the slowest link's speed; 0: every flow counts */
    double elephant_share; /* likewise */
    size_t elephants_max;
};

struct ft_cross_traffic {
    uint64_t flows;
    double bytes;
};

/* Observations that came since the close before, and how many of them were taken in. */
struct ft_taken {
    uint64_t came, taken;
};

struct ft_loads {
    struct ft_load *link; /* by egress port id */
    uint64_t *unplaced;   /* by group id */
    struct ft_elephant *elephants;
    size_t elephant_count, elephant_size;
    uint64_t elephants_dropped;
    uint64_t flows;  /* that count */
    uint64_t placed; /* of these: with a certain path, or certain shares of all of it */
    double bytes;    /* of flows that count */
    struct ft_cross_traffic spine; /* both ends on one leaf, yet a spine saw it */
    struct ft_cross_traffic rail;
    struct ft_taken observations;
    struct ft_skewed *skewed;
    struct ft_reach *reach;
    uint32_t summed; /* the group that was summed up last, and 1; 0: none */
    double sum;
};

/* Sized for a topology, all zero. -ENOMEM. */
int ft_loads_init(struct ft_loads *loads, const struct ft_topology *t);
void ft_loads_free(struct ft_loads *loads);
void ft_loads_reset(struct ft_loads *loads, const struct ft_topology *t);

/* Adds a flow that was seen in the window (its volume is final). -ENOMEM when an elephant could
 * not be kept; the loads are right all the same. */
int ft_loads_add(struct ft_loads *loads, const struct ft_loads_config *config,
                 const struct ft_join *join, struct ft_flow *flow, uint32_t index);

/* The bytes of all links of a group, once all flows are added. The group of the call before is not
 * summed up again. */
double ft_loads_of_group(struct ft_loads *loads, const struct ft_topology *t, uint32_t group);

/* Keeps an elephant of a flow that another daemon has; its link counts it already. */
void ft_loads_keep_elephant(struct ft_loads *loads, uint32_t port, const Fabrictrace__Victim *said);

/* A link's load for the links under pairs of ranks (daemon/jobs/pair_links.h); arg: the loads. */
struct ft_pair_load ft_loads_pair_load(const void *arg, uint32_t port);

#endif
