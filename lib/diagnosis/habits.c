// SPDX-License-Identifier: Apache-2.0
/* What is usual in the operations of a table, and the longest of what ended well. */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/task.h"
#include "lib/diagnosis/stats.h"
#include "lib/diagnosis/waits.h"

/* Values that a median is taken of. */
#define SAMPLES 256
/* A rank repeats itself after as many rows where so many of the newest are as they were then: the
 * same operation, after about as long in none; and at least once more before that. */
#define REPEATS_MAX   1024
#define REPEATS_ROWS  64
#define REPEATS_SHARE 0.9
#define REPEATS_RATIO 2
#define NO_TIME       0.03 /* of the longest usual time in no operation: as good as none */

static bool ended(const struct ft_operation *op)
{
    return op->end_ns != FT_OPERATIONS_NEVER;
}

static uint64_t length_of(const struct ft_operation *op)
{
    return op->end_ns - op->start_ns;
}

/* Of a group that ended: the length at the rank that entered last, and the longest at any. */
static bool lengths(const struct ft_matched *m, const struct ft_gathering *group, uint64_t *least,
                    uint64_t *most)
{
    *least = UINT64_MAX;
    *most = 0;
    ft_task_spend(m->task, 1 + group->count / 8);
    for (size_t i = 0; i < group->count; i++) {
        const struct ft_operation *op = &m->op[m->order[group->first + i]];

        if (!ended(op))
            return false;
        if (*least > length_of(op))
            *least = length_of(op);
        if (*most < length_of(op))
            *most = length_of(op);
    }
    return group->count > 1;
}

static int usual_lateness(struct ft_habits *habits, size_t count)
{
    double *values = calloc(count + 1, sizeof(*values));

    if (!values)
        return -ENOMEM;
    for (size_t p = 0; p < count; p++)
        values[p] = (double)habits->late_max_ns[p];
    habits->late_usual_ns = (uint64_t)ft_median(values, count);
    free(values);
    return 0;
}

int ft_habits_init(struct ft_habits *habits, const struct ft_matched *m)
{
    uint64_t least, most;

    habits->late_max_ns = calloc(m->process_count + 1, sizeof(*habits->late_max_ns));
    if (!habits->late_max_ns)
        return -ENOMEM;
    for (size_t p = 0; p < m->process_count; p++) {
        ft_task_spend(m->task, 1);
        for (size_t i = m->first[p] + 1; i < m->first[p + 1]; i++)
            if (m->own_ns[i] - m->own_ns[i - 1] > habits->own_max_ns)
                habits->own_max_ns = m->own_ns[i] - m->own_ns[i - 1];
    }
    for (size_t g = 0; g < m->group_count; g++) {
        const struct ft_gathering *group = &m->groups[g];

        if (!lengths(m, group, &least, &most))
            continue;
        if (habits->wait_max_ns < most - least)
            habits->wait_max_ns = most - least;
        ft_task_spend(m->task, 1 + group->count / 8);
        for (size_t i = 0; i < group->count; i++) {
            const struct ft_operation *op = &m->op[m->order[group->first + i]];

            if (habits->late_max_ns[op->process] < most - length_of(op))
                habits->late_max_ns[op->process] = most - length_of(op);
        }
    }
    for (size_t i = 0; i < m->pair_count; i++) {
        const struct ft_pair *pair = &m->pairs[i];
        uint64_t send, recv, wait;

        if (i % 8 == 0)
            ft_task_spend(m->task, 1);
        if (pair->send == FT_OPERATIONS_NONE || pair->recv == FT_OPERATIONS_NONE ||
            !ended(&m->op[pair->send]) || !ended(&m->op[pair->recv]))
            continue;
        send = length_of(&m->op[pair->send]);
        recv = length_of(&m->op[pair->recv]);
        wait = send > recv ? send - recv : recv - send;
        if (habits->wait_max_ns < wait)
            habits->wait_max_ns = wait;
    }
    return usual_lateness(habits, m->process_count);
}

void ft_habits_free(struct ft_habits *habits)
{
    free(habits->late_max_ns);
}

/* Whether a row of a process is like one that another process is in: the other side of a send or
 * receive, or the same function. */
static bool answers(const struct ft_matched *m, const struct ft_operation *op,
                    const struct ft_operation *other)
{
    if (op->comm != other->comm)
        return false;
    if (other->process == op->process || other->peer == FT_OPERATIONS_NONE)
        return op->function == other->function;
    return op->peer == other->process && m->kinds[op->function] != m->kinds[other->function];
}

/* A process's own time before a row of its own that is not its first. */
static double own_before(const struct ft_matched *m, size_t i)
{
    return (double)(m->own_ns[i] - m->own_ns[i - 1]);
}

static bool repeats(const struct ft_matched *m, size_t i, size_t before, double none_ns)
{
    const struct ft_operation *op = &m->op[i], *other = &m->op[before];
    double own = own_before(m, i), own_then = own_before(m, before);

    return op->comm == other->comm && op->function == other->function && op->peer == other->peer &&
           op->bytes == other->bytes && own <= REPEATS_RATIO * own_then + none_ns &&
           own_then <= REPEATS_RATIO * own + none_ns;
}

/* After how many rows a process repeats itself; 0: it does not. */
static size_t round_of(const struct ft_matched *m, uint32_t process)
{
    size_t first = m->first[process] + 1, end = m->first[process + 1], rows, same;
    double values[SAMPLES], none_ns;

    for (rows = 0; rows < SAMPLES && end > first + rows; rows++)
        values[rows] = own_before(m, end - 1 - rows);
    none_ns = NO_TIME * ft_quantile(values, rows, REPEATS_SHARE);
    for (size_t lag = 1; lag <= REPEATS_MAX && end >= first + 2 * lag; lag++) {
        rows = end - first - lag;
        rows = rows < REPEATS_ROWS ? rows : REPEATS_ROWS;
        rows = rows < lag ? lag : rows;
        same = 0;
        for (size_t i = end - rows; i < end; i++)
            same += repeats(m, i, i - lag, none_ns);
        ft_task_spend(m->task, 1 + rows / 8);
        if ((double)same >= REPEATS_SHARE * (double)rows)
            return lag;
    }
    return 0;
}

uint64_t ft_habits_own_next(const struct ft_matched *m, uint32_t process)
{
    size_t lag = round_of(m, process), count = 0;
    double values[SAMPLES];

    if (lag == 0)
        return FT_OPERATIONS_NEVER;
    for (size_t i = m->first[process + 1]; i > m->first[process] + lag && count < SAMPLES; i -= lag)
        if (i - lag > m->first[process])
            values[count++] = own_before(m, i - lag);
    return (uint64_t)ft_median(values, count);
}

uint64_t ft_habits_own(const struct ft_matched *m, uint32_t process, uint32_t row)
{
    double values[SAMPLES];
    size_t count = 0;

    for (size_t i = m->first[process + 1]; i > m->first[process] + 1 && count < SAMPLES; i--)
        if (row == FT_OPERATIONS_NONE || answers(m, &m->op[i - 1], &m->op[row]))
            values[count++] = (double)(m->own_ns[i - 1] - m->own_ns[i - 2]);
    return (uint64_t)ft_median(values, count);
}

/* The length of a pair's transfer, or of a group's: of the last to enter; 0: it has not ended. */
static uint64_t transfer_of(const struct ft_matched *m, uint32_t row, size_t i)
{
    const struct ft_pair *pair = &m->pairs[i];
    uint64_t least, most;

    if (m->group_of[row] != FT_OPERATIONS_NONE)
        return m->op[m->order[m->groups[i].first]].function == m->op[row].function &&
                       lengths(m, &m->groups[i], &least, &most)
                   ? least
                   : 0;
    if (pair->comm != m->op[row].comm || pair->send == FT_OPERATIONS_NONE ||
        pair->recv == FT_OPERATIONS_NONE || !ended(&m->op[pair->send]) ||
        !ended(&m->op[pair->recv]))
        return 0;
    least = length_of(&m->op[pair->send]);
    most = length_of(&m->op[pair->recv]);
    return least < most ? least : most;
}

uint64_t ft_habits_transfer(const struct ft_matched *m, uint32_t row)
{
    bool pairs = m->group_of[row] == FT_OPERATIONS_NONE;
    size_t first = pairs ? 0 : m->comm_groups[m->op[row].comm];
    size_t end = pairs ? m->pair_count : m->comm_groups[m->op[row].comm + 1];
    uint64_t longest = 0;

    for (size_t i = first; i < end; i++) {
        uint64_t ns = transfer_of(m, row, i);

        if (i % 16 == 0)
            ft_task_spend(m->task, 1);
        longest = ns > longest ? ns : longest;
    }
    return longest;
}

uint64_t ft_habits_longest_own(const struct ft_matched *m, uint32_t process)
{
    uint64_t longest = 0;

    for (size_t i = m->first[process] + 1; i < m->first[process + 1]; i++)
        if (longest < m->own_ns[i] - m->own_ns[i - 1])
            longest = m->own_ns[i] - m->own_ns[i - 1];
    return longest;
}

size_t ft_habits_host_ranks(const struct ft_matched *m, uint32_t process)
{
    size_t count = 0;

    for (size_t i = 0; i < m->process_count; i++)
        count += m->process[i].host == m->process[process].host;
    return count;
}
