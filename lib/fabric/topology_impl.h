// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_TOPOLOGY_IMPL_H
#define FT_FABRIC_TOPOLOGY_IMPL_H
/*
 * The insides of the topology, shared by topology_builder.c (additions), topology_build.c (tiers,
 * groups), topology_distance.c, topology.c (look-ups), paths.c and reach.c only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/task.h"
#include "lib/fabric/index.h"
#include "lib/fabric/topology.h"

/* The matrices of distances grow with leaves x switches; this keeps them below 512 MiB. */
#define FT_SWITCHES_MAX 16384
/* Ports, and aggregates: 8,191 of each switch; ids stay below FT_LAG_BIT. */
#define FT_ENDS_MAX    (FT_SWITCHES_MAX * 8191u)
#define FT_UNREACHABLE UINT8_MAX

/* Where something was added. file is an index into the builder's list. */
struct ft_stated_at {
    uint32_t file;
    unsigned line;
};

struct ft_new_switch {
    char *name;
    enum ft_tier tier;
    bool states_ports;
    struct ft_stated_at stated;
};

struct ft_new_port {
    char *name;
    uint32_t switch_id;
    uint32_t ifindex;
    uint64_t speed_bps;
    uint32_t peer;
    uint32_t nic;
    uint32_t lag;               /* id of its aggregate, FT_NONE */
    struct ft_stated_at stated; /* of its link or NIC, once it has one */
};

struct ft_new_lag {
    char *name;
    uint32_t switch_id;
    uint32_t ifindex;
    struct ft_stated_at stated;
};

struct ft_new_host {
    char *name;
    struct ft_stated_at stated;
};

struct ft_new_nic {
    uint32_t host_id;
    uint32_t rail;
    struct ft_stated_at stated;
};

/* An address of a switch or NIC. */
struct ft_new_address {
    uint32_t owner;
    struct ft_ip ip;
};

struct ft_new_attach {
    uint32_t nic_id;
    uint32_t port_id;
};

/* A growing array: the type of items is known by its user. */
struct ft_topology_list {
    void *items;
    uint32_t count;
    size_t size;
};

struct ft_topology_builder {
    char *fabric;
    char **files;
    uint32_t file_count;
    struct ft_stated_at at;
    char *key;
    struct ft_task *task;
    uint64_t speed_bps;
    struct ft_index index;
    struct ft_topology_list switches;
    struct ft_topology_list switch_addresses;
    struct ft_topology_list ports;
    struct ft_topology_list lags;
    struct ft_topology_list hosts;
    struct ft_topology_list nics;
    struct ft_topology_list nic_addresses;
    struct ft_topology_list attaches;
};

/* The parallel links from one switch to another: count ports from links[first]. */
struct ft_neighbour {
    uint32_t switch_id;
    uint32_t first;
    uint32_t count;
    bool up;
};

struct ft_topology {
    uint32_t others; /* owners besides the first */
    char *fabric;
    struct ft_index index;
    struct ft_switch *switches;
    struct ft_port *ports;
    struct ft_nic *nics;
    struct ft_host *hosts;
    struct ft_group *groups;
    struct ft_lag *lags;
    uint32_t switch_count, port_count, nic_count, host_count, group_count, lag_count;
    /* What the structs above point into. */
    char *text;
    struct ft_ip *addresses;
    uint32_t *ids;
    uint32_t *group_links;
    /* Neighbours of switch s: neighbours[first_neighbour[s]] up to first_neighbour[s + 1], by id.
     */
    struct ft_neighbour *neighbours;
    uint32_t *first_neighbour;
    uint32_t *links;
    /* Distances to each switch that has NICs. row[s] is FT_NONE where s has none. */
    uint32_t *row;
    uint8_t *down;   /* [row][switch]: by links down only */
    uint8_t *valley; /* [row][switch]: by links up, then links down */
};

static inline uint8_t ft_down_distance(const struct ft_topology *t, uint32_t from, uint32_t to)
{
    return t->row[to] == FT_NONE ? FT_UNREACHABLE
                                 : t->down[(size_t)t->row[to] * t->switch_count + from];
}

static inline uint8_t ft_switch_distance(const struct ft_topology *t, uint32_t from, uint32_t to)
{
    return t->row[to] == FT_NONE ? FT_UNREACHABLE
                                 : t->valley[(size_t)t->row[to] * t->switch_count + from];
}

/* Fills row, down and valley from the neighbours; task as ft_topology_pace(). -ENOMEM. */
int ft_topology_measure(struct ft_topology *t, struct ft_task *task);

#endif
