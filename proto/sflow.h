// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_SFLOW_H
#define FT_PROTO_SFLOW_H
/*
 * sFlow version 5 datagrams (sflow.org/sflow_version_5.txt), with the notifications of discarded
 * packets (sflow_drops.txt) and transit delay (sflow_transit.txt).
 *
 * Decodes a datagram in one pass without allocating. Each sample sits behind its own length, so an
 * unknown or broken one is skipped and counted and costs only itself; a datagram whose own head or
 * framing is broken is refused before any callback. Samples are handed to callbacks as plain
 * structs as soon as each is decoded completely. Pure: no I/O, clock or memory.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/reader.h"
#include "lib/base/tuple.h"
#include "proto/packet.h"

enum ft_sflow_status {
    FT_SFLOW_OK,
    FT_SFLOW_SHORT,   /* ends inside the head or inside the framing of its samples */
    FT_SFLOW_BAD,     /* no agent address */
    FT_SFLOW_UNKNOWN, /* not version 5 */
};

/* Interface values of section 5.3, decoded. */
enum ft_sflow_if {
    FT_SFLOW_IF_UNKNOWN,  /* 0 */
    FT_SFLOW_IF_INDEX,    /* value is an ifIndex */
    FT_SFLOW_IF_INTERNAL, /* 0x3FFFFFFF: the switch itself */
    FT_SFLOW_IF_DISCARD,  /* output only; value is the reason */
    FT_SFLOW_IF_MULTIPLE, /* output only; value is the number of interfaces, 0 if unknown */
};

struct ft_sflow_interface {
    enum ft_sflow_if kind;
    uint32_t value;
};

struct ft_sflow_head {
    struct ft_ip agent;
    uint32_t sub_agent;
    uint32_t sequence;
    uint32_t uptime_ms;
    uint32_t samples; /* as stated */
};

/* Facts that extended records add to a flow sample; each field holds when its bit is in `has`. */
enum ft_sflow_has {
    FT_SFLOW_HAS_VLANS = 1 << 0,       /* extended switch */
    FT_SFLOW_HAS_NEXT_HOP = 1 << 1,    /* extended router, gateway or MPLS */
    FT_SFLOW_HAS_QUEUE = 1 << 2,       /* extended egress queue */
    FT_SFLOW_HAS_QUEUE_DEPTH = 1 << 3, /* extended queue */
    FT_SFLOW_HAS_TRANSIT = 1 << 4,     /* extended transit */
    FT_SFLOW_HAS_VNI = 1 << 5,         /* VXLAN network put on or taken off */
    FT_SFLOW_HAS_TIMESTAMP = 1 << 6,   /* when the packet was sampled, by the switch's clock */
};

struct ft_sflow_extended {
    uint32_t has;
    uint32_t in_vlan, out_vlan;
    uint32_t queue;
    uint32_t queue_bytes; /* in the output queue ahead of the packet */
    uint32_t transit_ns;  /* time in the switch; UINT32_MAX: that or more */
    uint32_t vni;
    struct ft_ip next_hop;
    uint64_t timestamp_ns; /* since 1970, UTC */
};

struct ft_sflow_flow {
    uint32_t sequence; /* of the data source; notifications of discards are numbered apart */
    uint32_t source_type;
    uint32_t source_index;
    uint32_t sampling_rate;
    uint32_t sample_pool;
    uint32_t drops;
    struct ft_sflow_interface in;
    struct ft_sflow_interface out;
    uint32_t frame_bytes; /* length on the wire as the record states it; 0 without a record */
    bool has_packet;      /* a record gave a tuple */
    struct ft_packet packet;
    /* The notification of a discarded packet, which is not a random sample: sampling_rate is 1. */
    bool discarded;
    uint32_t discard_reason;
    struct ft_sflow_extended extended;
};

/* A counter that the exporter does not keep (all ones on the wire). */
#define FT_SFLOW_NO_COUNT UINT64_MAX

/* Ethernet counters, record 0:2 (RFC 3635 has their meaning); those of collisions are not read:
 * links are full duplex. 32 bits on the wire. */
struct ft_sflow_ethernet {
    uint64_t alignment_errors, fcs_errors, symbol_errors, too_long, in_mac_errors;
    uint64_t out_mac_errors, carrier_errors, deferred;
};

/* The member of an aggregate, record 0:7 (sflow_lag.txt); states are octets as in a LACPDU (IEEE
 * 802.1AX-2014 section 6.4.2.3). */
struct ft_sflow_lag {
    uint32_t ifindex; /* of the aggregate; 0: attached to none */
    uint8_t actor_state, partner_state;
    uint64_t lacp_in, lacp_out;
    uint64_t lacp_bad; /* received, unknown or illegal */
};

/* Priority flow control, record 0:11 (draft_sflow_pfc.txt), of all priorities: requests are frames
 * that were sent (IEEE8021-PFC-MIB). hsflowd, which is recognised by what it leaves out, exchanges
 * the two: they are put right. */
struct ft_sflow_pfc {
    uint64_t requests, indications;
};

/* The optical module of a port, record 0:10 (sflow_optics.txt): powers in microwatts. Lanes are
 * judged as they are read: low or high are those outside of what the module says of itself. */
struct ft_sflow_optics {
    int32_t temperature_mc; /* thousandths of a degree */
    uint32_t supply_mv;
    uint32_t lanes;
    uint32_t lanes_low, lanes_high; /* received power */
    uint32_t rx_power_least_uw;     /* of all lanes */
};

#define FT_SFLOW_PORT_BYTES 64

/* Processor of a switch or of a card, record 0:1001. */
struct ft_sflow_processor {
    uint32_t source_type;
    uint32_t source_index;
    uint32_t cpu_5s, cpu_1m, cpu_5m;          /* hundredths of a percent; UINT32_MAX: not known */
    uint64_t memory_bytes, memory_free_bytes; /* FT_SFLOW_NO_COUNT: not known */
};

struct ft_sflow_counters {
    uint32_t sequence;
    uint32_t source_type;
    uint32_t source_index;
    /* Of the same port, where its sample has them: they name no port, so in a sample of several
     * they are those of its data source. VLAN counters are met and not handed on: they are of all
     * ports of a VLAN together, and say nothing of a link or a path. */
    bool has_ethernet, has_lag, has_pfc, has_optics;
    bool pfc_is_bare;               /* for the decoder: the record had two of its five counters */
    char port[FT_SFLOW_PORT_BYTES]; /* name, record 0:1005; "": none; control characters are '?' */
    struct ft_sflow_ethernet ethernet;
    struct ft_sflow_lag lag;
    struct ft_sflow_pfc pfc;
    struct ft_sflow_optics optics;
    /* generic interface counters, record 0:1; bytes are 64 bits on the wire, the rest 32, so that
     * differences of the rest hold modulo 2^32 */
    uint32_t ifindex;
    uint64_t speed_bps;
    bool oper_up, admin_up;
    uint64_t in_bytes, out_bytes;
    uint64_t in_packets, out_packets; /* unicast, multicast and broadcast together */
    uint64_t in_discards, out_discards;
    uint64_t in_errors, out_errors;
};

/* Kinds of records inside samples, for counting. What is not listed is UNKNOWN. */
enum ft_sflow_record {
    FT_SFLOW_RECORD_UNKNOWN,
    FT_SFLOW_RECORD_HEADER,
    FT_SFLOW_RECORD_ETHERNET,
    FT_SFLOW_RECORD_IPV4,
    FT_SFLOW_RECORD_IPV6,
    FT_SFLOW_RECORD_SWITCH,
    FT_SFLOW_RECORD_ROUTER,
    FT_SFLOW_RECORD_GATEWAY,
    FT_SFLOW_RECORD_MPLS, /* stack, tunnel, virtual circuit, FEC */
    FT_SFLOW_RECORD_NAT,
    FT_SFLOW_RECORD_VLAN_TUNNEL,
    FT_SFLOW_RECORD_TUNNEL, /* L2 and IP tunnels, decapsulation, VNI */
    FT_SFLOW_RECORD_QUEUE,  /* egress queue and its depth */
    FT_SFLOW_RECORD_TRANSIT,
    FT_SFLOW_RECORD_TIMESTAMP,
    FT_SFLOW_RECORD_ACL, /* ACL, function and hardware trap of a discarded packet */
    FT_SFLOW_RECORD_IF_COUNTERS,
    FT_SFLOW_RECORD_ETHERNET_COUNTERS,
    FT_SFLOW_RECORD_VLAN_COUNTERS,
    FT_SFLOW_RECORD_LAG_COUNTERS,
    FT_SFLOW_RECORD_PROCESSOR,
    FT_SFLOW_RECORD_OPTICS,
    FT_SFLOW_RECORD_PFC_COUNTERS,
    FT_SFLOW_RECORD_PORT_NAME,
    FT_SFLOW_RECORD_KINDS,
};

/* As in metrics: "header", "if_counters". */
const char *ft_sflow_record_name(enum ft_sflow_record kind);

/* Every sample of a datagram ends in exactly one of: a call of flow, calls of counters (one per
 * generic record) and processor, or one of the counts. Counter samples with neither are counted in
 * counters_other. */
struct ft_sflow_stats {
    uint64_t flow_samples;                   /* calls of flow */
    uint64_t discards;                       /* of these: notifications of discarded packets */
    uint64_t counter_samples;                /* counter samples decoded */
    uint64_t counters_other;                 /* of these: without any that are handed on */
    uint64_t unknown_samples;                /* sample formats skipped */
    uint64_t broken_samples;                 /* malformed inside their length */
    uint64_t records[FT_SFLOW_RECORD_KINDS]; /* met, also in samples that are broken */
    uint64_t broken_records;                 /* of these: skipped, since shorter than their kind */
    uint64_t headers_unknown; /* flow samples without a tuple: no header, not IP, no ports */
    uint64_t headers_short;   /* likewise: cut off before it */
    uint64_t headers_bad;     /* likewise: contradicts itself */
    uint64_t trailing;        /* datagrams and samples with bytes behind what they state; ignored */
};

/* A callback may be NULL. */
struct ft_sflow_visitor {
    /* Called first; return false to skip the datagram's samples (a duplicate, say). */
    bool (*head)(void *arg, const struct ft_sflow_head *head);
    void (*flow)(void *arg, const struct ft_sflow_flow *flow);
    void (*counters)(void *arg, const struct ft_sflow_counters *counters);
    void (*processor)(void *arg, const struct ft_sflow_processor *processor);
    void *arg;
};

/* Adds to *stats. */
enum ft_sflow_status ft_sflow_decode(const uint8_t *bytes, size_t len,
                                     const struct ft_sflow_visitor *visitor,
                                     struct ft_sflow_stats *stats);

#endif
