// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/work_pace.h"

#include <math.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/diagnosis/ahead.h"
#include "lib/diagnosis/stats.h"

#define MANY   16
#define MOSTLY 0.8 /* of the groups; what takes more than PAUSE times as long is a pause */
#define PAUSE  1.3
/* Less than this share of the time in no operation: operations run beside the work. */
#define APART 0.15

static double length_of(const struct ft_operation *op)
{
    return (double)(op->end_ns - op->start_ns);
}

uint32_t ft_work_pace_row(const struct ft_work_pace *p, size_t k, size_t position)
{
    const struct ft_gathering *group = &p->m->groups[p->group[k]];

    /* Complete: every member is there, in the members' order. */
    return p->m->order[group->first + position];
}

/* The time of a member between the groups k - 1 and k, less what is counted of its operations. */
static double rest_of(const struct ft_work_pace *p, size_t k, size_t position,
                      const uint64_t *counted)
{
    uint32_t row = ft_work_pace_row(p, k, position), before = ft_work_pace_row(p, k - 1, position);
    double elapsed = (double)p->m->op[row].start_ns - (double)p->m->op[before].start_ns;

    return elapsed - ((double)counted[row] - (double)counted[before]);
}

/* A member's own time between the groups k - 1 and k. */
static double own_of(const struct ft_work_pace *p, size_t k, size_t position)
{
    if (p->beside)
        return rest_of(p, k, position, p->lost_ns);
    return (double)p->m->own_ns[ft_work_pace_row(p, k, position)] -
           (double)p->m->own_ns[ft_work_pace_row(p, k - 1, position)];
}

static double wall_of(const struct ft_work_pace *p, size_t k)
{
    return (double)p->m->groups[p->group[k]].start_ns -
           (double)p->m->groups[p->group[k - 1]].start_ns;
}

/* Whether operations cover nearly all the time, so that work must run beside them. */
bool ft_work_pace_works_beside(const struct ft_work_pace *p)
{
    double own = 0, wall = 0;

    for (size_t k = 1; k < p->groups; k++) {
        ft_task_spend(p->m->task, 1 + p->members / 16);
        for (size_t i = 0; i < p->members; i++)
            own += own_of(p, k, i) / (double)p->members;
        wall += wall_of(p, k);
    }
    return own < APART * wall;
}

static void add_later(struct ft_work_pace *p, size_t k, size_t block)
{
    double first = (double)p->m->groups[p->group[k]].start_ns, median;

    for (size_t i = 0; i < p->members; i++)
        p->room[i] = (double)p->m->op[ft_work_pace_row(p, k, i)].start_ns - first;
    median = ft_median(p->room, p->members);
    for (size_t i = 0; i < p->members; i++)
        p->later[i * p->blocks + block] +=
            (double)p->m->op[ft_work_pace_row(p, k, i)].start_ns - first - median;
}

static void fill(struct ft_work_pace *p)
{
    for (size_t b = 0; b < p->blocks; b++) {
        for (size_t i = 0; i < p->members; i++)
            p->own[i * p->blocks + b] = p->late[i * p->blocks + b] = p->later[i * p->blocks + b] =
                p->outside[i * p->blocks + b] = p->lost[i * p->blocks + b] = 0;
        p->wall[b] = 0;
        for (size_t k = b * p->period + 1; k <= (b + 1) * p->period; k++) {
            double median;

            ft_task_spend(p->m->task, 1 + p->members / 2);
            for (size_t i = 0; i < p->members; i++)
                p->room[i] = length_of(&p->m->op[ft_work_pace_row(p, k, i)]);
            median = ft_median(p->room, p->members);
            for (size_t i = 0; i < p->members; i++) {
                p->own[i * p->blocks + b] += own_of(p, k, i);
                p->lost[i * p->blocks + b] += (double)p->lost_ns[ft_work_pace_row(p, k, i)] -
                                              (double)p->lost_ns[ft_work_pace_row(p, k - 1, i)];
                if (p->beside)
                    p->outside[i * p->blocks + b] += rest_of(p, k, i, p->inside_ns);
                p->late[i * p->blocks + b] +=
                    median - length_of(&p->m->op[ft_work_pace_row(p, k, i)]);
            }
            add_later(p, k, b);
            p->wall[b] += wall_of(p, k);
        }
    }
}

/* In a block, of the times of members of the same role. */
static double like_median(const struct ft_work_pace *p, const double *times, size_t block,
                          size_t position, size_t *likes)
{
    const struct ft_member *member = &p->m->members[p->m->comm_members[p->comm]];
    size_t n = 0;

    ft_task_spend(p->m->task, 1 + p->members / 4);
    for (size_t j = 0; j < p->members; j++)
        if ((j != position || p->members > MANY) &&
            p->roles[member[j].process] == p->roles[member[position].process])
            p->room[n++] = times[j * p->blocks + block];
    *likes = n;
    return ft_median(p->room, n);
}

/* Of each member's times what is above the median of its like, as a share of what is usual; no
 * more than it is already. */
static void limit_excess(struct ft_work_pace *p, const double *times)
{
    const struct ft_member *member = &p->m->members[p->m->comm_members[p->comm]];
    double median = 0;
    size_t likes = 0;

    for (size_t b = 0; b < p->blocks; b++) {
        for (size_t i = 0; i < p->members; i++) {
            double *excess = &p->excess[i * p->blocks + b];

            /* With many of one role, itself among them moves their median by little. */
            if (p->members <= MANY || i == 0 ||
                p->roles[member[i].process] != p->roles[member[i - 1].process])
                median = like_median(p, times, b, i, &likes);
            *excess = likes ? fmin(*excess, (times[i * p->blocks + b] - median) / p->base) : 0;
        }
    }
}

/* Each member's own time against that of its like. */
static void compare(struct ft_work_pace *p)
{
    for (size_t b = 0; b < p->blocks; b++) {
        ft_task_spend(p->m->task, 1 + p->members / 4);
        for (size_t i = 0; i < p->members; i++)
            p->room[i] = p->own[i * p->blocks + b];
        p->others[b] = ft_median(p->room, p->members);
    }
    memcpy(p->room, p->others, p->blocks * sizeof(*p->room));
    p->base = ft_median(p->room, p->blocks);
    memcpy(p->room, p->wall, p->blocks * sizeof(*p->room));
    p->wall_base = ft_median(p->room, p->blocks);
    if (!(p->base > 0))
        return;
    for (size_t i = 0; i < p->members; i++) {
        ft_task_spend(p->m->task, 1 + p->blocks / 16);
        for (size_t b = 0; b < p->blocks; b++)
            p->excess[i * p->blocks + b] = INFINITY;
    }
    limit_excess(p, p->own);
    if (p->beside)
        limit_excess(p, p->outside);
}

size_t ft_work_pace_period(const struct ft_work_pace *p, bool even, size_t blocks_min)
{
    size_t steps = p->groups - 1;
    double most = INFINITY;

    for (size_t k = 1; k <= steps; k++) {
        ft_task_spend(p->m->task, 1 + p->members / 4);
        for (size_t i = 0; i < p->members; i++)
            p->room[i] = own_of(p, k, i);
        /* Of two the one that is not away: pauses of one alone do not count. */
        p->others[k - 1] = ft_nth(p->room, p->members, (p->members - 1) / 2);
    }
    if (even) {
        memcpy(p->room, p->others, steps * sizeof(*p->room));
        most = PAUSE * ft_quantile(p->room, steps, MOSTLY);
    }
    for (size_t k = 0; k < steps; k++)
        p->others[k] = fmin(p->others[k], most);
    return ft_period(p->others, steps, blocks_min, p->room);
}

double ft_work_pace_waited(const struct ft_work_pace *p, size_t position, size_t first, size_t end)
{
    for (size_t b = first; b < end; b++) {
        double waited = 0;

        for (size_t k = b * p->period + 1; k <= (b + 1) * p->period; k++) {
            ft_task_spend(p->m->task, 1 + p->members / 2);
            for (size_t i = 0; i < p->members; i++)
                p->others[i] = (double)ft_ahead_length(p->m, p->group[k], i);
            waited -= p->others[position];
            waited += ft_median(p->others, p->members);
        }
        p->room[b - first] = waited;
    }
    return ft_median(p->room, end - first);
}

void ft_work_pace_fill(struct ft_work_pace *p)
{
    fill(p);
    compare(p);
}
