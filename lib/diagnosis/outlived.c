// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/outlived.h"

#include <stdlib.h>

#include "lib/base/task.h"

/* In nearly all groups until its rows end. */
#define NEARLY_ALL 0.9

static bool ended(const struct ft_operation *op)
{
    return op->end_ns != FT_OPERATIONS_NEVER;
}

/* Whether nobody can leave a group before all have entered, and somebody has left it. */
static bool proves(const struct ft_matched *m, const struct ft_gathering *group)
{
    if (group->unfinished == group->count)
        return false;
    ft_task_spend(m->task, 1 + group->count / 8);
    for (size_t i = 0; i < group->count; i++)
        if (m->kinds[m->op[m->order[group->first + i]].function] != FT_OPERATION_TOGETHER)
            return false;
    return true;
}

size_t *ft_outlived_new(const struct ft_matched *m)
{
    size_t *proven = calloc(m->comm_count + 1, sizeof(*proven));

    for (uint32_t comm = 0; proven && comm < m->comm_count; comm++) {
        size_t first = m->comm_groups[comm], end = m->comm_groups[comm + 1];

        while (end > first && !proves(m, &m->groups[end - 1])) {
            ft_task_spend(m->task, 1);
            end--;
        }
        proven[comm] = end > first ? end : 0;
    }
    return proven;
}

/* Whether a later send of the same two ranks has ended where the row's side is, or was received. */
static bool later_ended(const struct ft_matched *m, uint32_t row)
{
    const struct ft_pair *pair = &m->pairs[m->pair_of[row]], *end = m->pairs + m->pair_count;
    bool sends = pair->send == row;

    for (const struct ft_pair *next = pair + 1; next < end && ft_pair_same(next, pair); next++) {
        uint32_t same = sends ? next->send : next->recv;

        ft_task_spend(m->task, 1);
        if ((same != FT_OPERATIONS_NONE && ended(&m->op[same])) ||
            (next->recv != FT_OPERATIONS_NONE && ended(&m->op[next->recv])))
            return true;
    }
    return false;
}

bool ft_outlived(const struct ft_matched *m, const size_t *proven, uint32_t row)
{
    if (m->group_of[row] != FT_OPERATIONS_NONE)
        return m->group_of[row] + 1 < proven[m->op[row].comm];
    return m->pair_of[row] != FT_OPERATIONS_NONE && later_ended(m, row);
}

bool ft_outlived_was_regular(const struct ft_matched *m, uint32_t comm, size_t group,
                             uint32_t process)
{
    uint32_t at = ft_matched_position(m, comm, process);
    size_t first = m->comm_groups[comm], last = group, in;

    if (at == FT_OPERATIONS_NONE)
        return false;
    in = m->members[m->comm_members[comm] + at].groups;
    while (last > first && ft_matched_row(m, &m->groups[last - 1], process) == FT_OPERATIONS_NONE) {
        ft_task_spend(m->task, 1);
        last--;
    }
    return last > first && (double)in >= NEARLY_ALL * (double)(last - first);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* A process did something that is in no row of it, when another one ended a row. */
static void note(const struct ft_outlived_times *t, uint32_t process,
                 const struct ft_operation *other)
{
    uint64_t ago = less(t->now_ns[other->process], other->end_ns);
    uint64_t then = less(t->now_ns[process], ago);

    t->seen_ns[process] = 0;
    if (t->last_ns[process] < then)
        t->last_ns[process] = then;
}

/* The last group of a communicator that proves something: who has no row of it. */
static void note_group(const struct ft_matched *m, const struct ft_outlived_times *t, uint32_t comm,
                       size_t index)
{
    const struct ft_gathering *group = &m->groups[index];
    const struct ft_operation *first = NULL;
    uint64_t longest = 0;

    ft_task_spend(m->task, 1 + group->count / 4);
    for (size_t i = 0; i < group->count; i++) {
        const struct ft_operation *op = &m->op[m->order[group->first + i]];
        uint64_t ago = ended(op) ? less(t->now_ns[op->process], op->end_ns) : 0;

        if (ended(op) && (!first || longest < ago)) {
            first = op;
            longest = ago;
        }
    }
    for (size_t i = m->comm_members[comm]; first && i < m->comm_members[comm + 1]; i++) {
        uint32_t process = m->members[i].process;

        ft_task_spend(m->task, 1);
        if (ft_matched_row(m, group, process) == FT_OPERATIONS_NONE &&
            ft_outlived_was_regular(m, comm, index, process))
            note(t, process, first);
    }
}

/* What was received, and has no row where it was sent, though others before it have: at the end of
 * what two ranks sent each other. Where none has, or rows before others are missing, nothing
 * follows. */
static void note_pairs(const struct ft_matched *m, const struct ft_outlived_times *t)
{
    size_t end, at;

    ft_task_spend(m->task, 1 + m->pair_count / 8);
    for (size_t first = 0; first < m->pair_count; first = end) {
        end = first + 1;
        while (end < m->pair_count && ft_pair_same(&m->pairs[first], &m->pairs[end]))
            end++;
        at = end;
        while (at > first && m->pairs[at - 1].send == FT_OPERATIONS_NONE)
            at--;
        for (; at > first && at < end; at++)
            if (m->pairs[at].recv != FT_OPERATIONS_NONE && ended(&m->op[m->pairs[at].recv]))
                note(t, m->pairs[at].from, &m->op[m->pairs[at].recv]);
    }
}

/* Of a process of which rows are missing, and of those of its host: the newest row there. */
static void note_hosts(const struct ft_matched *m, const struct ft_outlived_times *t)
{
    size_t hosts = 0;
    uint64_t *newest;
    bool *cut, any = false;

    for (size_t p = 0; p < m->process_count; p++)
        hosts = m->process[p].host >= hosts ? (size_t)m->process[p].host + 1 : hosts;
    newest = calloc(hosts + 1, sizeof(*newest));
    cut = calloc(hosts + 1, sizeof(*cut));
    for (size_t p = 0; newest && cut && p < m->process_count; p++) {
        size_t at = m->process[p].host;

        ft_task_spend(m->task, 1 + (m->first[p + 1] - m->first[p]) / 16);
        cut[at] |= t->seen_ns[p] == 0;
        any |= cut[at] && t->no_more;
        for (size_t i = m->first[p]; i < m->first[p + 1]; i++) {
            const struct ft_operation *op = &m->op[i];
            uint64_t ns = ended(op) ? op->end_ns : op->start_ns;

            newest[at] = newest[at] < ns ? ns : newest[at];
        }
    }
    for (size_t p = 0; newest && cut && p < m->process_count; p++)
        if (any || cut[m->process[p].host])
            t->seen_ns[p] = newest[m->process[p].host];
    free(newest);
    free(cut);
}

void ft_outlived_times(const struct ft_matched *m, const struct ft_outlived_times *t)
{
    for (size_t p = 0; p < m->process_count; p++)
        t->seen_ns[p] = t->now_ns[p];
    for (uint32_t comm = 0; comm < m->comm_count; comm++)
        if (t->proven[comm] > 0)
            note_group(m, t, comm, t->proven[comm] - 1);
    note_pairs(m, t);
    note_hosts(m, t);
}
