// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_TRUST_H
#define FT_FABRIC_TRUST_H
/*
 * What the samples of all flows together say of the links of a topology.
 *
 * - confirmed: samples of both ends, or LLDP of both, agree that the link is where the topology has
 *   it. Until then a sample at one end says nothing of the other.
 * - doubt_ms: other flows left this link, or the equal-cost set that it belongs to, or a link of
 *   that set changed. Evidence of a flow over it that is older is uncertain.
 * - names_in_ms, names_out_ms: when samples of a switch last named a link of the fabric by which
 *   packets came in, or went out. Where they do, a flow that takes a link will be sampled on
 *   it, and its own samples are waited for. Where they never do, none will come.
 *
 * - sprayed_ms: when a flow, or many short ones together, were last seen to take several paths.
 *
 * Arrays by the ids of one topology. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/topology.h"

struct ft_link_trust {
    int64_t uncertain_ms;
    bool confirmed;
    bool contradicted; /* samples say that it leads elsewhere */
};

struct ft_switch_trust {
    int64_t names_in_ms;
    int64_t names_out_ms;
};

struct ft_trust {
    struct ft_link_trust *links;      /* directed, by egress port id */
    struct ft_switch_trust *switches; /* by id */
    int64_t uncertain_ms;             /* newest uncertainty of any link */
    int64_t since_ms;                 /* the first sample of all, on this topology */
    int64_t sprayed_ms;               /* when flows were last seen to be sprayed */
    /* Private: flows that came back at once recently, and when the newest one did. */
    double returns;
    int64_t returned_ms;
    bool loses_links; /* the topology follows links that fail: it may miss one that is back */
};

/* Nothing is confirmed or uncertain. -ENOMEM. */
int ft_trust_init(struct ft_trust *trust, const struct ft_topology *t);
void ft_trust_free(struct ft_trust *trust);

/* Takes over from an earlier topology what holds for ports and switches of the same names; links
 * are to be confirmed anew. Where a link came or went, the equal-cost sets of its two ends are
 * uncertain until now_ms. */
void ft_trust_follow(struct ft_trust *trust, const struct ft_topology *t,
                     const struct ft_trust *before, const struct ft_topology *from, int64_t now_ms);

/* Nothing is known of the past any more; what is confirmed stays so. */
void ft_trust_restart(struct ft_trust *trust, const struct ft_topology *t);

/* Samples at a switch named these ends, FT_NONE: none. */
static inline void ft_trust_named(struct ft_trust *trust, const struct ft_topology *t,
                                  uint32_t switch_id, uint32_t in, uint32_t out, int64_t ms)
{
    struct ft_switch_trust *s = &trust->switches[switch_id];

    if (ms < trust->since_ms)
        trust->since_ms = ms;
    if (ms > s->names_in_ms && ft_topology_is_fabric_end(t, in))
        s->names_in_ms = ms;
    if (ms > s->names_out_ms && ft_topology_is_fabric_end(t, out))
        s->names_out_ms = ms;
}

/* A flow was sampled where it had been until a moment ago, and elsewhere in between. Flows too
 * short to show one by one that they are sprayed show it together by this: a change of routes makes
 * each of them leave once. */
void ft_trust_returned(struct ft_trust *trust, int64_t ms);

/* Evidence over the link is uncertain up to a moment. */
static inline void ft_trust_mark_uncertain(struct ft_trust *trust, uint32_t port, int64_t until_ms)
{
    if (until_ms > trust->links[port].uncertain_ms)
        trust->links[port].uncertain_ms = until_ms;
    if (until_ms > trust->uncertain_ms)
        trust->uncertain_ms = until_ms;
}

#endif
