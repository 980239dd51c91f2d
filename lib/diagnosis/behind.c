// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/behind.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/diagnosis/stats.h"

static double length_of(const struct ft_operation *op)
{
    return (double)(op->end_ns - op->start_ns);
}

/* By how much longer a process is in the operations of a communicator than each other member, in
 * each block: how much it waits for that one. */
static void sum_up(const struct ft_matched *m, const struct ft_behind *late, uint32_t comm,
                   uint32_t position, double *waits)
{
    size_t members = ft_matched_size(m, comm), block = 0;

    for (size_t g = m->comm_groups[comm]; g < m->comm_groups[comm + 1]; g++) {
        const struct ft_gathering *group = &m->groups[g];
        const struct ft_operation *mine;

        ft_task_spend(m->task, 1);
        if (group->count != members || group->unfinished)
            continue;
        /* Complete: every member is there, in the members' order. */
        mine = &m->op[m->order[group->first + position]];
        if (mine->start_ns < late->starts[0])
            continue;
        while (block < late->blocks && mine->start_ns >= late->starts[block + 1])
            block++;
        if (block == late->blocks)
            break;
        ft_task_spend(m->task, 1 + members / 8);
        for (size_t i = 0; i < members; i++)
            waits[i * late->blocks + block] +=
                length_of(mine) - length_of(&m->op[m->order[group->first + i]]);
    }
}

static bool waits_in(const struct ft_matched *m, const uint64_t *roles,
                     const struct ft_behind *late, uint32_t comm, uint32_t position, double *waits)
{
    const struct ft_member *member = &m->members[m->comm_members[comm]];
    size_t members = ft_matched_size(m, comm);
    double most = 0;

    memset(waits, 0, members * late->blocks * sizeof(*waits));
    sum_up(m, late, comm, position, waits);
    for (size_t i = 0; i < members; i++) {
        if (i == position || roles[member[i].process] != roles[late->process])
            continue;
        ft_task_spend(m->task, 1 + late->blocks / 8);
        most = fmax(most, ft_median(waits + i * late->blocks, late->blocks));
    }
    return most > FT_BEHIND_MOST * late->late_ns;
}

int ft_behind_another(const struct ft_matched *m, const uint64_t *roles,
                      const struct ft_behind *late)
{
    double *waits = NULL;
    bool behind = false;

    for (uint32_t comm = 0; comm < m->comm_count && !behind; comm++) {
        uint32_t position =
            comm == late->comm ? FT_OPERATIONS_NONE : ft_matched_position(m, comm, late->process);

        ft_task_spend(m->task, 1);
        if (position == FT_OPERATIONS_NONE)
            continue;
        waits = calloc(ft_matched_size(m, comm) * late->blocks + 1, sizeof(*waits));
        if (!waits)
            return -ENOMEM;
        behind = waits_in(m, roles, late, comm, position, waits);
        free(waits);
    }
    return behind;
}
