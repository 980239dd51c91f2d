// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_JOIN_IMPL_H
#define FT_DAEMON_JOIN_JOIN_IMPL_H
/*
 * Shared by the parts of the join alone, each of which needs only those before it: the judgement of
 * a flow (flow_judge.c), the join's windows, ageing and change of topology (join.c), and
 * observations and host reports (observe.c). Thread: the join's.
 */
#include "daemon/join/flow_parts.h"
#include "daemon/join/join.h"
#include "daemon/join/moves.h"
#include "daemon/join/names.h"
#include "daemon/join/outages.h"
#include "daemon/join/port_marks.h"
#include "daemon/join/sampled.h"
#include "lib/base/table.h"

/* A million flows are 272 MB, and 11 to 21 for their slots in the table. */
_Static_assert(sizeof(struct ft_flow) <= 272, "an entry of the table of flows");

struct ft_join {
    struct ft_join_config config;
    struct ft_join_hooks hooks;
    const struct ft_topology *t;
    struct ft_table *flows;
    struct ft_names *names;
    const struct ft_ranks *ranks;
    struct ft_hints *hints; /* NULL: nobody says anything */
    struct ft_join_predictor predictor, inferrer;
    struct ft_port_marks *marks; /* by port id */
    struct ft_port_depths *depths;
    struct ft_sampled *sampled;
    struct ft_outages *outages;
    struct ft_holds *holds; /* of those who sample, by their packet numbers */
    struct ft_trust trust;
    size_t beside;      /* bytes that flows have beside their entries */
    int64_t heard_ms;   /* time of the newest sample */
    int64_t moved_ms;   /* since when a flow has been on the path that it moved to last */
    uint32_t window;    /* lowest open */
    uint32_t newest;    /* that took a record */
    bool sealed;        /* it takes no more */
    uint32_t forgotten; /* up to where flows were, of ft_join_forget() */
    bool recalling;     /* samples may be of closed windows */
    bool sweeping;      /* unreferenced names are being collected until this window closes */
    uint32_t judge_at;  /* entries from here to judge_end are to be judged by a new topology */
    uint32_t judge_end;
    /* The last judgement and its flow: both are used to publish the path and to assign bytes to
     * links, as long as nothing changed since. NULL: something did. */
    const struct ft_flow *judged;
    struct ft_judgement judgement;
    struct ft_join_stats stats;
};

static inline uint32_t ft_join_window_at(const struct ft_join *j, int64_t ms)
{
    return ms < 0 ? 0 : (uint32_t)(ms / j->config.window_ms);
}

/* What the allocator keeps of an allocation. */
#define FT_HEAP_BYTES 16

/* Bytes that a flow has beside its entry. */
static inline size_t ft_flow_beside(const struct ft_flow *flow)
{
    return (flow->evidence.size ? flow->evidence.size * sizeof(*flow->evidence.list) + FT_HEAP_BYTES
                                : 0) +
           (flow->parts ? ft_flow_parts_bytes(flow) + FT_HEAP_BYTES : 0);
}

/* Counts what a flow has since it had `before`. */
static inline void ft_join_recount(struct ft_join *j, const struct ft_flow *flow, size_t before)
{
    j->beside += ft_flow_beside(flow) - before;
}

static inline bool ft_join_is_full(const struct ft_join *j)
{
    return j->config.beside_max && j->beside >= j->config.beside_max;
}

/* Finds the ends of a flow in the topology. */
static inline void ft_join_locate(const struct ft_join *j, struct ft_flow *flow)
{
    flow->src_nic = ft_topology_nic_at(j->t, &flow->tuple.src);
    flow->dst_nic = ft_topology_nic_at(j->t, &flow->tuple.dst);
}

/* What a flow is judged by; *known becomes its path, and is borrowed. */
struct ft_judging ft_join_judging(const struct ft_join *join, const struct ft_flow *flow,
                                  int64_t now_ms, struct ft_path *known);

/* Judges a flow, applies the judgement and reports what changed to the hooks. */
void ft_join_judge_now(struct ft_join *join, struct ft_flow *flow, int64_t now_ms);

#endif
