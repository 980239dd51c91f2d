// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/topology.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/fabric/topology_impl.h"

void ft_topology_free(struct ft_topology *t)
{
    if (!t)
        return;
    if (t->others) {
        t->others--;
        return;
    }
    ft_index_free(&t->index);
    free(t->fabric);
    free(t->switches);
    free(t->ports);
    free(t->nics);
    free(t->hosts);
    free(t->groups);
    free(t->lags);
    free(t->text);
    free(t->addresses);
    free(t->ids);
    free(t->group_links);
    free(t->neighbours);
    free(t->first_neighbour);
    free(t->links);
    free(t->row);
    free(t->down);
    free(t->valley);
    free(t);
}

struct ft_topology *ft_topology_keep(const struct ft_topology *t)
{
    struct ft_topology *kept = (struct ft_topology *)(uintptr_t)t;

    kept->others++;
    return kept;
}

const char *ft_topology_fabric(const struct ft_topology *t)
{
    return t->fabric;
}

uint32_t ft_topology_switches(const struct ft_topology *t)
{
    return t->switch_count;
}

uint32_t ft_topology_ports(const struct ft_topology *t)
{
    return t->port_count;
}

uint32_t ft_topology_nics(const struct ft_topology *t)
{
    return t->nic_count;
}

uint32_t ft_topology_hosts(const struct ft_topology *t)
{
    return t->host_count;
}

uint32_t ft_topology_groups(const struct ft_topology *t)
{
    return t->group_count;
}

uint32_t ft_topology_lags(const struct ft_topology *t)
{
    return t->lag_count;
}

const struct ft_switch *ft_topology_switch(const struct ft_topology *t, uint32_t id)
{
    assert(id < t->switch_count);
    return &t->switches[id];
}

const struct ft_port *ft_topology_port(const struct ft_topology *t, uint32_t id)
{
    assert(id < t->port_count);
    return &t->ports[id];
}

const struct ft_nic *ft_topology_nic(const struct ft_topology *t, uint32_t id)
{
    assert(id < t->nic_count);
    return &t->nics[id];
}

const struct ft_host *ft_topology_host(const struct ft_topology *t, uint32_t id)
{
    assert(id < t->host_count);
    return &t->hosts[id];
}

const struct ft_group *ft_topology_group(const struct ft_topology *t, uint32_t id)
{
    assert(id < t->group_count);
    return &t->groups[id];
}

const struct ft_lag *ft_topology_lag(const struct ft_topology *t, uint32_t id)
{
    id &= ~FT_LAG_BIT;
    assert(id < t->lag_count);
    return &t->lags[id];
}

uint32_t ft_topology_find_switch(const struct ft_topology *t, const char *name)
{
    return ft_index_name(&t->index, FT_NAMESPACE_SWITCHES, name);
}

uint32_t ft_topology_find_port(const struct ft_topology *t, uint32_t switch_id, const char *name)
{
    assert(switch_id < t->switch_count);
    return ft_index_name(&t->index, switch_id, name);
}

uint32_t ft_topology_find_host(const struct ft_topology *t, const char *name)
{
    return ft_index_name(&t->index, FT_NAMESPACE_HOSTS, name);
}

uint32_t ft_topology_switch_at(const struct ft_topology *t, const struct ft_ip *address)
{
    return ft_index_address(&t->index, FT_NAMESPACE_SWITCHES, address);
}

uint32_t ft_topology_port_at(const struct ft_topology *t, uint32_t switch_id, uint32_t ifindex)
{
    uint32_t end = ft_index_ifindex(&t->index, switch_id, ifindex);

    return ft_is_lag(end) ? FT_NONE : end;
}

uint32_t ft_topology_end_at(const struct ft_topology *t, uint32_t switch_id, uint32_t ifindex)
{
    return ft_index_ifindex(&t->index, switch_id, ifindex);
}

uint32_t ft_topology_find_lag(const struct ft_topology *t, uint32_t switch_id, const char *name)
{
    uint32_t id = ft_index_name(&t->index, FT_NAMESPACE_LAGS | switch_id, name);

    return id == FT_NONE ? FT_NONE : FT_LAG_BIT | id;
}

uint32_t ft_topology_end_switch(const struct ft_topology *t, uint32_t end)
{
    return ft_is_lag(end) ? ft_topology_lag(t, end)->switch_id
                          : ft_topology_port(t, end)->switch_id;
}

const char *ft_topology_end_name(const struct ft_topology *t, uint32_t end)
{
    return ft_is_lag(end) ? ft_topology_lag(t, end)->name : ft_topology_port(t, end)->name;
}

/* The aggregate that an end is or is in, FT_NONE. */
static uint32_t lag_around(const struct ft_topology *t, uint32_t end)
{
    return ft_is_lag(end) ? end : ft_topology_port(t, end)->lag;
}

uint32_t ft_topology_end_of_both(const struct ft_topology *t, uint32_t a, uint32_t b)
{
    uint32_t lag;

    if (a == b)
        return a;
    if (a == FT_NONE || b == FT_NONE)
        return FT_NONE;
    lag = lag_around(t, a);
    return lag == lag_around(t, b) ? lag : FT_NONE;
}

bool ft_topology_ends_agree(const struct ft_topology *t, uint32_t a, uint32_t b)
{
    if (a == b || a == FT_NONE || b == FT_NONE)
        return true;
    return (ft_is_lag(a) || ft_is_lag(b)) && lag_around(t, a) == lag_around(t, b);
}

bool ft_topology_is_fabric_end(const struct ft_topology *t, uint32_t end)
{
    if (end == FT_NONE)
        return false;
    if (ft_is_lag(end))
        end = ft_topology_lag(t, end)->members[0];
    return t->ports[end].peer != FT_NONE;
}

uint32_t ft_topology_nic_at(const struct ft_topology *t, const struct ft_ip *address)
{
    return ft_index_address(&t->index, FT_NAMESPACE_NICS, address);
}

uint32_t ft_topology_distance(const struct ft_topology *t, uint32_t from, uint32_t to)
{
    uint8_t distance;

    assert(from < t->switch_count && to < t->switch_count);
    /* A way up and down is one of the same length in the other direction. */
    distance =
        t->row[to] == FT_NONE ? ft_switch_distance(t, to, from) : ft_switch_distance(t, from, to);
    return distance == FT_UNREACHABLE ? FT_NONE : distance;
}

const char *ft_tier_name(enum ft_tier tier)
{
    switch (tier) {
    case FT_TIER_LEAF:
        return "leaf";
    case FT_TIER_SPINE:
        return "spine";
    case FT_TIER_SUPERSPINE:
        return "superspine";
    case FT_TIER_UNKNOWN:
        break;
    }
    return "unknown";
}

const char *ft_direction_name(enum ft_direction direction)
{
    switch (direction) {
    case FT_DIRECTION_UP:
        return "up";
    case FT_DIRECTION_DOWN:
        return "down";
    case FT_DIRECTION_HOST:
        break;
    }
    return "host";
}

/* Groups lie by switch, up before down. */
uint32_t ft_topology_find_group(const struct ft_topology *t, uint32_t switch_id,
                                enum ft_direction direction)
{
    uint32_t low = 0, high = t->group_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct ft_group *g = &t->groups[middle];

        if (g->switch_id == switch_id && g->direction == direction)
            return middle;
        if (g->switch_id < switch_id || (g->switch_id == switch_id && g->direction < direction))
            low = middle + 1;
        else
            high = middle;
    }
    return FT_NONE;
}
