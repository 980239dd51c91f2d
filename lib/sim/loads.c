// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/loads.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

uint32_t ft_path_links(const struct ft_topology *t, const struct ft_path *path,
                       uint32_t links[FT_PATH_LINKS_MAX])
{
    uint32_t n = 0;

    if (path->hop_count == 0)
        return 0;
    links[n++] = ft_topology_ports(t) + path->hops[0].in;
    for (uint32_t i = 0; i < path->hop_count; i++)
        links[n++] = path->hops[i].out;
    return n;
}

bool ft_link_chosen(const struct ft_topology *t, uint32_t link)
{
    uint32_t ports = ft_topology_ports(t);
    const struct ft_port *p = ft_topology_port(t, link < ports ? link : link - ports);

    if (p->nic != FT_NONE)
        return ft_topology_nic(t, p->nic)->attach_count > 1;
    return link < ports && p->peer != FT_NONE;
}

uint64_t ft_link_speed(const struct ft_topology *t, uint32_t link)
{
    uint32_t ports = ft_topology_ports(t);

    return ft_topology_port(t, link < ports ? link : link - ports)->speed_bps;
}

void ft_loads_count(const struct ft_topology *t, const struct ft_demand *demands,
                    const struct ft_path *paths, uint32_t count, uint32_t *flows, double *bps)
{
    memset(flows, 0, ft_links_of(t) * sizeof(*flows));
    if (bps)
        memset(bps, 0, ft_links_of(t) * sizeof(*bps));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t links[FT_PATH_LINKS_MAX], n = ft_path_links(t, &paths[i], links);

        for (uint32_t k = 0; k < n; k++) {
            flows[links[k]]++;
            if (bps)
                bps[links[k]] += (double)demands[i].rate_bps;
        }
    }
}

static uint32_t pod_root(uint32_t *pod, uint32_t at)
{
    while (pod[at] != at) {
        pod[at] = pod[pod[at]];
        at = pod[at];
    }
    return at;
}

/* By switch: the pod that it belongs to, which leaves and spines are connected in. */
static uint32_t *pods_of(const struct ft_topology *t)
{
    uint32_t switches = ft_topology_switches(t);
    uint32_t *pod = calloc((size_t)switches + 1, sizeof(*pod));

    for (uint32_t i = 0; pod && i < switches; i++)
        pod[i] = i;
    for (uint32_t i = 0; pod && i < ft_topology_ports(t); i++) {
        const struct ft_port *p = ft_topology_port(t, i);
        uint32_t peer;

        if (p->peer == FT_NONE || p->direction != FT_DIRECTION_UP)
            continue;
        peer = ft_topology_port(t, p->peer)->switch_id;
        if (ft_topology_switch(t, peer)->tier != FT_TIER_SUPERSPINE)
            pod[pod_root(pod, p->switch_id)] = pod_root(pod, peer);
    }
    for (uint32_t i = 0; pod && i < switches; i++)
        pod[i] = pod_root(pod, i);
    return pod;
}

/* Sets by number: out of and into switch s by its links to spines, 4 s and 4 s + 1; out of and into
 * the pod of s by superspines, 4 s + 2 and 4 s + 3. */
static uint32_t set_of(const struct ft_topology *t, const uint32_t *pod, uint32_t link)
{
    const struct ft_port *p, *low;
    bool up;

    if (link >= ft_topology_ports(t))
        return FT_NONE;
    p = ft_topology_port(t, link);
    if (p->peer == FT_NONE)
        return FT_NONE;
    up = p->direction == FT_DIRECTION_UP;
    low = up ? p : ft_topology_port(t, p->peer);
    if (ft_topology_switch(t, ft_topology_port(t, low->peer)->switch_id)->tier ==
        FT_TIER_SUPERSPINE)
        return 4 * pod[low->switch_id] + (up ? 2 : 3);
    return 4 * low->switch_id + (up ? 0 : 1);
}

static void add_flow(struct ft_bounds *b, uint32_t set, double bps)
{
    b->flows[set]++;
    b->bps[set] += bps;
    if (bps > b->most_bps[set])
        b->most_bps[set] = bps;
}

static void add_links(struct ft_bounds *b, const struct ft_topology *t, const bool *dead,
                      const uint32_t *pod)
{
    for (uint32_t l = 0; l < ft_topology_ports(t); l++) {
        uint32_t set = set_of(t, pod, l);

        b->set[l] = set;
        b->set[l + ft_topology_ports(t)] = FT_NONE;
        if (set == FT_NONE || (dead && dead[l]))
            continue;
        b->fastest[set] = fmax(b->fastest[set], (double)ft_link_speed(t, l));
        if (b->links[set]++ == 0)
            b->speed[set] = (double)ft_link_speed(t, l);
        else if (b->speed[set] > 0)
            b->speed[set] = ft_link_speed(t, l) ? b->speed[set] + (double)ft_link_speed(t, l) : 0;
    }
}

int ft_bounds_init(struct ft_bounds *b, const struct ft_topology *t, const bool *dead,
                   const struct ft_demand *demands, const struct ft_hop *ends, uint32_t count)
{
    uint32_t *pod = pods_of(t);

    memset(b, 0, sizeof(*b));
    b->sets = 4 * ft_topology_switches(t);
    b->set = calloc((size_t)ft_links_of(t) + 1, sizeof(*b->set));
    b->flows = calloc((size_t)b->sets + 1, sizeof(*b->flows));
    b->bps = calloc((size_t)b->sets + 1, sizeof(*b->bps));
    b->most_bps = calloc((size_t)b->sets + 1, sizeof(*b->most_bps));
    b->links = calloc((size_t)b->sets + 1, sizeof(*b->links));
    b->speed = calloc((size_t)b->sets + 1, sizeof(*b->speed));
    b->fastest = calloc((size_t)b->sets + 1, sizeof(*b->fastest));
    if (!pod || !b->set || !b->flows || !b->bps || !b->most_bps || !b->links || !b->speed ||
        !b->fastest) {
        free(pod);
        ft_bounds_free(b);
        return -ENOMEM;
    }
    add_links(b, t, dead, pod);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = ft_topology_port(t, ends[i].in)->switch_id;
        uint32_t to = ft_topology_port(t, ends[i].out)->switch_id;
        double bps = (double)demands[i].rate_bps;

        if (from == to)
            continue;
        add_flow(b, 4 * from, bps);
        add_flow(b, 4 * to + 1, bps);
        if (pod[from] != pod[to]) {
            add_flow(b, 4 * pod[from] + 2, bps);
            add_flow(b, 4 * pod[to] + 3, bps);
        }
    }
    free(pod);
    return 0;
}

void ft_bounds_free(struct ft_bounds *b)
{
    free(b->set);
    free(b->flows);
    free(b->bps);
    free(b->most_bps);
    free(b->links);
    free(b->speed);
    free(b->fastest);
    memset(b, 0, sizeof(*b));
}

uint32_t ft_bound_flows(const struct ft_bounds *b, uint32_t set)
{
    return b->links[set] ? (b->flows[set] + b->links[set] - 1) / b->links[set] : 0;
}
