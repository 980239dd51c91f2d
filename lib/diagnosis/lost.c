// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/lost.h"

#include <stdlib.h>

#include "lib/base/task.h"

/* Of each row the sum of those of its process before it. */
static void sum_up(const struct ft_matched *m, uint64_t *values)
{
    for (size_t p = 0; p < m->process_count; p++) {
        uint64_t sum = 0;

        ft_task_spend(m->task, 1);
        for (size_t i = m->first[p]; i < m->first[p + 1]; i++) {
            uint64_t here = values[i];

            values[i] = sum;
            sum += here;
        }
    }
}

/* What the longer side of a send and its receive waited for the other. */
static void add_pairs(const struct ft_matched *m, uint64_t *lost)
{
    for (size_t i = 0; i < m->pair_count; i++) {
        const struct ft_pair *pair = &m->pairs[i];
        double send, recv;

        if (i % 8 == 0)
            ft_task_spend(m->task, 1);
        if (pair->send == FT_OPERATIONS_NONE || pair->recv == FT_OPERATIONS_NONE ||
            m->op[pair->send].end_ns == FT_OPERATIONS_NEVER ||
            m->op[pair->recv].end_ns == FT_OPERATIONS_NEVER)
            continue;
        send = (double)(m->op[pair->send].end_ns - m->op[pair->send].start_ns);
        recv = (double)(m->op[pair->recv].end_ns - m->op[pair->recv].start_ns);
        if (send > recv)
            lost[pair->send] = (uint64_t)(send - recv);
        else
            lost[pair->recv] = (uint64_t)(recv - send);
    }
}

uint64_t *ft_lost_new(const struct ft_matched *m)
{
    uint64_t *lost = calloc(m->op_count + 1, sizeof(*lost));

    for (size_t g = 0; lost && g < m->group_count; g++) {
        const struct ft_gathering *group = &m->groups[g];
        uint64_t least = UINT64_MAX;

        ft_task_spend(m->task, 1 + group->count / 4);
        for (size_t i = 0; i < group->count && group->unfinished == 0; i++) {
            const struct ft_operation *op = &m->op[m->order[group->first + i]];

            if (least > op->end_ns - op->start_ns)
                least = op->end_ns - op->start_ns;
        }
        for (size_t i = 0; i < group->count && group->unfinished == 0; i++) {
            uint32_t row = m->order[group->first + i];

            lost[row] = m->op[row].end_ns - m->op[row].start_ns - least;
        }
    }
    if (lost)
        add_pairs(m, lost);
    if (lost)
        sum_up(m, lost);
    return lost;
}

uint64_t *ft_pair_waits_new(const struct ft_matched *m)
{
    uint64_t *waits = calloc(m->op_count + 1, sizeof(*waits));

    if (waits) {
        add_pairs(m, waits);
        sum_up(m, waits);
    }
    return waits;
}

uint64_t *ft_inside_new(const struct ft_matched *m)
{
    uint64_t *inside = calloc(m->op_count + 1, sizeof(*inside));

    for (size_t i = 0; inside && i < m->op_count; i++) {
        if (i % 16 == 0)
            ft_task_spend(m->task, 1);
        if (m->op[i].end_ns != FT_OPERATIONS_NEVER)
            inside[i] = m->op[i].end_ns - m->op[i].start_ns;
    }
    if (inside)
        sum_up(m, inside);
    return inside;
}
