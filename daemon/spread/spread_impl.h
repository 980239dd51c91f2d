// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_SPREAD_SPREAD_IMPL_H
#define FT_DAEMON_SPREAD_SPREAD_IMPL_H
/* What the files of the spread share. */
#include "daemon/spread/spread.h"
#include "lib/base/tuple.h"
#include "lib/fabric/dispersion.h"
#include "lib/fabric/metrics.h"
#include "lib/fabric/spread.h"

/* Hashed and compared as bytes: no padding. */
struct ft_spread_key {
    uint64_t a, b; /* hosts, or the interned name of a job; of a queue pair its NIC and number */
    uint32_t kind; /* Fabrictrace__SpreadOf */
    uint32_t group;
};

/* What is known at one group. */
struct ft_spread_stats {
    uint32_t group;
    uint32_t flows, sprayed;
    uint32_t first, end; /* of one flow: the links with samples are among these */
    uint32_t dst_nic;    /* of the flow, or of the last one */
    uint32_t left;       /* from the switch to the destinations */
    bool mixed;          /* these are at several distances */
    uint64_t possible;   /* links that lead on, by bit: of one flow where it is published */
    uint64_t common;     /* those of them that lead on to each destination */
    /* Of samples that chose: their variance, in that of as many that are one choice each, and what
     * is not certain of it. */
    double variance, doubt;
    struct ft_spread_link *links; /* of the group */
};

struct ft_spread_entry {
    struct ft_spread_key key;
    struct ft_spread_stats *stats; /* in one piece with its links */
};

/* A queue pair whose packets bear their paths: all of its flows. */
struct ft_spread_qp {
    struct ft_spread_entry entry;
    struct ft_tuple flow;    /* one of them */
    bool srcs, dsts, sports; /* they differ in that */
    const char *job;
};

struct ft_spread {
    struct ft_table *entries, *qps;
    struct ft_chance *chance;
    struct ft_spread_kept kept, next; /* of the last window, and of the one that closes */
    uint32_t cursor, qp_cursor;
    size_t bytes, qp_bytes; /* of all stats, and of those of queue pairs */
    uint64_t refused;
};

/* The parts of a record that is being made. */
struct ft_spread_parts {
    Fabrictrace__Spread out;
    Fabrictrace__SpreadLink links[FT_SPREAD_LINKS_MAX];
    Fabrictrace__SpreadLink *list[FT_SPREAD_LINKS_MAX];
    char *dead[FT_SPREAD_LINKS_MAX];
};

/* protobuf-c takes no const, though it changes nothing. */
static inline char *ft_spread_text(const char *s)
{
    return (char *)(uintptr_t)s;
}

/* Of a group, empty; qp: of a queue pair. NULL: there is no room. */
struct ft_spread_stats *ft_spread_stats_new(struct ft_spread *s, const struct ft_topology *t,
                                            uint32_t group, bool qp);
void ft_spread_add(struct ft_spread_stats *sum, const struct ft_spread_stats *p,
                   const struct ft_topology *t);

/* What the record says of the links that lead on. */
void ft_spread_fill(struct ft_spread *s, struct ft_spread_parts *parts, const struct ft_topology *t,
                    const struct ft_spread_stats *p);

/* Of all tiers, where the group is that of the switch where the traffic enters. */
void ft_spread_fill_whole(const struct ft_spread *s, Fabrictrace__Spread *out,
                          const struct ft_spread_entry *e, const struct ft_topology *t);

/* p: of moved. */
void ft_spread_fill_alternation(Fabrictrace__Spread *out, enum ft_alternation alternation,
                                double p);

/* Publishes a record, and keeps it where there is room. */
void ft_spread_hand_on(struct ft_spread *s, struct ft_spread_parts *parts,
                       const struct ft_topology *t, const struct ft_span *span,
                       const struct ft_emitter *emitter);

/* Adds a flow to its queue pair at a group; false: that is not known, or there is no room. */
bool ft_spread_add_qp(struct ft_spread *s, const struct ft_topology *t, const struct ft_flow *flow,
                      const struct ft_spread_stats *p);

/* Publishes the next queue pair that has several flows or links; false: that was all. */
bool ft_spread_step_qps(struct ft_spread *s, const struct ft_topology *t,
                        const struct ft_span *span, const struct ft_emitter *emitter);

#endif
