// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/fluid.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"

/* Shares that differ by rounding alone are the same. */
#define SLACK 1e-12
/* Of what a flow had to carry: less than this is nothing. */
#define RESIDUE 1e-9

struct key {
    double share;
    uint32_t link;
};

struct filling {
    const struct ft_fluid *f;
    double *left;        /* by link: what is not given away */
    uint32_t *count;     /* by link: flows whose rates still rise */
    double *weight;      /* by link: the parts of these that cross it; NULL: all of each */
    uint32_t *start;     /* by link: users[start[l]] up to users[start[l + 1]] */
    uint32_t *users;     /* flows of a link */
    bool *rising;        /* by flow */
    uint32_t *by_demand; /* flows, the smallest demand first */
    struct key *heap;
    uint32_t heap_count;
    double *rate;
};

static void sift_down(struct filling *w, uint32_t at)
{
    struct key key = w->heap[at];
    uint32_t child;

    while ((child = 2 * at + 1) < w->heap_count) {
        if (child + 1 < w->heap_count && w->heap[child + 1].share < w->heap[child].share)
            child++;
        if (w->heap[child].share >= key.share)
            break;
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = key;
}

static double share_of(const struct filling *w, uint32_t link)
{
    return w->left[link] > 0 ? w->left[link] / (w->weight ? w->weight[link] : w->count[link]) : 0;
}

static void fix(struct filling *w, uint32_t flow, double rate)
{
    ft_task_spend(w->f->task, 1);
    w->rate[flow] = rate;
    w->rising[flow] = false;
    for (uint32_t i = w->f->first[flow]; i < w->f->first[flow + 1]; i++) {
        double part = w->weight ? w->f->part[i] : 1;

        w->left[w->f->link[i]] -= part * rate;
        w->count[w->f->link[i]]--;
        if (w->weight)
            w->weight[w->f->link[i]] -= part;
    }
}

static void fix_link(struct filling *w, uint32_t link)
{
    double share = share_of(w, link);

    for (uint32_t i = w->start[link]; i < w->start[link + 1]; i++)
        if (w->rising[w->users[i]])
            fix(w, w->users[i], share);
}

/* Shares only rise as rates are found, so a key that is too small comes to the top and is
 * corrected.
 */
static void fill(struct filling *w, uint32_t flows)
{
    uint32_t next = 0;

    for (;;) {
        uint32_t link = w->heap_count ? w->heap[0].link : 0, flow;
        double share = INFINITY;

        while (next < flows && !w->rising[w->by_demand[next]])
            next++;
        if (w->heap_count && w->count[link] == 0) {
            w->heap[0] = w->heap[--w->heap_count];
            if (w->heap_count)
                sift_down(w, 0);
            continue;
        }
        if (w->heap_count) {
            share = share_of(w, link);
            if (share > w->heap[0].share * (1 + SLACK)) {
                w->heap[0].share = share;
                sift_down(w, 0);
                continue;
            }
        }
        if (next == flows)
            return;
        flow = w->by_demand[next];
        if (!w->f->demand || w->f->demand[flow] > share)
            flow = FT_FLUID_NEVER;
        if (flow != FT_FLUID_NEVER)
            fix(w, flow, w->f->demand[flow]);
        else if (w->heap_count)
            fix_link(w, link);
        else
            fix(w, w->by_demand[next], INFINITY);
    }
}

struct wish {
    double demand;
    uint32_t flow;
};

static int compare_wishes(const void *a, const void *b)
{
    const struct wish *x = a, *y = b;

    if (x->demand != y->demand)
        return x->demand < y->demand ? -1 : 1;
    return x->flow < y->flow ? -1 : x->flow > y->flow;
}

static int order_by_demand(struct filling *w, const uint32_t *active, uint32_t count)
{
    struct wish *wishes = calloc((size_t)count + 1, sizeof(*wishes));

    if (!wishes)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t flow = active ? active[i] : i;

        wishes[i] = (struct wish){w->f->demand ? w->f->demand[flow] : INFINITY, flow};
        w->rising[flow] = true;
    }
    if (w->f->demand)
        ft_task_sort(w->f->task, wishes, count, sizeof(*wishes), compare_wishes);
    for (uint32_t i = 0; i < count; i++)
        w->by_demand[i] = wishes[i].flow;
    free(wishes);
    return 0;
}

static void list_users(struct filling *w, uint32_t count)
{
    const struct ft_fluid *f = w->f;

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = f->first[w->by_demand[i]]; k < f->first[w->by_demand[i] + 1]; k++)
            w->count[f->link[k]]++;
    for (uint32_t l = 0; l < f->links; l++) {
        w->start[l + 1] = w->start[l] + w->count[l];
        w->left[l] = f->capacity[l];
        w->count[l] = 0;
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = f->first[w->by_demand[i]]; k < f->first[w->by_demand[i] + 1]; k++) {
            uint32_t l = f->link[k];

            w->users[w->start[l] + w->count[l]++] = w->by_demand[i];
            if (w->weight)
                w->weight[l] += f->part[k];
            ft_task_spend(f->task, k == f->first[w->by_demand[i]]);
        }
    for (uint32_t l = 0; l < f->links; l++)
        if (w->count[l])
            w->heap[w->heap_count++] = (struct key){share_of(w, l), l};
    for (uint32_t i = w->heap_count / 2; i-- > 0;)
        sift_down(w, i);
}

int ft_fluid_rates(const struct ft_fluid *f, const uint32_t *active, uint32_t count, double *rate)
{
    struct filling w = {.f = f, .rate = rate};
    size_t links = (size_t)f->links + 2, uses = f->flows ? f->first[f->flows] : 0;
    int rc = -ENOMEM;

    count = active ? count : f->flows;
    w.left = calloc(links, sizeof(*w.left));
    w.count = calloc(links, sizeof(*w.count));
    w.weight = f->part ? calloc(links, sizeof(*w.weight)) : NULL;
    w.start = calloc(links, sizeof(*w.start));
    w.users = calloc(uses + 1, sizeof(*w.users));
    w.rising = calloc((size_t)f->flows + 1, sizeof(*w.rising));
    w.by_demand = calloc((size_t)count + 1, sizeof(*w.by_demand));
    w.heap = calloc(links, sizeof(*w.heap));
    if (w.left && w.count && (w.weight || !f->part) && w.start && w.users && w.rising &&
        w.by_demand && w.heap)
        rc = order_by_demand(&w, active, count);
    if (rc == 0) {
        list_users(&w, count);
        fill(&w, count);
    }
    free(w.left);
    free(w.count);
    free(w.weight);
    free(w.start);
    free(w.users);
    free(w.rising);
    free(w.by_demand);
    free(w.heap);
    return rc;
}

struct play {
    const struct ft_fluid *f;
    const struct ft_fluid_round *rounds;
    const uint32_t *round;
    double *end_s, *round_end_s;
    double *left, *rate;
    uint32_t *open; /* by round: flows that have not ended */
    bool *begun;    /* by round */
    uint32_t *active;
    uint32_t count;
    double now;
};

/* When a round begins, as far as is known. */
static double begin_of(const struct play *p, uint32_t round)
{
    double after =
        p->rounds[round].after == FT_FLUID_NEVER ? 0 : p->round_end_s[p->rounds[round].after];

    return after > p->rounds[round].start_s ? after : p->rounds[round].start_s;
}

static void begin_flows(struct play *p, uint32_t round, const uint32_t *members,
                        const uint32_t *start)
{
    p->begun[round] = true;
    for (uint32_t i = start[round]; i < start[round + 1]; i++) {
        uint32_t flow = members[i];

        if (p->left[flow] > 0) {
            p->active[p->count++] = flow;
        } else {
            p->end_s[flow] = p->now;
            p->open[round]--;
        }
    }
    if (p->open[round] == 0)
        p->round_end_s[round] = p->now;
}

/* Begins what begins now; returns when the next does. Rounds come after earlier ones, so one look
 * at each is enough. */
static double begin_rounds(struct play *p, uint32_t rounds, const uint32_t *members,
                           const uint32_t *start)
{
    double next = INFINITY;

    for (uint32_t r = 0; r < rounds; r++) {
        double begin;

        if (p->begun[r])
            continue;
        begin = begin_of(p, r);
        if (begin <= p->now)
            begin_flows(p, r, members, start);
        else if (begin < next)
            next = begin;
    }
    return next;
}

/* Up to the next end of a flow, or the moment given. false: nothing moves any more. */
static bool advance(struct play *p, double until, const double *bits)
{
    double step = until - p->now;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        double need = p->left[p->active[i]] / p->rate[p->active[i]];

        if (p->rate[p->active[i]] > 0 && need < step)
            step = need;
    }
    if (isinf(step))
        return false;
    p->now += step;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t flow = p->active[i], round = p->round[flow];

        p->left[flow] -= isinf(p->rate[flow]) ? p->left[flow] : p->rate[flow] * step;
        if (p->left[flow] > RESIDUE * bits[flow]) {
            p->active[kept++] = flow;
            continue;
        }
        p->end_s[flow] = p->now;
        if (--p->open[round] == 0)
            p->round_end_s[round] = p->now;
    }
    ft_task_spend(p->f->task, 1 + p->count / 16);
    p->count = kept;
    return true;
}

static int play(struct play *p, uint32_t rounds, const double *bits, const uint32_t *members,
                const uint32_t *start)
{
    for (;;) {
        double next = begin_rounds(p, rounds, members, start);
        int rc;

        if (p->count == 0 && isinf(next))
            return 0;
        rc = ft_fluid_rates(p->f, p->active, p->count, p->rate);
        if (rc)
            return rc;
        if (!advance(p, next, bits))
            return 0;
    }
}

/* Flows by their round. */
static void list_members(const struct ft_fluid *f, const uint32_t *round, uint32_t rounds,
                         uint32_t *members, uint32_t *start, uint32_t *open)
{
    for (uint32_t i = 0; i < f->flows; i++)
        open[round[i]]++;
    for (uint32_t r = 0; r < rounds; r++) {
        start[r + 1] = start[r] + open[r];
        open[r] = 0;
    }
    for (uint32_t i = 0; i < f->flows; i++)
        members[start[round[i]] + open[round[i]]++] = i;
}

int ft_fluid_play(const struct ft_fluid *f, const double *bits, const uint32_t *round,
                  const struct ft_fluid_round *rounds, uint32_t round_count, double *end_s,
                  double *round_end_s)
{
    struct play p = {
        .f = f, .rounds = rounds, .round = round, .end_s = end_s, .round_end_s = round_end_s};
    size_t flows = (size_t)f->flows + 1, count = (size_t)round_count + 2;
    uint32_t *members = calloc(flows, sizeof(*members)), *start = calloc(count, sizeof(*start));
    int rc = -ENOMEM;

    p.left = calloc(flows, sizeof(*p.left));
    p.rate = calloc(flows, sizeof(*p.rate));
    p.active = calloc(flows, sizeof(*p.active));
    p.open = calloc(count, sizeof(*p.open));
    p.begun = calloc(count, sizeof(*p.begun));
    if (members && start && p.left && p.rate && p.active && p.open && p.begun)
        rc = 0;
    for (uint32_t r = 0; rc == 0 && r < round_count; r++) {
        round_end_s[r] = INFINITY;
        if (rounds[r].after != FT_FLUID_NEVER && rounds[r].after >= r)
            rc = -EINVAL;
    }
    for (uint32_t i = 0; rc == 0 && i < f->flows; i++) {
        end_s[i] = INFINITY;
        p.left[i] = bits[i];
        if (round[i] >= round_count)
            rc = -EINVAL;
    }
    if (rc == 0) {
        list_members(f, round, round_count, members, start, p.open);
        rc = play(&p, round_count, bits, members, start);
    }
    free(members);
    free(start);
    free(p.left);
    free(p.rate);
    free(p.active);
    free(p.open);
    free(p.begun);
    return rc;
}
