// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/ahead.h"

#include "lib/base/task.h"

#define MOST 0.5  /* of the operations that follow another: they are queued as a rule */
#define SOME 0.01 /* of them: starts are calls */
#define IDLE 0.02 /* of the time of all ranks: in no operation */

struct tally {
    size_t queued, all;
};

/* The group before this one in its communicator, if all of its ranks were in both; NULL. */
static const struct ft_gathering *before(const struct ft_matched *m, size_t group)
{
    const struct ft_gathering *g = &m->groups[group];
    size_t size = ft_matched_size(m, g->comm);

    if (group == m->comm_groups[g->comm] || g->count != size || g[-1].count != size)
        return NULL;
    return &g[-1];
}

static void count_one(struct tally *t, const struct ft_operation *earlier,
                      const struct ft_operation *later)
{
    if (earlier->end_ns == FT_OPERATIONS_NEVER || later->start_ns < earlier->start_ns)
        return;
    t->all++;
    t->queued += later->start_ns < earlier->end_ns;
}

static void count_groups(const struct ft_matched *m, struct tally *t)
{
    for (size_t g = 0; g < m->group_count; g++) {
        const struct ft_gathering *now = &m->groups[g], *last = before(m, g);

        if (!last)
            continue;
        ft_task_spend(m->task, 1 + now->count / 4);
        for (size_t i = 0; i < now->count; i++)
            count_one(t, &m->op[m->order[last->first + i]], &m->op[m->order[now->first + i]]);
    }
}

static void count_side(const struct ft_matched *m, struct tally *t, uint32_t earlier,
                       uint32_t later)
{
    if (earlier != FT_OPERATIONS_NONE && later != FT_OPERATIONS_NONE)
        count_one(t, &m->op[earlier], &m->op[later]);
}

static void count_pairs(const struct ft_matched *m, struct tally *t)
{
    for (size_t i = 1; i < m->pair_count; i++) {
        const struct ft_pair *now = &m->pairs[i], *last = &m->pairs[i - 1];

        if (i % 8 == 0)
            ft_task_spend(m->task, 1);
        if (now->comm != last->comm || now->from != last->from || now->to != last->to)
            continue;
        count_side(m, t, last->send, now->send);
        count_side(m, t, last->recv, now->recv);
    }
}

/* The share of the time of all ranks in which they were in no operation. */
static double own_share(const struct ft_matched *m)
{
    double own = 0, all = 0;

    for (uint32_t p = 0; p < m->process_count; p++) {
        size_t first = m->first[p], end = m->first[p + 1];

        ft_task_spend(m->task, 1);
        if (end == first)
            continue;
        own += (double)m->own_ns[end - 1];
        all += (double)(m->op[end - 1].start_ns - m->op[first].start_ns);
    }
    return all > 0 ? own / all : 1;
}

bool ft_starts_are_calls(const struct ft_matched *m)
{
    struct tally t = {0};

    count_groups(m, &t);
    count_pairs(m, &t);
    return (double)t.queued > SOME * (double)t.all;
}

bool ft_called_ahead(const struct ft_matched *m)
{
    struct tally t = {0};

    count_groups(m, &t);
    count_pairs(m, &t);
    return (double)t.queued > MOST * (double)t.all ||
           ((double)t.queued > SOME * (double)t.all && own_share(m) < IDLE);
}

bool ft_work_may_be_inside(const struct ft_matched *m)
{
    return own_share(m) < IDLE;
}

uint64_t ft_ahead_length(const struct ft_matched *m, size_t group, size_t member)
{
    const struct ft_operation *op = &m->op[m->order[m->groups[group].first + member]];
    const struct ft_gathering *last = before(m, group);
    uint64_t start = op->start_ns, end;

    if (last) {
        end = m->op[m->order[last->first + member]].end_ns;
        if (end > start && end < op->end_ns)
            start = end;
    }
    return op->end_ns - start;
}
