// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_EVIDENCE_H
#define FT_FABRIC_EVIDENCE_H
/*
 * What samples say about one flow's path, and the judgement of it.
 *
 * A sighting is "samples of this flow went through this switch from port `in` to port `out`", with
 * when and how many. Sightings are weighed against the equal-cost paths between the flow's ends:
 * one path left over is resolved, several are partial. A sighting of an aggregate limits them to
 * those over one of its members. When no single path explains all sightings,
 * either the path changed at one moment (the older sightings are dropped once the newer ones have
 * settled), or the flow left its path and came back, or it takes several paths at once: its samples
 * come back again and again. Pure: times come in with the samples.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/paths.h"
#include "lib/fabric/topology.h"

/* Spraying over 32 spines: 32 uplinks, 32 spines, 32 ways into the last leaf; and room. */
#define FT_SIGHTINGS_MAX 128
/* Three switches on a two-tier path. */
#define FT_SIGHTINGS_OWN 3

/* Switches that the topology does not know have this bit and a hash of their address below it. */
#define FT_SWITCH_UNKNOWN 0x80000000u

struct ft_sighting {
    uint32_t switch_id;
    uint32_t in; /* ports or aggregates; FT_NONE: the sample did not name one that we know */
    uint32_t out;
    uint32_t source; /* who took the samples: two sources may have sampled the same packets */
    int64_t first_ms;
    int64_t last_ms;
    uint32_t samples[2]; /* by parity of the window's number */
    uint64_t bytes[2];   /* sum of sampling rate x frame length */
};

/* returns: how often one source's samples at a switch came back to ports that they had left for
 * others, since the flow had one path. */
struct ft_evidence {
    struct ft_sighting *list; /* own, or heap */
    uint16_t count;
    uint16_t size; /* 0: own */
    uint16_t returns;
    struct ft_sighting own[FT_SIGHTINGS_OWN];
};

enum ft_path_state {
    FT_PATH_UNRESOLVED,
    FT_PATH_RESOLVED,
    FT_PATH_PARTIAL,
    FT_PATH_MULTIPATH,
};

enum ft_reason {
    FT_REASON_NONE,
    FT_REASON_NO_SAMPLES,
    FT_REASON_UNKNOWN_SOURCE, /* the topology has no NIC with this address */
    FT_REASON_UNKNOWN_DESTINATION,
    FT_REASON_UNKNOWN_SWITCH, /* only exporters that the topology does not know saw it */
    FT_REASON_NO_ROUTE,       /* the topology has no way between the ends */
    FT_REASON_OFF_PATH,       /* seen at a switch that no equal-cost path crosses */
    FT_REASON_AMBIGUOUS,      /* partial: samples leave several paths */
    FT_REASON_CHANGING,       /* partial: a change of path has not settled */
};

struct ft_evidence_policy {
    int64_t settle_ms;    /* the new path must have been seen alone for this long */
    int64_t tolerance_ms; /* how much later than others an exporter may report */
};

struct ft_judgement {
    enum ft_path_state state;
    enum ft_reason reason;
    uint64_t candidates;
    bool changed; /* sightings of an earlier path were dropped */
    /* Resolved: whole; partial: the aggregate where candidates differ in its members alone, else
     * FT_NONE where they differ. */
    struct ft_path path;
    uint32_t switches[FT_PATH_HOPS_MAX]; /* partial: FT_NONE where candidates differ */
};

/* Starts empty; the memory of *ev is the caller's, ft_evidence_free() releases what it holds. */
void ft_evidence_init(struct ft_evidence *ev);
void ft_evidence_free(struct ft_evidence *ev);

/* The sighting of a hop, made when there is none (*fresh); NULL when there are too many or memory
 * is short. Good until the next call. */
struct ft_sighting *ft_evidence_sight(struct ft_evidence *ev, uint32_t switch_id, uint32_t in,
                                      uint32_t out, uint32_t source, bool *fresh);

/* What was seen says nothing of where the flow goes any more. It keeps its volume, as if an
 * exporter that nobody knows had seen it. */
void ft_sighting_forget_way(struct ft_sighting *s);

/* Drops sightings last seen before `before_ms`; true when one went. */
bool ft_evidence_forget(struct ft_evidence *ev, int64_t before_ms);

/* Weighs the evidence for the path from src_nic to dst_nic (FT_NONE: an end not known). May drop
 * the sightings of an abandoned path, and forget the way of those that are on none. */
void ft_evidence_judge(struct ft_evidence *ev, const struct ft_topology *t, uint32_t src_nic,
                       uint32_t dst_nic, const struct ft_evidence_policy *policy,
                       struct ft_judgement *out);

/* A path of a multipath flow and its part of the recent samples. Paths that only members of
 * aggregates tell apart, which no sample names, are one path with the aggregates as its ends. */
struct ft_path_share {
    struct ft_path path;
    double share;
};

/* The paths that a multipath flow was seen on; shares add up to 1. Returns how many were stored. */
size_t ft_evidence_shares(const struct ft_evidence *ev, const struct ft_topology *t,
                          uint32_t src_nic, uint32_t dst_nic, struct ft_path_share *shares,
                          size_t max);

/* Recent samples at a hop's switch, and how many of them took the hop, or may have. */
void ft_evidence_at_hop(const struct ft_evidence *ev, const struct ft_topology *t,
                        const struct ft_hop *hop, uint64_t *here, uint64_t *by_hop);

/* Samples and bytes of one window (slot: its parity) at the switch that saw most: a flow's rate is
 * the estimate of its best-sampled hop, never a sum over hops. Within a switch no packet counts
 * twice: the sum is over one source; or over the ports in, of each its best source; or over the
 * ports out likewise; whichever is the most (line cards that sample their own ports add up, the two
 * ends of one way through the switch do not). */
void ft_evidence_volume(const struct ft_evidence *ev, unsigned slot, uint64_t *samples,
                        uint64_t *bytes);

/* Whether a switch above the leaves saw the flow. */
bool ft_evidence_above_leaf(const struct ft_evidence *ev, const struct ft_topology *t);

const char *ft_reason_name(enum ft_reason reason);

#endif
