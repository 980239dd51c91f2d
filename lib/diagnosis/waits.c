// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/waits.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/base/task.h"
#include "lib/diagnosis/outlived.h"

/* A member is awaited in a group when it was in one of so many before, or in nearly all until its
 * rows end. */
#define RECENT_GROUPS 3

struct edges {
    uint32_t (*items)[2];
    size_t count, size;
    bool failed;
};

static void connect(struct edges *edges, uint32_t from, uint32_t to)
{
    uint32_t(*items)[2] = ft_grow(edges->items, edges->count, &edges->size, sizeof(*items));

    if (!items) {
        edges->failed = true;
        return;
    }
    edges->items = items;
    edges->items[edges->count][0] = from;
    edges->items[edges->count++][1] = to;
}

static bool ended(const struct ft_operation *op)
{
    return op->end_ns != FT_OPERATIONS_NEVER;
}

/* A communicator runs what it is given in order: where a later operation of it has ended, the end
 * of an earlier one was lost. later: of each communicator, the last process, from 1, of which one
 * has.
 */
static void find_blocking(struct ft_waits *w, const struct ft_matched *m, uint32_t *later)
{
    for (size_t p = 0; p < m->process_count; p++) {
        w->blocking[p] = w->standing[p] = w->last_row[p] = FT_OPERATIONS_NONE;
        w->company[p] = 1;
        ft_task_spend(m->task, 1);
        for (size_t i = m->first[p + 1]; i-- > m->first[p];) {
            const struct ft_operation *op = &m->op[i];
            bool single = m->group_of[i] == FT_OPERATIONS_NONE;

            if (!ended(op)) {
                if ((single || later[op->comm] != p + 1) && !ft_outlived(m, w->proven, (uint32_t)i))
                    w->blocking[p] = (uint32_t)i;
                continue;
            }
            if (!single)
                later[op->comm] = (uint32_t)p + 1;
            if (w->last_row[p] == FT_OPERATIONS_NONE || w->last_ns[p] < op->end_ns) {
                w->last_ns[p] = op->end_ns;
                w->last_row[p] = (uint32_t)i;
            }
        }
    }
}

/* Whether a member that is not in a group of its communicator should be: it was in those before,
 * and has not ended one after it. */
static bool awaited(const struct ft_matched *m, size_t group, uint32_t process)
{
    uint32_t comm = m->groups[group].comm;
    size_t first = m->comm_groups[comm], end = m->comm_groups[comm + 1];
    bool was = group == first;

    for (size_t g = group; g > first && group - g < RECENT_GROUPS && !was; g--)
        was = ft_matched_row(m, &m->groups[g - 1], process) != FT_OPERATIONS_NONE;
    was = was || ft_outlived_was_regular(m, comm, group, process);
    for (size_t g = group + 1; g < end && was; g++) {
        uint32_t row = ft_matched_row(m, &m->groups[g], process);

        ft_task_spend(m->task, 1);
        if (row != FT_OPERATIONS_NONE && ended(&m->op[row]))
            was = false;
    }
    return was;
}

static void connect_group(struct edges *edges, const struct ft_waits *w, const struct ft_matched *m,
                          uint32_t node, size_t index)
{
    const struct ft_gathering *group = &m->groups[index];
    size_t at = m->comm_members[group->comm], end = m->comm_members[group->comm + 1];

    /* Both lists are by process. */
    for (size_t i = 0; at < end; at++) {
        uint32_t process = m->members[at].process, row;

        ft_task_spend(m->task, 1);
        while (i < group->count && m->op[m->order[group->first + i]].process < process)
            i++;
        row = i < group->count ? m->order[group->first + i] : FT_OPERATIONS_NONE;
        if (row == FT_OPERATIONS_NONE || m->op[row].process != process) {
            if (awaited(m, index, process))
                connect(edges, node, process);
        } else if (!ended(&m->op[row]) && w->blocking[process] != row) {
            connect(edges, node, process);
        }
    }
}

/* Sends and receives that a rank begins at once run together, as those of one launch do. */
static bool launched_with(const struct ft_matched *m, uint32_t a, uint32_t b)
{
    return m->op[a].start_ns == m->op[b].start_ns && m->op[a].comm == m->op[b].comm &&
           m->op[a].process == m->op[b].process && m->group_of[a] == FT_OPERATIONS_NONE &&
           m->group_of[b] == FT_OPERATIONS_NONE;
}

static uint32_t other_side(const struct ft_matched *m, uint32_t row)
{
    const struct ft_pair *pair = &m->pairs[m->pair_of[row]];

    return pair->send == row ? pair->recv : pair->send;
}

/* Whether a process stands in a row that did not end, or in another of its launch. */
static bool stands_in(const struct ft_waits *w, const struct ft_matched *m, uint32_t row)
{
    uint32_t blocking = w->blocking[m->op[row].process];

    return blocking == row || (blocking != FT_OPERATIONS_NONE && launched_with(m, blocking, row));
}

/* What a launch waits for, the likelier the more: a side that has not entered, one that waits for
 * something else before, one that is in it; one that has ended is not waited for. */
static int awaits(const struct ft_waits *w, const struct ft_matched *m, uint32_t row)
{
    uint32_t other;

    if (m->pair_of[row] == FT_OPERATIONS_NONE)
        return 0;
    other = other_side(m, row);
    if (other == FT_OPERATIONS_NONE)
        return 3;
    if (ended(&m->op[other]))
        return 0;
    return stands_in(w, m, other) ? 1 : 2;
}

/* Of several sends and receives of one launch a process stands in the one that keeps it there. */
static void choose_in_launches(struct ft_waits *w, const struct ft_matched *m)
{
    for (size_t p = 0; p < m->process_count; p++) {
        uint32_t first = w->blocking[p];
        int most;

        if (first == FT_OPERATIONS_NONE || m->group_of[first] != FT_OPERATIONS_NONE)
            continue;
        most = awaits(w, m, first);
        for (uint32_t i = first + 1; i < m->first[p + 1] && launched_with(m, first, i); i++) {
            int here = awaits(w, m, i);

            ft_task_spend(m->task, 1);
            if (here <= most || ended(&m->op[i]) || ft_outlived(m, w->proven, i))
                continue;
            most = here;
            w->blocking[p] = i;
        }
    }
}

/* A process stands in its row; whether its launch stands with more ranks than one. */
static void find_several(struct ft_waits *w, const struct ft_matched *m, uint32_t process)
{
    uint32_t row = w->blocking[process];

    w->standing[process] = row;
    for (uint32_t i = row; i-- > m->first[process] && launched_with(m, row, i);)
        w->several[process] |=
            awaits(w, m, i) == 1 && m->op[i].peer != m->op[row].peer && !ended(&m->op[i]);
    for (uint32_t i = row + 1; i < m->first[process + 1] && launched_with(m, row, i); i++)
        w->several[process] |=
            awaits(w, m, i) == 1 && m->op[i].peer != m->op[row].peer && !ended(&m->op[i]);
}

static void connect_pair(struct edges *edges, struct ft_waits *w, const struct ft_matched *m,
                         uint32_t process)
{
    uint32_t row = w->blocking[process], at = m->pair_of[row], other, peer;

    if (at == FT_OPERATIONS_NONE)
        return;
    other = other_side(m, row);
    peer = m->pairs[at].from == process ? m->pairs[at].to : m->pairs[at].from;
    if (other == FT_OPERATIONS_NONE || (!ended(&m->op[other]) && !stands_in(w, m, other)))
        connect(edges, process, peer);
    else
        find_several(w, m, process);
    w->company[process] = other == FT_OPERATIONS_NONE ? 1 : 2;
}

/* The groups that processes stand in become nodes. */
static int connect_all(struct ft_waits *w, const struct ft_matched *m, struct edges *edges)
{
    uint32_t *node_of = calloc(m->group_count + 1, sizeof(*node_of));

    if (!node_of)
        return -ENOMEM;
    w->node_count = m->process_count;
    for (uint32_t p = 0; p < m->process_count; p++) {
        uint32_t group;

        ft_task_spend(m->task, 1);
        if (w->blocking[p] == FT_OPERATIONS_NONE)
            continue;
        group = m->group_of[w->blocking[p]];
        if (group == FT_OPERATIONS_NONE) {
            connect_pair(edges, w, m, p);
            continue;
        }
        if (!node_of[group]) {
            w->group[w->node_count - m->process_count] = group;
            node_of[group] = (uint32_t)w->node_count++;
            connect_group(edges, w, m, node_of[group], group);
        }
        connect(edges, p, node_of[group]);
        w->company[p] = (uint32_t)m->groups[group].count;
    }
    free(node_of);
    return edges->failed ? -ENOMEM : 0;
}

/* The edges by the node at one end: `to` of those with the same node at the other. */
static int index_edges(const struct edges *edges, size_t nodes, int end, uint32_t **to,
                       size_t **first)
{
    size_t *at = calloc(nodes + 2, sizeof(*at));

    *to = calloc(edges->count + 1, sizeof(**to));
    *first = at;
    if (!*to || !at)
        return -ENOMEM;
    for (size_t e = 0; e < edges->count; e++)
        at[edges->items[e][end] + 2]++;
    for (size_t n = 2; n <= nodes + 1; n++)
        at[n] += at[n - 1];
    for (size_t e = 0; e < edges->count; e++)
        (*to)[at[edges->items[e][end] + 1]++] = edges->items[e][!end];
    return 0;
}

struct ft_waits *ft_waits_new(const struct ft_matched *m)
{
    struct ft_waits *w = calloc(1, sizeof(*w));
    struct edges edges = {0};
    size_t n = m->process_count + 1;
    uint32_t *later = calloc(m->comm_count + 1, sizeof(*later));
    int rc = -ENOMEM;

    if (!w || !later) {
        free(w);
        free(later);
        return NULL;
    }
    w->blocking = calloc(n, sizeof(*w->blocking));
    w->standing = calloc(n, sizeof(*w->standing));
    w->several = calloc(n, sizeof(*w->several));
    w->company = calloc(n, sizeof(*w->company));
    w->last_ns = calloc(n, sizeof(*w->last_ns));
    w->last_row = calloc(n, sizeof(*w->last_row));
    w->group = calloc(n, sizeof(*w->group));
    w->proven = ft_outlived_new(m);
    if (w->blocking && w->standing && w->several && w->company && w->last_ns && w->last_row &&
        w->group && w->proven) {
        find_blocking(w, m, later);
        choose_in_launches(w, m);
        rc = connect_all(w, m, &edges);
    }
    free(later);
    if (rc == 0)
        rc = index_edges(&edges, w->node_count, 0, &w->out, &w->out_first);
    if (rc == 0)
        rc = index_edges(&edges, w->node_count, 1, &w->in, &w->in_first);
    free(edges.items);
    if (rc == 0)
        return w;
    ft_waits_free(w);
    return NULL;
}

void ft_waits_free(struct ft_waits *w)
{
    if (!w)
        return;
    free(w->blocking);
    free(w->standing);
    free(w->several);
    free(w->company);
    free(w->last_ns);
    free(w->last_row);
    free(w->group);
    free(w->proven);
    free(w->out);
    free(w->in);
    free(w->out_first);
    free(w->in_first);
    free(w);
}

void ft_waits_outlived(const struct ft_matched *m, struct ft_waits *w, const uint64_t *now_ns,
                       bool no_more, uint64_t *seen_ns)
{
    const struct ft_outlived_times times = {.proven = w->proven,
                                            .now_ns = now_ns,
                                            .no_more = no_more,
                                            .last_ns = w->last_ns,
                                            .seen_ns = seen_ns};

    ft_outlived_times(m, &times);
}

uint32_t ft_waits_in_all(const struct ft_waits *w, const struct ft_matched *m, uint32_t comm)
{
    uint32_t process = FT_OPERATIONS_NONE;

    for (uint32_t p = 0; p < m->process_count; p++) {
        if (!w->several[p] || m->op[w->standing[p]].comm != comm)
            continue;
        if (process != FT_OPERATIONS_NONE)
            return FT_OPERATIONS_NONE;
        process = p;
    }
    return process;
}

void ft_waits_mark_ends(const struct ft_waits *w, bool *known, uint32_t *room)
{
    size_t count = 0;

    memset(known, 0, w->node_count * sizeof(*known));
    for (uint32_t n = 0; n < w->node_count; n++) {
        if (w->out_first[n] != w->out_first[n + 1])
            continue;
        known[n] = true;
        room[count++] = n;
    }
    for (size_t at = 0; at < count; at++) {
        uint32_t node = room[at];

        for (size_t e = w->in_first[node]; e < w->in_first[node + 1]; e++) {
            if (known[w->in[e]])
                continue;
            known[w->in[e]] = true;
            room[count++] = w->in[e];
        }
    }
}

bool ft_waits_circle(const struct ft_waits *w, const struct ft_matched *m, uint32_t node,
                     uint32_t *least, uint32_t *most)
{
    int64_t odd = INT64_MIN, waiters = 0;
    bool absent = false;

    *least = *most = FT_OPERATIONS_NONE;
    for (size_t i = 0; i < w->node_count; i++) {
        node = ft_waits_next(w, node);
        if (node < m->process_count)
            waiters = w->company[node];
    }
    node = ft_waits_next(w, node);
    for (size_t i = 0; i < w->node_count; i++, node = ft_waits_next(w, node)) {
        uint32_t row;

        if (node >= m->process_count)
            continue;
        if (waiters - w->company[node] > odd) {
            odd = waiters - w->company[node];
            *least = node;
        }
        waiters = w->company[node];
        row = w->blocking[node];
        absent = absent || (m->group_of[row] == FT_OPERATIONS_NONE
                                ? w->company[node] < 2
                                : w->company[node] < ft_matched_size(m, m->op[row].comm));
    }
    for (size_t i = 0; i < w->node_count; i++, node = ft_waits_next(w, node))
        if (node < m->process_count && node != *least &&
            (*most == FT_OPERATIONS_NONE || w->company[node] > w->company[*most]))
            *most = node;
    return absent;
}
