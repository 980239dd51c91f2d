// SPDX-License-Identifier: Apache-2.0
/* What stands of what was found of pairs. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "daemon/diagnosis/pair_rates_parts.h"
#include "lib/fabric/topology.h"

#define HITS    2
#define HITS_MS 20000
/* What stands is over when its pairs are twice as they were before, or unknown five times; or where
 * so many blocks of a job that sends cannot be judged that its past does not count any more. */
#define MISSES       10
#define MISS_EVEN    5
#define MISS_UNKNOWN 2
#define MISS_BLOCK   1

static void name_link(const struct ft_join *join, uint32_t number, struct ft_pair_rates_found *f)
{
    const struct ft_topology *t = join ? ft_join_topology(join) : NULL;
    const struct ft_port *port;

    if (!t || number >= ft_topology_ports(t))
        return;
    port = ft_topology_port(t, number);
    snprintf(f->switch_name, sizeof(f->switch_name), "%s",
             ft_topology_switch(t, port->switch_id)->name);
    snprintf(f->port, sizeof(f->port), "%s", port->name);
}

/* What a verdict says, with names that stay. */
static void describe(const struct ft_join *join, const struct ft_blame *b,
                     const struct ft_pair_rates_pair *worst, struct ft_pair_rates_found *f)
{
    *f = (struct ft_pair_rates_found){.side = b->side,
                                      .line = b->slow > 1,
                                      .sender_clean = b->sender_clean,
                                      .receiver_clean = b->receiver_clean,
                                      .from = b->from,
                                      .to = b->to,
                                      .slow = b->slow,
                                      .all = b->all,
                                      .ratio = b->ratio,
                                      .tuple = worst->tuple,
                                      .qp = worst->qp};
    memcpy(f->from_host, worst->from_host, sizeof(f->from_host));
    memcpy(f->to_host, worst->to_host, sizeof(f->to_host));
    f->links_clean = !f->line && worst->rate.link_count && b->links_open == 0;
    /* Both ends are as fast with others: it is between them. */
    if (b->link != FT_BLAME_NONE && b->side == FT_SIDE_PAIR && b->sender_clean && b->receiver_clean)
        name_link(join, b->link, f);
}

static bool is_same_found(const struct ft_pair_rates_found *a, const struct ft_pair_rates_found *b)
{
    if (a->side != b->side || a->line != b->line)
        return false;
    if (a->line && a->side == FT_SIDE_SENDER)
        return a->from == b->from;
    if (a->line && a->side == FT_SIDE_RECEIVER)
        return a->to == b->to;
    if (a->line)
        return strcmp(a->switch_name, b->switch_name) == 0 && strcmp(a->port, b->port) == 0;
    return a->from == b->from && a->to == b->to;
}

void ft_pair_rates_end(struct ft_pair_rates_found *f, const struct ft_pair_rates_view *view)
{
    f->over = true;
    if (f->stands)
        view->changed(view->arg, f);
    memset(f, 0, sizeof(*f));
}

/* Found again, or for the first time. */
static void note(const struct ft_pair_rates_found *now, const struct ft_pair_rates_view *view,
                 int64_t span_ms, bool seen[FT_PAIR_RATES_FOUND])
{
    struct ft_pair_rates_found *list = view->job->found, *f = NULL;

    for (size_t i = 0; i < FT_PAIR_RATES_FOUND; i++)
        if (list[i].hits && is_same_found(&list[i], now))
            f = &list[i];
    for (size_t i = 0; i < FT_PAIR_RATES_FOUND && !f; i++)
        if (!list[i].hits)
            f = &list[i];
    if (!f || seen[f - list])
        return;
    seen[f - list] = true;
    if (f->stands) {
        f->misses = 0;
        return;
    }
    {
        uint32_t hits = f->hits;
        int64_t since_ms = hits ? f->since_ms : view->end_ms - span_ms;
        int64_t first_ms = hits ? f->first_ms : view->end_ms;

        *f = *now;
        f->hits = hits + 1;
        f->since_ms = since_ms;
        f->first_ms = first_ms;
    }
    f->stands = f->hits >= HITS && view->end_ms - f->first_ms >= HITS_MS &&
                view->end_ms - f->first_ms >= span_ms / 2;
    if (f->stands)
        view->changed(view->arg, f);
}

/* How far the pairs of what stands, or most of them, speak against it. */
static uint32_t misses_of(const struct ft_pair_rates_found *f, const struct ft_pair_rates_job *job)
{
    size_t even = 0, slow = 0;

    for (const struct ft_pair_rates_pair *q = job->first; q; q = q->next) {
        bool sender = q->rate.from == f->from, receiver = q->rate.to == f->to;
        bool line = f->line && f->side != FT_SIDE_PAIR;

        if (line ? !(f->side == FT_SIDE_SENDER ? sender : receiver) : !(sender && receiver))
            continue;
        even += q->rate.state == FT_PAIR_RATE_EVEN;
        slow += q->rate.state == FT_PAIR_RATE_SLOW || q->rate.state == FT_PAIR_RATE_UNDECIDED;
    }
    return even > slow ? MISS_EVEN : slow ? 0 : MISS_UNKNOWN;
}

void ft_pair_rates_pass_over(const struct ft_pair_rates_view *view,
                             const struct ft_pair_rates_judging *j)
{
    struct ft_pair_rates_found *list = view->job->found;
    bool sends = false;

    for (uint32_t i = 0; i < j->count; i++)
        sends |= j->rates[i]->samples > 0;
    for (size_t i = 0; i < FT_PAIR_RATES_FOUND; i++)
        if (list[i].stands && j->block && sends) {
            list[i].misses += MISS_BLOCK;
            if (list[i].misses >= MISSES)
                ft_pair_rates_end(&list[i], view);
        }
}

void ft_pair_rates_conclude(const struct ft_join *join, const struct ft_pair_rates_view *view,
                            const struct ft_pair_rates_judging *j, uint32_t compared)
{
    const struct ft_blames *blames = &j->blames;
    struct ft_pair_rates_found *list = view->job->found;
    bool seen[FT_PAIR_RATES_FOUND] = {false};

    for (size_t i = 0; i < blames->count; i++) {
        struct ft_pair_rates_found now;

        describe(join, &blames->items[i], j->pairs[blames->items[i].cell], &now);
        now.pairs = compared;
        note(&now, view, j->span_ms, seen);
    }
    for (size_t i = 0; i < FT_PAIR_RATES_FOUND; i++)
        if (list[i].hits && !seen[i]) {
            list[i].misses += j->block ? misses_of(&list[i], view->job) : 0;
            if (!list[i].stands || list[i].misses >= MISSES)
                ft_pair_rates_end(&list[i], view);
        }
}
