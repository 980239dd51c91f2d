// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_CROSSINGS_H
#define FT_FABRIC_CROSSINGS_H
/*
 * Which port leads to which, learnt from the flows that cross them.
 *
 * Of a share of the flows it is remembered at which switches they were seen recently, by which
 * ports and with which TTL. A flow that leaves one switch by a port, and enters another by a port
 * while it does so, speaks for these two ports: it does so only where one switch saw it before and
 * after the other did, so that a flow which moved in between speaks for nothing. Ports are the two
 * ends of a cable when flows of both directions say so, and nothing else explains those flows as
 * well. Routers count the TTL down by one: whether a switch samples packets before or after it did
 * so, the differences of the two directions add up to twice the number of hops between, so that a
 * switch which sends no samples is never taken for a cable. Once it is known at which point two
 * switches sample, from what hosts send and from other cables, more flows of one direction are
 * enough.
 *
 * What is found stays until flows say another thing, or the port was silent for an hour. Evidence
 * has a half-life of a minute. Ports are named as samples name them: by agent address and ifIndex;
 * the caller gives each switch one address. Memory is bounded: at most flows_max flows (400 bytes
 * each) and ports_max ports (1,300 bytes each), of which one switch has a sixteenth at most, and
 * all that are in no inventory together a quarter where there is one: whoever makes up exporters
 * leaves room for the others. Where there are more flows, or more observations a second than
 * rate_max, a share of the flows chosen by hash is looked at, another one every 20 seconds. What
 * finds no room is counted. Pure: times come with the observations, in Unix milliseconds. Thread:
 * one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"

struct ft_crossings_config {
    size_t flows_max;
    size_t ports_max;
    uint32_t rate_max; /* observations looked at in a second */
};

/* A port of a switch. */
struct ft_crossing_port {
    struct ft_ip agent;
    uint32_t ifindex;
};

/* One folded observation. */
struct ft_crossing {
    struct ft_ip agent;
    uint32_t in, out; /* ifIndex; 0: not known */
    uint64_t flow;    /* hash of the tuple */
    int64_t first_ms, last_ms;
    uint32_t samples;
    uint8_t ttl; /* 0: not known */
    bool tunnel; /* the TTL is that of a tunnel around the packet, and `flow` a flow in tunnels */
    bool listed; /* the switch is in the inventory */
};

/* What speaks for a link, recently. */
struct ft_crossing_proof {
    uint64_t samples;
    uint32_t flows;
};

enum ft_crossing_verdict {
    FT_CROSSING_OPEN,    /* too little is known, or nothing is certain */
    FT_CROSSING_AGREES,  /* flows say that the two ports are linked */
    FT_CROSSING_DIFFERS, /* flows say that they are not */
};

/* What flows say of two ports that are said to be linked. */
struct ft_crossing_judgement {
    enum ft_crossing_verdict verdict;
    struct ft_crossing_proof proof; /* that agrees, or speaks for the other port */
    /* Where it differs: the end (0 or 1) that is linked to another port, and that port. */
    unsigned end;
    struct ft_crossing_port other;
};

/* A port with what was found of it. */
struct ft_crossing_found {
    struct ft_crossing_port port;
    bool linked;
    struct ft_crossing_port peer;
    struct ft_crossing_proof proof; /* of the link, both directions */
    bool from_switch; /* flows come in here that another switch sent, though from which port may be
                         open */
    bool to_switch;
    bool has_hosts; /* hosts' own packets come in here */
    int64_t first_ms, last_ms;
};

struct ft_crossings_stats {
    uint64_t observed;      /* received: the sum of the others */
    uint64_t taken;         /* looked at */
    uint64_t left_out;      /* of flows outside of the share */
    uint64_t flows_full;    /* no room for another flow, or another switch of a flow */
    uint64_t ports_full;    /* no room for another port or switch */
    uint64_t exporter_full; /* the switch has its share of the ports */
    uint64_t unlisted_full; /* switches that are in no inventory have theirs */
};

struct ft_crossings;

/* NULL without memory. */
struct ft_crossings *ft_crossings_new(const struct ft_crossings_config *config);
void ft_crossings_free(struct ft_crossings *x);

/* Forgets all of it. */
void ft_crossings_restart(struct ft_crossings *x);

/* Whether there is an inventory: switches that something besides samples reports. */
void ft_crossings_set_inventory(struct ft_crossings *x, bool inventory);

/* Whether a flow's observations are looked at now; those that are not are counted. Cheap. */
bool ft_crossings_follows(struct ft_crossings *x, uint64_t flow, int64_t now_ms);

/* Takes an observation of a flow that is followed. True when its packets come from a host on the
 * port in: no switch is before this one, going by their TTL. */
bool ft_crossings_observe(struct ft_crossings *x, const struct ft_crossing *c);

/* Lets evidence age and looks for cables, a part of the ports each time: all of them in a second.
 */
void ft_crossings_step(struct ft_crossings *x, int64_t now_ms);

/* Whether the results of ft_crossings_next() may have changed since the last call. */
bool ft_crossings_take_news(struct ft_crossings *x);

/* The ports whose link, or hosts, are others since they were taken last, those that are gone too:
 * one a call. */
enum ft_crossings_changed {
    FT_CROSSINGS_NONE,
    FT_CROSSINGS_ONE, /* *index */
    FT_CROSSINGS_ALL, /* any may be; there was no room to note which */
};
enum ft_crossings_changed ft_crossings_take_changed(struct ft_crossings *x, uint32_t *index);

/* Judges a link that is said to be there. */
void ft_crossings_judge(struct ft_crossings *x, const struct ft_crossing_port ends[2],
                        struct ft_crossing_judgement *out);

/* Iterates over the ports, in the order of first sightings, from *index 0; false at the end. */
bool ft_crossings_next(const struct ft_crossings *x, uint32_t *index,
                       struct ft_crossing_found *out);

/* The port at an index below ft_crossings_limit(), which ports_max bounds; false: there is none. */
bool ft_crossings_found(const struct ft_crossings *x, uint32_t index,
                        struct ft_crossing_found *out);
uint32_t ft_crossings_limit(const struct ft_crossings *x);

const struct ft_crossings_stats *ft_crossings_stats(const struct ft_crossings *x);

#endif
