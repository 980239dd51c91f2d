// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_CHAKRA_H
#define FT_PROTO_CHAKRA_H
/*
 * Execution traces of MLCommons Chakra (schema 1.0.0, et_def.proto), as ASTRA-sim reads them: one
 * file a rank, each message behind its length as a varint, first GlobalMetadata, then Nodes.
 *
 * An attribute counts by its name and by which member of its oneof is set; ASTRA-sim reads one
 * member blindly, and another one as 0. What is read so is kept so here, and counted. Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/writer.h"

#define FT_CHAKRA_VERSION   "0.0.4"
#define FT_CHAKRA_NODES_MAX 4000000u
#define FT_CHAKRA_DIMS_MAX  8

/* NodeType. */
enum ft_chakra_type {
    FT_CHAKRA_INVALID,
    FT_CHAKRA_METADATA,
    FT_CHAKRA_MEM_LOAD,
    FT_CHAKRA_MEM_STORE,
    FT_CHAKRA_COMP,
    FT_CHAKRA_SEND,
    FT_CHAKRA_RECV,
    FT_CHAKRA_COLL,
};

/* CollectiveCommType, those that ASTRA-sim knows. */
enum ft_chakra_comm {
    FT_CHAKRA_ALL_REDUCE = 0,
    FT_CHAKRA_ALL_GATHER = 2,
    FT_CHAKRA_BROADCAST = 5,
    FT_CHAKRA_ALL_TO_ALL = 6,
    FT_CHAKRA_REDUCE_SCATTER = 7,
};

struct ft_chakra_node {
    uint64_t id;
    const char *name; /* of a node to write; not kept of one that is read */
    uint32_t type;
    uint32_t first_dep; /* deps[first_dep] up to deps[first_dep + dep_count]: control and data */
    uint32_t dep_count;
    uint64_t duration_us;
    bool cpu;
    bool has_ops; /* num_ops that is not 0 */
    bool has_src, has_dst, has_dims;
    int64_t comm_type;
    int64_t comm_size;
    int32_t src, dst, tag;
    uint32_t group;    /* pg_name as a number; 0: all ranks */
    uint32_t priority; /* comm_priority */
    uint8_t dims;      /* involved_dim: bit d of dimension d */
};

struct ft_chakra_trace {
    struct ft_chakra_node *nodes;
    uint32_t count;
    uint64_t *deps;
    uint32_t dep_count;
    uint32_t blind; /* attributes of another type than is read: they count as 0 */
};

/* -EINVAL with a reason in error (error_bytes > 0): no trace, another version, a node twice, a
 * pg_name that is not a number; -ENOMEM. */
int ft_chakra_read(const void *bytes, size_t len, struct ft_chakra_trace *trace, char *error,
                   size_t error_bytes);
void ft_chakra_free(struct ft_chakra_trace *trace);

/* Appends the metadata that a file begins with, and a node with its data dependencies. */
void ft_chakra_write_head(struct ft_writer *w);
void ft_chakra_write_node(struct ft_writer *w, const struct ft_chakra_node *node,
                          const uint64_t *deps);

#endif
