// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/order.h"

#include "lib/base/task.h"

/* Ranks that are in two collectives, by which of them they called first. */
struct order {
    size_t count[2];
    uint32_t process[2];
};

/* What a process stands in, if it is a collective; NONE. */
static uint32_t group_of(const struct ft_waits *w, const struct ft_matched *m, uint32_t process)
{
    uint32_t row = w->blocking[process];

    return row == FT_OPERATIONS_NONE ? FT_OPERATIONS_NONE : m->group_of[row];
}

static struct order compare(const struct ft_waits *w, const struct ft_matched *m, uint32_t a,
                            uint32_t b)
{
    const struct ft_gathering *group = &m->groups[a];
    struct order order = {0};

    ft_task_spend(m->task, 1 + group->count);
    for (size_t i = 0; i < group->count; i++) {
        uint32_t mine = m->order[group->first + i], process = m->op[mine].process;
        uint32_t its = ft_matched_row(m, &m->groups[b], process);
        bool later;

        if (its == FT_OPERATIONS_NONE || m->op[mine].end_ns != FT_OPERATIONS_NEVER ||
            m->op[its].end_ns != FT_OPERATIONS_NEVER ||
            (w->blocking[process] != mine && w->blocking[process] != its))
            continue;
        later = w->blocking[process] == its;
        order.process[later] = process;
        order.count[later]++;
    }
    return order;
}

bool ft_order_odd(const struct ft_waits *w, const struct ft_matched *m, uint32_t node,
                  uint32_t *odd, uint32_t *other)
{
    uint32_t last = FT_OPERATIONS_NONE;

    for (size_t i = 0; i < w->node_count; i++)
        node = ft_waits_next(w, node);
    for (size_t i = 0; i < w->node_count; i++, node = ft_waits_next(w, node)) {
        uint32_t group;
        struct order order;

        if (node >= m->process_count)
            continue;
        group = group_of(w, m, node);
        if (group != FT_OPERATIONS_NONE && last != FT_OPERATIONS_NONE && group != last) {
            order = compare(w, m, last, group);
            if ((order.count[0] == 1 && order.count[1] > 0) ||
                (order.count[1] == 1 && order.count[0] > 0)) {
                bool first = order.count[1] == 1;

                *odd = order.process[first];
                *other = order.process[!first];
                return true;
            }
        }
        last = group;
    }
    return false;
}
