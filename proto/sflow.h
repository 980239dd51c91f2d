// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_SFLOW_H
#define FT_PROTO_SFLOW_H
/*
 * sFlow version 5 datagrams (sflow.org/sflow_version_5.txt).
 *
 * Decodes a datagram in one pass without allocating. Each sample sits behind its own length, so an
 * unknown or broken one is skipped and counted and costs only itself; a datagram whose own head or
 * framing is broken is refused before any callback. Samples are handed to callbacks as plain
 * structs as soon as each is decoded whole. Pure: no I/O, clock or memory.
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

struct ft_sflow_flow {
    uint32_t sequence; /* of the data source */
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
};

/* A counter that the exporter does not keep (all ones on the wire). */
#define FT_SFLOW_NO_COUNT UINT64_MAX

struct ft_sflow_counters {
    uint32_t sequence;
    uint32_t source_type;
    uint32_t source_index;
    /* generic interface counters, record 0:1; bytes are 64 bits on the wire, the rest 32, so that
     * differences of the rest hold modulo 2^32 */
    uint32_t ifindex;
    uint64_t speed_bps;
    bool oper_up;
    uint64_t in_bytes, out_bytes;
    uint64_t in_packets, out_packets; /* unicast, multicast and broadcast together */
    uint64_t in_discards, out_discards;
    uint64_t in_errors, out_errors;
};

/* Every sample of a datagram ends in exactly one of: a call of flow, a call of counters (one per
 * generic record; samples without one are counted in counters_other), or one of the counts. */
struct ft_sflow_stats {
    uint64_t flow_samples;    /* calls of flow */
    uint64_t counter_samples; /* counter samples decoded */
    uint64_t counters_other;  /* of these: without generic interface counters */
    uint64_t unknown_samples; /* sample formats skipped */
    uint64_t broken_samples;  /* malformed inside their length */
    uint64_t unknown_records; /* records skipped inside decoded samples */
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
    void *arg;
};

/* Adds to *stats. */
enum ft_sflow_status ft_sflow_decode(const uint8_t *bytes, size_t len,
                                     const struct ft_sflow_visitor *visitor,
                                     struct ft_sflow_stats *stats);

#endif
