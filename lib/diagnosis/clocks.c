// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/clocks.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/task.h"
#include "lib/diagnosis/offsets.h"
#include "lib/diagnosis/stats.h"

#define SAMPLES   64 /* collectives of a communicator, the newest; or sends */
#define SENDS_MIN 5

struct clocks {
    const struct ft_matched *m;
    struct ft_offset *hosts;
    size_t host_count;
    double *room;
};

/* The newest collectives that all members of a communicator have left, and none alone before. */
static size_t list_samples(const struct clocks *c, uint32_t comm,
                           const struct ft_gathering *samples[SAMPLES])
{
    const struct ft_matched *m = c->m;
    size_t members = ft_matched_size(m, comm), count = 0;

    for (size_t g = m->comm_groups[comm + 1]; g-- > m->comm_groups[comm] && count < SAMPLES;) {
        const struct ft_gathering *group = &m->groups[g];

        ft_task_spend(m->task, 1);
        if (group->unfinished == 0 && group->count == members &&
            m->kinds[m->op[m->order[group->first]].function] == FT_OPERATION_TOGETHER)
            samples[count++] = group;
    }
    return count;
}

/* Connects the hosts of a communicator's members with that of the first one. */
static void connect(struct clocks *c, uint32_t comm)
{
    const struct ft_gathering *samples[SAMPLES];
    const struct ft_matched *m = c->m;
    const struct ft_member *member = &m->members[m->comm_members[comm]];
    size_t members = ft_matched_size(m, comm), count = 0;
    double ahead;

    for (size_t i = 1; i < members; i++) {
        uint32_t first = m->process[member[0].process].host;
        uint32_t host = m->process[member[i].process].host;

        ft_task_spend(m->task, 1);
        if (ft_offsets_root(c->hosts, first, &ahead) == ft_offsets_root(c->hosts, host, &ahead))
            continue;
        if (count == 0 && (count = list_samples(c, comm, samples)) == 0)
            return;
        for (size_t k = 0; k < count; k++)
            c->room[k] = (double)m->op[m->order[samples[k]->first + i]].end_ns -
                         (double)m->op[m->order[samples[k]->first]].end_ns;
        ft_task_spend(m->task, count / 4);
        ft_offsets_unite(c->hosts, host, first, ft_median(c->room, count));
    }
}

/* By how much the newest sends of a rank to another, of which there are so many, end later than
 * the receives, the median. NAN: they do not end together, or nothing is known. */
static double sends_ahead(struct clocks *c, const struct ft_pair *pair, size_t count)
{
    const struct ft_operation *op = c->m->op;
    size_t n = 0;
    double median;

    for (size_t k = count; k-- > 0 && n < SAMPLES;)
        if (pair[k].send != FT_OPERATIONS_NONE && pair[k].recv != FT_OPERATIONS_NONE &&
            op[pair[k].send].end_ns != FT_OPERATIONS_NEVER &&
            op[pair[k].recv].end_ns != FT_OPERATIONS_NEVER)
            c->room[n++] = (double)op[pair[k].send].end_ns - (double)op[pair[k].recv].end_ns;
    if (n < SENDS_MIN)
        return NAN;
    ft_task_spend(c->m->task, 1 + n / 4);
    median = ft_median(c->room, n);
    return ft_spread(c->room, n, median) < FT_CLOCKS_SKEW_NS ? median : NAN;
}

/* Connects hosts that no collectives do, by what their ranks send to each other. */
static void connect_pairs(struct clocks *c)
{
    const struct ft_matched *m = c->m;

    for (size_t i = 0, n; i < m->pair_count; i += n) {
        uint32_t from = m->process[m->pairs[i].from].host, to = m->process[m->pairs[i].to].host;
        double ahead;

        for (n = 1; i + n < m->pair_count && ft_pair_same(&m->pairs[i], &m->pairs[i + n]);)
            n++;
        ft_task_spend(m->task, 1 + n / 16);
        if (ft_offsets_root(c->hosts, from, &ahead) == ft_offsets_root(c->hosts, to, &ahead))
            continue;
        ahead = sends_ahead(c, &m->pairs[i], n);
        if (!isnan(ahead))
            ft_offsets_unite(c->hosts, from, to, ahead);
    }
}

/* By how much each process's clock is ahead of what most of those connected with it show. */
static void measure(struct clocks *c, double *ahead_ns)
{
    const struct ft_matched *m = c->m;

    for (uint32_t h = 0; h < c->host_count; h++) {
        double ahead, middle;
        size_t n = 0;

        if (c->hosts[h].parent != h || !c->hosts[h].connected)
            continue;
        ft_task_spend(m->task, 1 + m->process_count / 16);
        for (size_t p = 0; p < m->process_count; p++)
            if (ft_offsets_root(c->hosts, m->process[p].host, &ahead) == h)
                c->room[n++] = ahead;
        middle = ft_median(c->room, n);
        for (size_t p = 0; p < m->process_count; p++) {
            if (ft_offsets_root(c->hosts, m->process[p].host, &ahead) != h)
                continue;
            ahead_ns[p] = fabs(ahead - middle) < FT_CLOCKS_SKEW_NS ? 0 : ahead - middle;
        }
    }
}

static double newest_of(const struct ft_matched *m, const double *ahead_ns)
{
    double newest = 0;

    for (size_t i = 0; i < m->op_count; i++) {
        const struct ft_operation *op = &m->op[i];
        uint64_t at = op->end_ns == FT_OPERATIONS_NEVER ? op->start_ns : op->end_ns;

        if (i % 16 == 0)
            ft_task_spend(m->task, 1);
        newest = fmax(newest, (double)at - ahead_ns[op->process]);
    }
    return newest;
}

static bool make_hosts(struct clocks *c)
{
    const struct ft_matched *m = c->m;
    size_t room = m->process_count > SAMPLES ? m->process_count : SAMPLES;

    for (size_t p = 0; p < m->process_count; p++)
        if (c->host_count <= m->process[p].host)
            c->host_count = (size_t)m->process[p].host + 1;
    c->hosts = calloc(c->host_count + 1, sizeof(*c->hosts));
    c->room = calloc(room, sizeof(*c->room));
    if (!c->hosts || !c->room)
        return false;
    for (uint32_t h = 0; h < c->host_count; h++)
        c->hosts[h].parent = h;
    for (size_t p = 0; p < m->process_count; p++)
        c->hosts[m->process[p].host].weight++;
    return true;
}

uint64_t *ft_clocks_end(const struct ft_matched *m, uint64_t now_ns)
{
    uint64_t *end = calloc(m->process_count + 1, sizeof(*end));
    double *ahead = calloc(m->process_count + 1, sizeof(*ahead)), newest;
    struct clocks c = {.m = m};
    bool apart = false;

    for (size_t p = 0; end && p < m->process_count; p++)
        end[p] = now_ns;
    if (!end || !ahead || !make_hosts(&c)) {
        free(end);
        end = NULL;
    } else if (now_ns <= ft_operations_newest_ns(m->ops)) {
        for (uint32_t comm = 0; comm < m->comm_count; comm++)
            if (ft_matched_size(m, comm) > 1)
                connect(&c, comm);
        connect_pairs(&c);
        measure(&c, ahead);
        for (size_t p = 0; p < m->process_count; p++)
            apart |= ahead[p] != 0;
        newest = apart ? newest_of(m, ahead) : 0;
        for (size_t p = 0; p < m->process_count && apart; p++)
            end[p] = (uint64_t)fmax(newest + ahead[p], 0);
    }
    free(c.hosts);
    free(c.room);
    free(ahead);
    return end;
}
