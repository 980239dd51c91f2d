// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SIM_ASTRA_H
#define FT_SIM_ASTRA_H
/*
 * ASTRA-sim's system layer over its analytical networks, modelled event by event: ring and direct
 * collectives in chunks, sends and receives that match in order, a node of each kind at a time, the
 * endpoint's delay, the memory's time to reduce. Written from its behaviour at 518bd51, held
 * against figures of 2a2979a; events of one moment take place in the order in which they were made,
 * as there, so times agree to the nanosecond.
 *
 * The congestion-aware network stores and forwards: a link carries one message at a time, in order
 * of arrival. The unaware one knows only hops and size. A link's rate is in bytes a nanosecond,
 * with a GB of 2^30 bytes. Not modelled: rendezvous, shared memory bus, roofline, remote memory,
 * several queues a dimension, halving-doubling, double binary trees and collectives of the user's
 * own.
 *
 * Pure. Thread: any. Memory: some hundred bytes a node, and a message in flight.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FT_ASTRA_DIMS_MAX   8
#define FT_ASTRA_RANKS_MAX  16384
#define FT_ASTRA_UNFINISHED UINT64_MAX

enum ft_astra_shape {
    FT_ASTRA_RING,
    FT_ASTRA_FULLY_CONNECTED,
    FT_ASTRA_SWITCH,
};

struct ft_astra_network {
    uint32_t dims;
    bool aware; /* of congestion: one dimension alone */
    enum ft_astra_shape shape[FT_ASTRA_DIMS_MAX];
    uint32_t npus[FT_ASTRA_DIMS_MAX];
    double bandwidth[FT_ASTRA_DIMS_MAX]; /* GB/s, a GB is 2^30 bytes */
    double latency_ns[FT_ASTRA_DIMS_MAX];
};

enum ft_astra_op {
    FT_ASTRA_ALL_REDUCE,
    FT_ASTRA_ALL_GATHER,
    FT_ASTRA_REDUCE_SCATTER,
    FT_ASTRA_ALL_TO_ALL,
    FT_ASTRA_OPS
};

enum ft_astra_policy {
    FT_ASTRA_LIFO,
    FT_ASTRA_FIFO,
    FT_ASTRA_EXPLICIT,
};

/* How a collective runs in one dimension. */
struct ft_astra_impl {
    bool direct;
    bool one;   /* over all dimensions as one */
    int window; /* of direct; -1: all at once */
};

struct ft_astra_system {
    enum ft_astra_policy policy;
    bool baseline; /* no localBWAware */
    uint64_t endpoint_delay_ns;
    uint32_t active_chunks;
    uint64_t splits;
    double memory_bps;            /* bytes a second */
    uint32_t impls[FT_ASTRA_OPS]; /* how many are stated; 0: the collective cannot run */
    struct ft_astra_impl impl[FT_ASTRA_OPS][FT_ASTRA_DIMS_MAX];
};

enum ft_astra_kind {
    FT_ASTRA_SKIPPED, /* takes no time */
    FT_ASTRA_COMPUTE,
    FT_ASTRA_SEND,
    FT_ASTRA_RECV,
    FT_ASTRA_COLLECTIVE,
    FT_ASTRA_SLEEP, /* a collective that only takes its runtime */
};

struct ft_astra_node {
    uint64_t id; /* for what is said of it */
    enum ft_astra_kind kind;
    bool cpu;
    uint64_t runtime_ns; /* of what computes or sleeps; what computes for 0 is skipped */
    enum ft_astra_op op;
    uint64_t bytes;
    uint32_t peer;
    uint32_t tag;
    uint32_t group; /* index; UINT32_MAX: all ranks */
    uint32_t priority;
    uint32_t dims; /* bits of those involved */
    uint32_t first_dep,
        dep_count; /* deps are indexes of nodes; UINT32_MAX: one that is not there */
};

/* Nodes in the order of their ids. */
struct ft_astra_rank {
    struct ft_astra_node *nodes;
    uint32_t count;
    uint32_t *deps;
};

struct ft_astra_group {
    uint32_t id; /* > 0 */
    uint32_t *ranks;
    uint32_t count;
};

struct ft_astra_input {
    struct ft_astra_network network;
    struct ft_astra_system system;
    const struct ft_astra_rank *ranks; /* as many as the network has NPUs */
    uint32_t rank_count;
    const struct ft_astra_group *groups;
    uint32_t group_count;
};

/* Fills finished_ns[rank_count]; FT_ASTRA_UNFINISHED where a rank waits for ever. -EINVAL: what
 * cannot be simulated, with a reason in error; -ENOMEM. */
int ft_astra_run(const struct ft_astra_input *in, uint64_t *finished_ns, char *error,
                 size_t error_bytes);

#endif
