// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/jobs/pair_links.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs/flow_ranks.h"
#include "daemon/join/flow_names.h"
#include "lib/base/table.h"

#define PORTS_MAX 32

struct pair_key {
    char comm_id[FT_RANKS_ID];
    uint32_t src, dst;
};

struct pair {
    struct pair_key key;
    bool unsure;
    bool shared; /* its flows may be another pair's */
    bool named;
    uint32_t count;
    uint32_t ports[PORTS_MAX], crossed[PORTS_MAX]; /* by so many of its flows */
    uint32_t flows;
    uint32_t last; /* which of them are the last of a flow, a bit each */
    uint32_t qp;
    struct ft_tuple tuple;
    struct ft_pair_link link;
};

struct ft_pair_links {
    struct ft_table *tables[2];
    unsigned filling;
};

struct ft_pair_links *ft_pair_links_new(size_t pairs_max, uint64_t seed)
{
    struct ft_pair_links *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    for (int i = 0; i < 2; i++) {
        l->tables[i] = ft_table_new(sizeof(struct pair), sizeof(struct pair_key), pairs_max, seed);
        if (!l->tables[i]) {
            ft_pair_links_free(l);
            return NULL;
        }
    }
    return l;
}

void ft_pair_links_free(struct ft_pair_links *l)
{
    if (!l)
        return;
    ft_table_free(l->tables[0]);
    ft_table_free(l->tables[1]);
    free(l);
}

void ft_pair_links_begin(struct ft_pair_links *l)
{
    ft_table_clear(l->tables[l->filling]);
}

static uint32_t partly_of(const struct pair *pair)
{
    uint32_t partly = 0;

    for (uint32_t i = 0; i < pair->count; i++)
        partly |= (uint32_t)(pair->crossed[i] < pair->flows) << i;
    return partly;
}

static struct pair_key key_of(const char *comm_id, uint32_t src, uint32_t dst)
{
    struct pair_key key;

    memset(&key, 0, sizeof(key));
    snprintf(key.comm_id, sizeof(key.comm_id), "%s", comm_id);
    key.src = src;
    key.dst = dst;
    return key;
}

static void add_port(struct pair *pair, uint32_t port, bool last)
{
    uint32_t i = 0;

    while (i < pair->count && pair->ports[i] != port)
        i++;
    if (port == FT_NONE || i == PORTS_MAX) {
        pair->unsure = true;
        return;
    }
    if (i == pair->count)
        pair->ports[pair->count++] = port;
    pair->crossed[i]++;
    pair->last |= (uint32_t)last << i;
}

void ft_pair_links_flow(struct ft_pair_links *l, const struct ft_join *join,
                        const struct ft_flow *flow)
{
    struct ft_rank_pair found[FT_RANKS_CANDIDATES_MAX];
    bool more, fresh;
    size_t n = ft_flow_ranks(join, flow, found, &more);

    for (size_t i = 0; i < n; i++) {
        const struct pair_key key = key_of(found[i].comm_id, found[i].src, found[i].dst);
        struct pair *pair = ft_table_insert(l->tables[l->filling], &key, &fresh);

        if (!pair)
            continue;
        if (fresh) {
            pair->tuple = flow->tuple;
            pair->qp = ft_flow_src_qp(flow);
        }
        pair->flows++;
        pair->shared |= n > 1 || more;
        if (pair->shared || flow->state != FT_PATH_RESOLVED)
            pair->unsure = true;
        for (uint32_t h = 0; !pair->unsure && h < flow->path.hop_count; h++)
            add_port(pair, flow->path.hops[h].out, h + 1 == flow->path.hop_count);
    }
}

/* A link's load, with what sampling leaves open of it. */
struct weight {
    double load, variance;
    uint32_t elephants;
};

static bool above(const struct weight *a, const struct weight *b)
{
    return a->load - b->load > 1.96 * sqrt(a->variance + b->variance) + 1e-9 * b->load;
}

/* Clearly more load, or, where that is equal, a collision and more flows in it. */
static bool beats(const struct weight *a, const struct weight *b)
{
    return above(a, b) || (!above(b, a) && a->elephants > 1 && a->elephants > b->elephants);
}

static void decide(struct pair *pair, const struct ft_pair_loads *loads,
                   const struct ft_topology *t)
{
    struct weight weights[PORTS_MAX];
    uint64_t flows[PORTS_MAX];
    bool speeds = true;
    uint32_t best = FT_NONE;

    for (uint32_t i = 0; i < pair->count; i++)
        speeds &= ft_topology_port(t, pair->ports[i])->speed_bps != 0;
    for (uint32_t i = 0; i < pair->count; i++) {
        const struct ft_pair_load load = loads->of(loads->arg, pair->ports[i]);
        double speed = speeds ? (double)ft_topology_port(t, pair->ports[i])->speed_bps : 1;

        weights[i] = (struct weight){.load = load.bytes / speed,
                                     .variance = load.variance / speed / speed,
                                     .elephants = load.elephants};
        flows[i] = (uint64_t)(load.flows + 0.5);
    }
    for (uint32_t i = 0; i < pair->count && best == FT_NONE; i++) {
        best = i;
        for (uint32_t k = 0; k < pair->count && best != FT_NONE; k++)
            if (k != i && !beats(&weights[i], &weights[k]))
                best = FT_NONE;
    }
    if (best != FT_NONE) {
        const struct ft_port *port = ft_topology_port(t, pair->ports[best]);

        snprintf(pair->link.switch_name, sizeof(pair->link.switch_name), "%s",
                 ft_topology_switch(t, port->switch_id)->name);
        snprintf(pair->link.port, sizeof(pair->link.port), "%s", port->name);
        pair->link.flows = flows[best];
        pair->named = true;
    }
}

void ft_pair_links_end(struct ft_pair_links *l, const struct ft_pair_loads *loads,
                       const struct ft_topology *t)
{
    struct pair *pair;
    uint32_t index = 0;

    while ((pair = ft_table_next(l->tables[l->filling], &index)))
        if (!pair->unsure)
            decide(pair, loads, t);
    l->filling = !l->filling;
}

const struct ft_pair_link *ft_pair_links_find(const struct ft_pair_links *l, const char *comm_id,
                                              uint32_t src, uint32_t dst)
{
    const struct pair_key key = key_of(comm_id, src, dst);
    const struct pair *pair = ft_table_find(l->tables[!l->filling], &key);

    return pair && pair->named ? &pair->link : NULL;
}

bool ft_pair_links_path(const struct ft_pair_links *l, const char *comm_id, uint32_t src,
                        uint32_t dst, struct ft_pair_path *path)
{
    const struct pair_key key = key_of(comm_id, src, dst);
    const struct pair *pair = ft_table_find(l->tables[!l->filling], &key);

    if (!pair || pair->count == 0)
        return false;
    *path = (struct ft_pair_path){.ports = pair->ports,
                                  .count = pair->count,
                                  .last = pair->last,
                                  .partly = partly_of(pair),
                                  .unsure = pair->unsure,
                                  .tuple = pair->tuple,
                                  .qp = pair->qp};
    return true;
}

bool ft_pair_links_tuple(const struct ft_pair_links *l, const char *comm_id, uint32_t src,
                         uint32_t dst, struct ft_tuple *tuple)
{
    const struct pair_key key = key_of(comm_id, src, dst);
    const struct pair *pair = ft_table_find(l->tables[!l->filling], &key);

    if (!pair || pair->shared)
        return false;
    *tuple = pair->tuple;
    return true;
}

void ft_pair_links_forget_ports(struct ft_pair_links *l)
{
    struct pair *pair;
    uint32_t index = 0;

    while ((pair = ft_table_next(l->tables[!l->filling], &index)))
        pair->count = 0;
}

uint64_t ft_pair_links_refused(const struct ft_pair_links *l)
{
    return ft_table_refused(l->tables[0]) + ft_table_refused(l->tables[1]);
}
