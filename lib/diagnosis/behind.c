// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/behind.h"

#include "lib/base/task.h"

#define MOST 0.5 /* of what a process is late by */

static bool is_in(const struct ft_matched *m, uint32_t comm, uint32_t process)
{
    return ft_matched_position(m, comm, process) != FT_OPERATIONS_NONE;
}

static bool late_in(const struct ft_behind *all, size_t count, uint32_t comm, uint32_t process)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].comm == comm && all[i].process == process)
            return true;
    return false;
}

/* Whether another is later, in a communicator of both in which this one is not late. */
static bool behind_one(const struct ft_matched *m, const struct ft_behind *all, size_t count,
                       const struct ft_behind *late)
{
    for (size_t i = 0; i < count; i++) {
        const struct ft_behind *other = &all[i];

        if (other->process == late->process || other->comm == late->comm ||
            other->excess < late->excess || other->since_ns > late->until_ns ||
            other->until_ns < late->since_ns || !is_in(m, other->comm, late->process))
            continue;
        ft_task_spend(m->task, 1 + count / 64);
        if (!late_in(all, count, other->comm, late->process))
            return true;
    }
    return false;
}

/* How long a process waited for others in the operations of a communicator. */
static double waited_in(const struct ft_matched *m, uint32_t comm, const struct ft_behind *late)
{
    double sum = 0;

    for (size_t g = m->comm_groups[comm]; g < m->comm_groups[comm + 1]; g++) {
        const struct ft_gathering *group = &m->groups[g];
        uint32_t row =
            group->unfinished ? FT_OPERATIONS_NONE : ft_matched_row(m, group, late->process);
        uint64_t least = UINT64_MAX;

        ft_task_spend(m->task, 1);
        if (row == FT_OPERATIONS_NONE || m->op[row].start_ns < late->since_ns ||
            m->op[row].start_ns > late->until_ns)
            continue;
        ft_task_spend(m->task, group->count / 8);
        for (size_t i = 0; i < group->count; i++) {
            const struct ft_operation *op = &m->op[m->order[group->first + i]];

            least = least < op->end_ns - op->start_ns ? least : op->end_ns - op->start_ns;
        }
        sum += (double)(m->op[row].end_ns - m->op[row].start_ns - least);
    }
    return sum;
}

/* Whether it waited for most of what it is late by, in a communicator that it shares with others
 * that are late elsewhere. */
static bool behind_some(const struct ft_matched *m, const struct ft_behind *all, size_t count,
                        const struct ft_behind *late)
{
    for (uint32_t comm = 0; comm < m->comm_count; comm++) {
        bool shared = false;

        ft_task_spend(m->task, 1);
        if (comm == late->comm || !is_in(m, comm, late->process))
            continue;
        ft_task_spend(m->task, 1 + count / 8);
        for (size_t i = 0; i < count && !shared; i++)
            shared = all[i].process != late->process && all[i].comm != late->comm &&
                     all[i].comm != comm && is_in(m, comm, all[i].process);
        if (shared && waited_in(m, comm, late) > MOST * late->late_ns)
            return true;
    }
    return false;
}

bool ft_behind_another(const struct ft_matched *m, const struct ft_behind *all, size_t count,
                       size_t index)
{
    return behind_one(m, all, count, &all[index]) || behind_some(m, all, count, &all[index]);
}
