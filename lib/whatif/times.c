// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/whatif/times.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/bound.h"
#include "lib/base/task.h"
#include "lib/sim/fluid.h"
#include "lib/sim/loads.h"

/* Rounds of one collective that are played; more of them are joined, as they are all alike. */
#define ROUNDS_MAX 8
/* What other flows leave of a link at least. */
#define LEAST_LEFT 0.05

static int compare_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* By communicator, operation, number, rank, and of a transfer its peer. */
static int compare_operations(const Fabrictrace__Collective *x, const Fabrictrace__Collective *y)
{
    int order = compare_text(x->comm_id, y->comm_id);

    if (order == 0)
        order = compare_text(x->op, y->op);
    if (order == 0)
        order = compare_numbers(x->sequence, y->sequence);
    if (order == 0)
        order = compare_numbers(x->rank, y->rank);
    return order ? order : compare_numbers(x->peer, y->peer);
}

/* Of those that are alike the newest is the last. */
static int compare_records(const void *a, const void *b)
{
    const Fabrictrace__Collective *x = *(Fabrictrace__Collective *const *)a;
    const Fabrictrace__Collective *y = *(Fabrictrace__Collective *const *)b;
    int order = compare_operations(x, y);

    return order ? order : compare_numbers(x->time_ms, y->time_ms);
}

/* Transfers have no number of their own, and those of a CUDA graph the same each time: of all that
 * a rank did so, the newest counts. */
static uint32_t keep_newest(Fabrictrace__Collective **records, uint32_t count)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++)
        if (i + 1 == count || compare_operations(records[i], records[i + 1]) != 0)
            records[kept++] = records[i];
    return kept;
}

static int compare_starts(const void *a, const void *b)
{
    const struct ft_played *x = a, *y = b;

    if (x->start_ms != y->start_ms)
        return x->start_ms < y->start_ms ? -1 : 1;
    return compare_records(&x->record, &y->record);
}

/* Flows that are certain to be of two ranks, in their order. */
struct ranked {
    const char *comm_id;
    uint32_t src, dst, flow;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    int order = strcmp(x->comm_id, y->comm_id);

    if (order)
        return order;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    if (x->dst != y->dst)
        return x->dst < y->dst ? -1 : 1;
    return (x->flow > y->flow) - (x->flow < y->flow);
}

/* What is read from while collectives are made. */
struct making {
    const struct ft_captured *c;
    Fabrictrace__Collective **records;
    uint32_t record_count;
    struct ranked *ranked;
    uint32_t ranked_count;
    struct ft_times *t;
};

static int list_inputs(struct making *m)
{
    const struct ft_captured *c = m->c;

    m->records = calloc((size_t)c->record_count + 1, sizeof(Fabrictrace__Collective *));
    m->ranked = calloc((size_t)c->inputs.flows.count + 1, sizeof(*m->ranked));
    m->t->edge_flows = calloc((size_t)c->inputs.flows.count + 1, sizeof(*m->t->edge_flows));
    m->t->used = calloc((size_t)c->inputs.flows.count + 1, sizeof(*m->t->used));
    if (!m->records || !m->ranked || !m->t->edge_flows || !m->t->used)
        return -ENOMEM;
    for (uint32_t i = 0; i < c->record_count; i++) {
        Fabrictrace__Collective *r = c->records[i]->collective;

        if (c->records[i]->kind_case == FABRICTRACE__RECORD__KIND_COLLECTIVE && r->op &&
            r->has_start_ms && r->has_time_ms && r->time_ms >= r->start_ms &&
            !(r->has_incomplete && r->incomplete))
            m->records[m->record_count++] = r;
    }
    for (uint32_t i = 0; i < c->inputs.flows.count; i++) {
        const Fabrictrace__Path *p = c->flows[i].record;

        if (p->comm_id && p->has_src_rank && p->has_dst_rank)
            m->ranked[m->ranked_count++] = (struct ranked){p->comm_id, p->src_rank, p->dst_rank, i};
    }
    ft_task_sort(c->task, m->records, m->record_count, sizeof(*m->records), compare_records);
    m->record_count = keep_newest(m->records, m->record_count);
    ft_task_sort(c->task, m->ranked, m->ranked_count, sizeof(*m->ranked), compare_ranked);
    for (uint32_t i = 0; i < m->ranked_count; i++)
        m->t->edge_flows[i] = m->ranked[i].flow;
    return 0;
}

static uint32_t first_ranked(const struct making *m, const struct ranked *key)
{
    return (uint32_t)ft_lower_bound(key, m->ranked, m->ranked_count, sizeof(*key), compare_ranked);
}

/* Finds the flows of an edge, and says that they are in use. */
static void find_flows(const struct making *m, const char *comm_id, struct ft_edge_bytes *e)
{
    struct ranked from = {comm_id, e->src, e->dst, 0}, to = {comm_id, e->src, e->dst, UINT32_MAX};

    e->first_flow = first_ranked(m, &from);
    e->flow_count = first_ranked(m, &to) - e->first_flow;
    for (uint32_t i = 0; i < e->flow_count; i++)
        m->t->used[m->t->edge_flows[e->first_flow + i]] = true;
}

static uint32_t rounds_of(const Fabrictrace__Collective *r)
{
    if (!r->algo || strcmp(r->algo, "RING") != 0 || !r->has_ranks || r->ranks < 2)
        return 1;
    if (strcmp(r->op, "AllReduce") == 0)
        return 2 * (r->ranks - 1);
    if (strcmp(r->op, "AllGather") == 0 || strcmp(r->op, "ReduceScatter") == 0)
        return r->ranks - 1;
    return 1;
}

/* What a rank sent each peer, over all channels. */
static void add_edges(struct ft_played *to, const Fabrictrace__Collective *r)
{
    uint32_t first = to->edge_count;

    for (size_t i = 0; i < r->n_peers; i++) {
        const Fabrictrace__PeerTraffic *p = r->peers[i];
        uint32_t k = first;

        if (!p->has_peer || !p->has_sent_bytes || p->sent_bytes == 0 || p->peer == r->rank)
            continue;
        while (k < to->edge_count && to->edges[k].dst != p->peer)
            k++;
        if (k == to->edge_count)
            to->edges[to->edge_count++] = (struct ft_edge_bytes){.src = r->rank, .dst = p->peer};
        to->edges[k].bytes += (double)p->sent_bytes;
    }
}

/* One of the ranks' records of one operation. */
static int make(struct making *m, uint32_t from, uint32_t count, struct ft_played *to)
{
    size_t peers = 0;

    for (uint32_t i = 0; i < count; i++)
        peers += m->records[from + i]->n_peers;
    *to = (struct ft_played){.record = m->records[from],
                             .start_ms = UINT64_MAX,
                             .ranks_seen = count,
                             .rounds = rounds_of(m->records[from]),
                             .edges = calloc(peers + 1, sizeof(*to->edges))};
    if (!to->edges)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        const Fabrictrace__Collective *r = m->records[from + i];

        to->start_ms = r->start_ms < to->start_ms ? r->start_ms : to->start_ms;
        to->end_ms = r->time_ms > to->end_ms ? r->time_ms : to->end_ms;
        if (r->has_duration_us && r->duration_us > to->measured_us)
            to->measured_us = r->duration_us;
        add_edges(to, r);
        ft_task_spend(m->c->task, 1 + r->n_peers);
    }
    for (uint32_t i = 0; i < to->edge_count; i++) {
        find_flows(m, to->record->comm_id, &to->edges[i]);
        to->edges_without += to->edges[i].flow_count == 0;
    }
    return 0;
}

static bool is_same(const Fabrictrace__Collective *a, const Fabrictrace__Collective *b, bool number)
{
    return compare_text(a->comm_id, b->comm_id) == 0 && compare_text(a->op, b->op) == 0 &&
           (!number || a->sequence == b->sequence);
}

/* Of each communicator and operation the one that the most ranks reported, of several the newest.
 * What ended long before the window is of no step that its flows belong to. */
static int make_all(struct making *m)
{
    const struct ft_captured *c = m->c;
    uint64_t window = c->window_end_ms - c->window_start_ms;

    m->t->items = calloc((size_t)m->record_count + 1, sizeof(*m->t->items));
    if (!m->t->items)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->record_count;) {
        uint32_t end = i, best = i, most = 0;

        while (end < m->record_count && is_same(m->records[i], m->records[end], false)) {
            uint32_t n = 1;

            while (end + n < m->record_count && is_same(m->records[end], m->records[end + n], true))
                n++;
            if (n >= most) {
                best = end;
                most = n;
            }
            end += n;
        }
        if (m->records[best]->time_ms + window >= c->window_start_ms) {
            struct ft_played *to = &m->t->items[m->t->count];

            if (make(m, best, most, to))
                return -ENOMEM;
            if (to->edges_without < to->edge_count)
                m->t->count++;
            else
                free(to->edges);
        }
        ft_task_spend(c->task, 1 + (end - i) / 4);
        i = end;
    }
    return 0;
}

/* The order of the collectives of each communicator, and the pauses between them. */
static void order(struct ft_times *t, struct ft_task *task)
{
    uint64_t end = 0;

    qsort(t->items, t->count, sizeof(*t->items), compare_starts);
    for (uint32_t i = 0; i < t->count; i++) {
        struct ft_played *to = &t->items[i];
        uint64_t from = t->items[0].start_ms;

        to->after = FT_FLUID_NEVER;
        for (uint32_t k = i; k-- > 0 && to->after == FT_FLUID_NEVER;)
            if (compare_text(t->items[k].record->comm_id, to->record->comm_id) == 0)
                to->after = k;
        ft_task_spend(task, 1 + i / 32);
        if (to->after != FT_FLUID_NEVER)
            from = t->items[to->after].end_ms;
        to->pause_s = to->start_ms > from ? (double)(to->start_ms - from) / 1000 : 0;
        end = to->end_ms > end ? to->end_ms : end;
    }
    if (t->count)
        t->step_s = (double)(end - t->items[0].start_ms) / 1000;
    if (t->count == 1 && t->items[0].measured_us)
        t->step_s = (double)t->items[0].measured_us / 1e6;
}

int ft_times_init(struct ft_times *t, const struct ft_captured *c)
{
    struct making m = {.c = c, .t = t};
    int rc;

    memset(t, 0, sizeof(*t));
    rc = list_inputs(&m);
    if (rc == 0)
        rc = make_all(&m);
    if (rc == 0)
        order(t, c->task);
    free(m.records);
    free(m.ranked);
    if (rc)
        ft_times_free(t);
    return rc;
}

void ft_times_free(struct ft_times *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        free(t->items[i].edges);
    free(t->items);
    free(t->edge_flows);
    free(t->used);
    memset(t, 0, sizeof(*t));
}

/* What the fluid model plays. */
struct stage {
    struct ft_fluid fluid;
    uint32_t *first, *link, *round;
    double *demand, *bits, *capacity, *end_s, *round_end_s;
    double *part; /* by item of link, of flows that are sprayed; NULL */
    struct ft_fluid_round *rounds;
    uint32_t round_count;
    uint32_t *last_round; /* by collective; its pause is played_rounds() before */
};

static uint32_t played_rounds(const struct ft_played *c)
{
    return c->rounds < ROUNDS_MAX ? c->rounds : ROUNDS_MAX;
}

static void stage_free(struct stage *s)
{
    free(s->first);
    free(s->link);
    free(s->round);
    free(s->demand);
    free(s->part);
    free(s->bits);
    free(s->capacity);
    free(s->end_s);
    free(s->round_end_s);
    free(s->rounds);
    free(s->last_round);
}

static int stage_init(struct stage *s, const struct ft_times *t, const struct ft_policy_input *in,
                      const struct ft_placed *placed)
{
    const uint32_t *first = placed->first;
    size_t flows = 1, rounds = 1;

    for (uint32_t i = 0; i < t->count; i++) {
        const struct ft_played *c = &t->items[i];
        size_t parts = 0;

        for (uint32_t e = 0; e < c->edge_count; e++)
            for (uint32_t k = 0; k < c->edges[e].flow_count; k++) {
                uint32_t flow = t->edge_flows[c->edges[e].first_flow + k];

                parts += first[flow + 1] - first[flow];
            }
        flows += parts * played_rounds(c) + 1;
        rounds += played_rounds(c) + 1;
    }
    s->first = calloc(flows + 1, sizeof(*s->first));
    s->link = calloc(flows * FT_PATH_LINKS_MAX, sizeof(*s->link));
    s->part = placed->sprayed ? calloc(flows * FT_PATH_LINKS_MAX, sizeof(*s->part)) : NULL;
    s->round = calloc(flows, sizeof(*s->round));
    s->demand = calloc(flows, sizeof(*s->demand));
    s->bits = calloc(flows, sizeof(*s->bits));
    s->end_s = calloc(flows, sizeof(*s->end_s));
    s->capacity = calloc((size_t)ft_links_of(in->topology) + 1, sizeof(*s->capacity));
    s->round_end_s = calloc(rounds, sizeof(*s->round_end_s));
    s->rounds = calloc(rounds, sizeof(*s->rounds));
    s->last_round = calloc((size_t)t->count + 1, sizeof(*s->last_round));
    return s->first && s->link && (s->part || !placed->sprayed) && s->round && s->demand &&
                   s->bits && s->end_s && s->capacity && s->round_end_s && s->rounds &&
                   s->last_round
               ? 0
               : -ENOMEM;
}

/* A flow of the round in hand, on count paths from the first on of one of the placed; none: a
 * pause, of so many seconds. */
static void add_flow(struct stage *s, const struct ft_topology *t, const struct ft_placed *placed,
                     uint32_t flow, uint32_t first, uint32_t count, double bits)
{
    struct ft_fluid *f = &s->fluid;
    uint32_t at = s->first[f->flows];

    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = ft_path_links(t, &placed->paths[first + i], s->link + at);

        for (uint32_t k = at; s->part && k < at + n; k++)
            s->part[k] = ft_placed_part(placed, flow, first + i);
        at += n;
    }
    s->demand[f->flows] = count ? INFINITY : 1;
    s->bits[f->flows] = bits;
    s->round[f->flows] = s->round_count;
    s->first[f->flows + 1] = at;
    f->flows++;
}

static void end_round(struct stage *s, uint32_t after)
{
    s->rounds[s->round_count++] = (struct ft_fluid_round){.after = after};
}

static void add_round(struct stage *s, const struct ft_times *t, const struct ft_played *c,
                      const struct ft_policy_input *in, const struct ft_placed *placed)
{
    const uint32_t *first = placed->first;

    for (uint32_t e = 0; e < c->edge_count; e++) {
        const struct ft_edge_bytes *edge = &c->edges[e];

        for (uint32_t k = 0; k < edge->flow_count; k++) {
            uint32_t flow = t->edge_flows[edge->first_flow + k];
            uint32_t parts = first[flow + 1] - first[flow], each = placed->sprayed ? parts : 1;
            double bits = 8 * edge->bytes / played_rounds(c) / edge->flow_count / parts;

            for (uint32_t i = 0; i < parts; i += each)
                add_flow(s, in->topology, placed, flow, first[flow] + i, each, each * bits);
            ft_task_spend(in->task, 1);
        }
    }
    end_round(s, s->round_count - 1);
}

/* What flows of no collective leave of each link. They take their fair rate and not their demand:
 * behind a full link that is all that a NIC can send. */
static void fill_capacity(struct stage *s, const struct ft_times *t,
                          const struct ft_policy_input *in, const struct ft_placed *placed,
                          const double *rate_bps)
{
    const uint32_t *first = placed->first;
    uint32_t links = ft_links_of(in->topology);

    for (uint32_t flow = 0; flow < in->count; flow++) {
        for (uint32_t i = first[flow]; !t->used[flow] && i < first[flow + 1]; i++) {
            uint32_t list[FT_PATH_LINKS_MAX];
            uint32_t n = ft_path_links(in->topology, &placed->paths[i], list);

            for (uint32_t k = 0; k < n; k++)
                s->capacity[list[k]] += rate_bps[i];
        }
    }
    for (uint32_t l = 0; l < links; l++) {
        double speed = (double)ft_link_speed(in->topology, l);

        s->capacity[l] = speed > 0 ? fmax(speed - s->capacity[l], LEAST_LEFT * speed) : INFINITY;
    }
}

int ft_times_play(const struct ft_times *t, const struct ft_policy_input *in,
                  const struct ft_placed *placed, const double *rate_bps, double *times_s,
                  double *step_s)
{
    struct stage s = {0};
    int rc = stage_init(&s, t, in, placed);

    if (rc)
        goto out;
    fill_capacity(&s, t, in, placed, rate_bps);
    for (uint32_t i = 0; i < t->count; i++) {
        const struct ft_played *c = &t->items[i];

        add_flow(&s, in->topology, placed, 0, 0, 0, c->pause_s);
        end_round(&s, c->after == FT_FLUID_NEVER ? FT_FLUID_NEVER : s.last_round[c->after]);
        for (uint32_t r = 0; r < played_rounds(c); r++)
            add_round(&s, t, c, in, placed);
        s.last_round[i] = s.round_count - 1;
    }
    s.fluid.links = ft_links_of(in->topology);
    s.fluid.capacity = s.capacity;
    s.fluid.first = s.first;
    s.fluid.link = s.link;
    s.fluid.demand = s.demand;
    s.fluid.part = s.part;
    s.fluid.task = in->task;
    rc = ft_fluid_play(&s.fluid, s.bits, s.round, s.rounds, s.round_count, s.end_s, s.round_end_s);
    *step_s = 0;
    for (uint32_t i = 0; rc == 0 && i < t->count; i++) {
        uint32_t last = s.last_round[i];

        times_s[i] = s.round_end_s[last] - s.round_end_s[last - played_rounds(&t->items[i])];
        *step_s = fmax(*step_s, s.round_end_s[last]);
    }
out:
    stage_free(&s);
    return rc;
}
