// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/lost.h"

#include <stdbool.h>
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
    for (size_t i = 0; lost && i < m->pair_count; i++) {
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
    if (lost)
        sum_up(m, lost);
    return lost;
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

static int by_end(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The ends of a process in order. How many. */
static size_t order_ends(const struct ft_matched *m, size_t process, uint64_t *ends)
{
    size_t n = 0;
    bool ordered = true;

    for (size_t i = m->first[process]; i < m->first[process + 1]; i++) {
        if (m->op[i].end_ns == FT_OPERATIONS_NEVER)
            continue;
        ordered = ordered && (n == 0 || ends[n - 1] <= m->op[i].end_ns);
        ends[n++] = m->op[i].end_ns;
    }
    ft_task_spend(m->task, 1 + n / 16);
    if (!ordered)
        ft_task_sort(m->task, ends, n, sizeof(*ends), by_end);
    return n;
}

/* Of the rows from i on that start at once: how many end at once, too. Their ends are not before
 * their starts. */
static size_t at_once(const struct ft_matched *m, size_t i, size_t end)
{
    uint64_t start = m->op[i].start_ns;
    size_t n = 0;

    for (; i < end && m->op[i].start_ns == start; i++)
        n += m->op[i].end_ns == start;
    return n;
}

uint64_t *ft_gaps_new(const struct ft_matched *m)
{
    uint64_t *gaps = calloc(m->op_count + 1, sizeof(*gaps));
    uint64_t *ends = calloc(m->op_count + 1, sizeof(*ends));

    for (size_t p = 0; gaps && ends && p < m->process_count; p++) {
        size_t count = order_ends(m, p, ends), ended = 0;
        uint64_t sum = 0;

        for (size_t i = m->first[p]; i < m->first[p + 1]; i++) {
            uint64_t start = m->op[i].start_ns, from;
            bool first = i == m->first[p];
            size_t own;

            while (ended < count && ends[ended] <= start)
                ended++;
            /* After another that starts at once nothing has passed. */
            own = first || m->op[i - 1].start_ns < start ? at_once(m, i, m->first[p + 1]) : ended;
            if (ended > own) {
                from = ends[ended - own - 1];
                if (!first && from < m->op[i - 1].start_ns)
                    from = m->op[i - 1].start_ns;
                sum += start - from;
            }
            gaps[i] = sum;
        }
    }
    free(ends);
    if (ends)
        return gaps;
    free(gaps);
    return NULL;
}
