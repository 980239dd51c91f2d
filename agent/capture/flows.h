// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_CAPTURE_FLOWS_H
#define FT_AGENT_CAPTURE_FLOWS_H
/*
 * The host's flows: packets in, reports of what changed out.
 *
 * A flow is (interface, direction, 5-tuple). Its first report goes out at the next tick, further
 * ones every report interval while it has traffic, and every refresh interval with zero counts
 * while it has none, so that a restarted daemon learns of it. After the idle timeout its last
 * report says so and the flow is forgotten. Counts are differences since the report before.
 *
 * Time is handed in: nothing here asks a clock. Reports come in the order in which the flows were
 * first seen (a forgotten flow's slot is reused), so a replay repeats to the byte.
 * Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/tuple.h"
#include "proto/packet.h"

enum ft_flow_direction {
    FT_FLOW_UNKNOWN, /* neither end is this host's: a mirror port, say */
    FT_FLOW_TX,
    FT_FLOW_RX,
};

struct ft_flows_config {
    size_t flows_max;
    uint64_t seed;   /* of the hash: random when live, fixed in a replay */
    int64_t tick_ns; /* how often ft_flows_tick() is called */
    int64_t report_ns;
    int64_t refresh_ns;
    int64_t idle_ns;
};

struct ft_flow_counts {
    uint64_t data_packets, ack_packets, other_packets; /* by BTH; other: no BTH seen */
    uint64_t cnp_packets; /* of ack_packets: congestion notifications */
    uint64_t ce_packets;  /* ECN congestion experienced (RFC 3168) */
    uint64_t bytes;       /* of the Ethernet frames */
};

struct ft_flow_report {
    struct ft_tuple tuple;
    uint32_t interface; /* as given with the packet */
    enum ft_flow_direction direction;
    struct ft_flow_counts counts;
    struct ft_wall time;
    struct ft_wall first_seen;
    int64_t interval_ns; /* that the counts cover */
    bool has_dst_qp;     /* every packet with a BTH so far named the same queue pair */
    uint32_t dst_qp;
    bool ended;
    bool source_routed; /* some packet had its path in the destination */
    /* Added by the RDMA source: */
    bool uncounted; /* not from packets: the counts and the interval say nothing */
    bool computed;  /* the source port follows from a formula, no packet was seen */
    bool has_qp;
    uint32_t lqpn, rqpn; /* of this host and of its peer */
    uint32_t pid;        /* 0: not known; then there is no command either */
    const char *comm;    /* NULL: not known */
    const char *job;
    /* Added where the interface is an aggregate: members that its frames may pass. */
    const char *const *members;
    size_t member_count;
};

/* received = processed + pending for flows: created = ended + active. */
struct ft_flows_stats {
    uint64_t created, ended, active;
    uint64_t reports;
};

struct ft_flows;

/* emit is called from ft_flows_tick() and ft_flows_flush(); the report lives until it returns. NULL
 * without memory. */
struct ft_flows *ft_flows_new(const struct ft_flows_config *config,
                              void (*emit)(void *arg, const struct ft_flow_report *report),
                              void *arg);
void ft_flows_free(struct ft_flows *flows);

/* Takes over new intervals; flows_max and seed stay as they were. */
void ft_flows_configure(struct ft_flows *flows, const struct ft_flows_config *config);

/* Counts a packet of frame_bytes on the wire. interface is below 2^16. -ENOSPC when it belongs to a
 * new flow and the table is full; the caller counts that. */
int ft_flows_packet(struct ft_flows *flows, uint32_t interface, enum ft_flow_direction direction,
                    const struct ft_packet *packet, uint32_t frame_bytes, struct ft_mono now,
                    struct ft_wall when);

/* Reports every flow whose report is due and ends those that are idle. */
void ft_flows_tick(struct ft_flows *flows, struct ft_mono now, struct ft_wall wall);

/* Reports every flow that has something unreported, at the end of the program or of a replay. No
 * flow ends by that. */
void ft_flows_flush(struct ft_flows *flows, struct ft_mono now, struct ft_wall wall);

void ft_flows_stats(const struct ft_flows *flows, struct ft_flows_stats *stats);

#endif
