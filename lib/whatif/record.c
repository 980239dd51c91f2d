// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/whatif/record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/sim/loads.h"

static void fill_draws(Fabrictrace__Draws *to, const struct ft_range *from, uint32_t draws,
                       double scale)
{
    fabrictrace__draws__init(to);
    to->has_mean = to->has_min = to->has_max = true;
    to->mean = from->sum / draws * scale;
    to->min = from->min * scale;
    to->max = from->max * scale;
}

/* A layer's message with what it points to. */
struct layer_record {
    Fabrictrace__PolicyLayer layer;
    Fabrictrace__Draws fim, most;
    char name[64];
};

/* A policy's message with what it points to. */
struct policy_record {
    Fabrictrace__Policy m;
    Fabrictrace__PortName port;
    Fabrictrace__Draws most, load, collisions, share, moves;
    struct layer_record layers[FT_LAYERS];
    Fabrictrace__PolicyLayer *list[FT_LAYERS];
};

static void fill_layer(struct policy_record *r, const char *name, uint32_t links,
                       const struct ft_range *fim, const struct ft_range *most, uint32_t draws)
{
    struct layer_record *to = &r->layers[r->m.n_layers];

    fabrictrace__policy_layer__init(&to->layer);
    snprintf(to->name, sizeof(to->name), "%s", name);
    to->layer.name = to->name;
    to->layer.has_links = true;
    to->layer.links = links;
    fill_draws(&to->fim, fim, draws, 1);
    to->layer.fim = &to->fim;
    if (most) {
        fill_draws(&to->most, most, draws, 1);
        to->layer.flows_most = &to->most;
    }
    r->m.layers = r->list;
    r->list[r->m.n_layers++] = &to->layer;
}

static void fill_hottest(struct policy_record *r, const struct ft_topology *t, uint32_t link,
                         double load)
{
    const struct ft_port *p = ft_topology_port(t, link);

    fabrictrace__port_name__init(&r->port);
    r->port.switch_ = (char *)ft_topology_switch(t, p->switch_id)->name;
    r->port.port = (char *)p->name;
    r->m.hottest = &r->port;
    r->m.has_hottest_load = true;
    r->m.hottest_load = load;
}

static void fill_policy(struct policy_record *r, const struct ft_outcome *o,
                        const struct ft_topology *t, const struct ft_flow_list *flows)
{
    fabrictrace__policy__init(&r->m);
    r->m.policy = (char *)ft_whatif_name(o->policy);
    r->m.has_draws = true;
    r->m.draws = o->draws;
    r->m.has_paths = o->paths > 1;
    r->m.paths = o->paths;
    for (uint32_t i = 0; i < FT_LAYERS; i++) {
        const struct ft_layer *from = &o->worst.layers[i];
        char name[64];

        snprintf(name, sizeof(name), "%s/%s", from->tier, from->direction);
        if (from->links)
            fill_layer(r, name, from->links, &o->fim[i], &o->layer_most[i], o->draws);
    }
    fill_draws(&r->most, &o->most, o->draws, 1);
    fill_draws(&r->collisions, &o->collisions, o->draws, 1);
    fill_draws(&r->share, &o->share, o->draws, 1);
    if (o->has_moves) {
        fill_draws(&r->moves, &o->moves, o->draws, 1);
        r->m.moves = &r->moves;
    }
    r->m.flows_most = &r->most;
    r->m.collisions = &r->collisions;
    r->m.slowest_share = &r->share;
    if (o->worst.hottest != FT_NONE) {
        fill_draws(&r->load, &o->load, o->draws, 1);
        r->m.load_most = &r->load;
        fill_hottest(r, t, o->worst.hottest, o->worst.hottest_load);
    }
    if (o->worst.slowest != FT_NONE) {
        r->m.slowest_src = (char *)flows->names[o->worst.slowest].src;
        r->m.slowest_dst = (char *)flows->names[o->worst.slowest].dst;
        r->m.has_slowest_rate_bps = true;
        r->m.slowest_rate_bps = (uint64_t)llround(o->worst.slowest_bps);
    }
}

void ft_whatif_emit_policy(const struct ft_whatif_out *out, const struct ft_outcome *o,
                           const struct ft_inputs *inputs)
{
    struct policy_record r;

    fill_policy(&r, o, inputs->topology, &inputs->flows);
    out->record(out->arg, "fabrictrace.policy.v1", &r.m.base);
}

static const Fabrictrace__Imbalance *imbalance_of(const struct ft_captured *c, uint32_t i)
{
    const Fabrictrace__Imbalance *m = c->records[i]->imbalance;

    return c->records[i]->kind_case == FABRICTRACE__RECORD__KIND_IMBALANCE &&
                   m->window_end_ms == c->window_end_ms && m->has_scope &&
                   m->scope == FABRICTRACE__SCOPE__SCOPE_LAYER && m->has_fim
               ? m
               : NULL;
}

void ft_whatif_measured(const struct ft_captured *c, struct ft_whatif_measured *m)
{
    const struct ft_topology *t = c->inputs.topology;

    *m = (struct ft_whatif_measured){.fim = {-1, -1}, .hottest = FT_NONE};
    for (uint32_t i = 0; i < c->record_count; i++) {
        const Fabrictrace__Imbalance *from = imbalance_of(c, i);

        if (from && strcmp(from->name, "leaf/up") == 0)
            m->fim[0] = from->fim;
        if (from && strcmp(from->name, "leaf/down") == 0)
            m->fim[1] = from->fim;
    }
    for (uint32_t l = 0; l < ft_topology_ports(t); l++) {
        double speed = (double)ft_link_speed(t, l);

        if (ft_topology_port(t, l)->peer == FT_NONE || speed <= 0 ||
            c->link_bps[l] / speed <= m->hottest_load)
            continue;
        m->hottest = l;
        m->hottest_load = c->link_bps[l] / speed;
    }
}

static void fill_measured(struct policy_record *r, const struct ft_captured *c)
{
    struct ft_whatif_measured measured;

    fabrictrace__policy__init(&r->m);
    r->m.policy = (char *)"measured";
    for (uint32_t i = 0; i < c->record_count; i++) {
        const Fabrictrace__Imbalance *from = imbalance_of(c, i);
        struct ft_range fim;

        if (!from || r->m.n_layers == FT_LAYERS)
            continue;
        fim = (struct ft_range){from->fim, from->fim, from->fim};
        fill_layer(r, from->name, from->links, &fim, NULL, 1);
    }
    ft_whatif_measured(c, &measured);
    if (measured.hottest != FT_NONE)
        fill_hottest(r, c->inputs.topology, measured.hottest, measured.hottest_load);
}

struct time_record {
    Fabrictrace__WhatIfTime m;
    Fabrictrace__Draws time;
};

static void fill_time(struct time_record *r, const struct ft_played *from,
                      const struct ft_range *time_s, uint32_t draws)
{
    fabrictrace__what_if_time__init(&r->m);
    r->m.comm_id = from->record->comm_id;
    r->m.op = from->record->op;
    r->m.has_sequence = from->record->has_sequence;
    r->m.sequence = from->record->sequence;
    r->m.has_ranks_seen = r->m.has_edges = r->m.has_edges_without = true;
    r->m.ranks_seen = from->ranks_seen;
    r->m.has_measured_us = from->measured_us > 0;
    r->m.measured_us = from->measured_us;
    r->m.edges = from->edge_count;
    r->m.edges_without = from->edges_without;
    if (time_s) {
        fill_draws(&r->time, time_s, draws, 1e6);
        r->m.time_us = &r->time;
    }
}

/* rows and list have room for all collectives. */
static void fill_times(Fabrictrace__WhatIf *m, const struct ft_outcome *o,
                       const struct ft_times *times, struct time_record *rows,
                       Fabrictrace__WhatIfTime **list, Fabrictrace__Draws *step)
{
    for (uint32_t i = 0; i < times->count; i++) {
        fill_time(&rows[i], &times->items[i], o ? &o->times_s[i] : NULL, o ? o->draws : 0);
        list[i] = &rows[i].m;
    }
    m->times = list;
    m->n_times = times->count;
    m->has_step_measured_us = times->step_s > 0;
    m->step_measured_us = (uint64_t)llround(times->step_s * 1e6);
    if (o) {
        fill_draws(step, &o->step_s, o->draws, 1e6);
        m->step_us = step;
    }
}

/* Flows that move, with what their messages point to. */
struct moved_record {
    Fabrictrace__MovedFlow m;
    Fabrictrace__Hop hops[2][FT_PATH_HOPS_MAX];
    Fabrictrace__Hop *list[2][FT_PATH_HOPS_MAX];
};

size_t ft_whatif_hops(const struct ft_topology *t, const struct ft_path *path,
                      Fabrictrace__Hop *hops, Fabrictrace__Hop **list)
{
    for (uint32_t i = 0; i < path->hop_count; i++) {
        const struct ft_port *out = ft_topology_port(t, path->hops[i].out);

        fabrictrace__hop__init(&hops[i]);
        hops[i].switch_ = (char *)ft_topology_switch(t, out->switch_id)->name;
        hops[i].in = (char *)ft_topology_port(t, path->hops[i].in)->name;
        hops[i].out = (char *)out->name;
        list[i] = &hops[i];
    }
    return path->hop_count;
}

static char *host_of(const struct ft_topology *t, uint32_t nic)
{
    return (char *)ft_topology_host(t, ft_topology_nic(t, nic)->host_id)->name;
}

/* rows and list have room for all of them. */
static void fill_moved(Fabrictrace__WhatIf *m, const struct ft_outcome *o,
                       const struct ft_captured *c, struct moved_record *rows,
                       Fabrictrace__MovedFlow **list)
{
    const struct ft_topology *t = c->inputs.topology;

    for (uint32_t i = 0; i < o->moved_count; i++) {
        const struct ft_whatif_moved *from = &o->moved[i];
        const struct ft_demand *d = &c->inputs.flows.demands[from->flow];
        struct moved_record *r = &rows[i];

        fabrictrace__moved_flow__init(&r->m);
        r->m.flow = c->flows[from->flow].record->flow;
        r->m.src_host = host_of(t, d->src_nic);
        r->m.dst_host = host_of(t, d->dst_nic);
        r->m.n_hops_before = ft_whatif_hops(t, &c->paths[from->flow], r->hops[0], r->list[0]);
        r->m.hops_before = r->list[0];
        r->m.n_hops = ft_whatif_hops(t, &from->path, r->hops[1], r->list[1]);
        r->m.hops = r->list[1];
        list[i] = &r->m;
    }
    m->moved = list;
    m->n_moved = o->moved_count;
}

static void fill_whatif(Fabrictrace__WhatIf *m, const struct ft_captured *c)
{
    m->fabric = (char *)ft_topology_fabric(c->inputs.topology);
    m->has_window_start_ms = m->has_window_end_ms = m->has_flows = true;
    m->window_start_ms = c->window_start_ms;
    m->window_end_ms = c->window_end_ms;
    m->flows = c->inputs.flows.count;
    m->has_unresolved = m->has_sprayed = m->has_strangers = m->has_small = true;
    m->unresolved = c->left_out[FT_LEFT_UNRESOLVED];
    m->sprayed = c->left_out[FT_LEFT_SPRAYED];
    m->strangers = c->left_out[FT_LEFT_HOST];
    m->small = c->left_out[FT_LEFT_SMALL];
    m->has_source_routed = c->left_out[FT_LEFT_ROUTED] > 0;
    m->source_routed = c->left_out[FT_LEFT_ROUTED];
    m->has_beyond = c->left_out[FT_LEFT_BEYOND] > 0;
    m->beyond = c->left_out[FT_LEFT_BEYOND];
}

int ft_whatif_emit_captured(const struct ft_whatif_out *out, const struct ft_outcome *o,
                            const struct ft_captured *c, const struct ft_topology *t,
                            const struct ft_times *times, const struct ft_model_error *error)
{
    Fabrictrace__WhatIf m = FABRICTRACE__WHAT_IF__INIT;
    struct policy_record policy;
    struct ft_error_record errors;
    Fabrictrace__Draws step;
    size_t most = times ? times->count + 1 : 1;
    struct time_record *rows = calloc(most, sizeof(*rows));
    Fabrictrace__WhatIfTime **list = calloc(most, sizeof(Fabrictrace__WhatIfTime *));
    uint32_t moved = o ? o->moved_count : 0;
    struct moved_record *moves = calloc((size_t)moved + 1, sizeof(*moves));
    Fabrictrace__MovedFlow **move_list =
        calloc((size_t)moved + 1, sizeof(Fabrictrace__MovedFlow *));
    int rc = rows && list && moves && move_list ? 0 : -ENOMEM;

    if (rc == 0) {
        fill_whatif(&m, c);
        if (o)
            fill_policy(&policy, o, t, &c->inputs.flows);
        if (o && o->policy == FT_WHATIF_LEARNT) {
            m.has_guessed = true;
            m.guessed = o->guessed;
        }
        if (!o)
            fill_measured(&policy, c);
        m.figures = &policy.m;
        if (moved)
            fill_moved(&m, o, c, moves, move_list);
        if (times)
            fill_times(&m, o, times, rows, list, &step);
        ft_model_error_fill(&errors, error, c->inputs.topology);
        m.error = &errors.m;
        out->record(out->arg, "fabrictrace.whatif.v1", &m.base);
    }
    free(rows);
    free(list);
    free(moves);
    free(move_list);
    return rc;
}
