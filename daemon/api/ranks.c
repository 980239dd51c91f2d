// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/ranks.h"

#include <stdlib.h>
#include <string.h>

static char *text(const char *s)
{
    return s && *s ? (char *)(uintptr_t)s : NULL;
}

static void fill_last(Fabrictrace__Rank *out, const struct ft_slowest_last *last)
{
    out->op = text(last->op);
    out->has_time_ms = last->time_ms != 0;
    out->time_ms = last->time_ms;
    if (!last->named)
        return;
    out->has_slowest_peer = out->has_slowest_step_median_ns = out->has_others_step_median_ns = true;
    out->slowest_peer = last->peer;
    out->slowest_step_median_ns = last->step_median_ns;
    out->others_step_median_ns = last->others_median_ns;
    if (!last->has_link)
        return;
    out->slowest_switch = text(last->link.switch_name);
    out->slowest_port = text(last->link.port);
    out->has_slowest_port_flows = true;
    out->slowest_port_flows = last->link.flows;
}

static void write_rank(struct ft_list *list, const struct ft_rank_member *m,
                       const struct ft_slowest_last *last)
{
    Fabrictrace__Rank out = FABRICTRACE__RANK__INIT;

    out.comm_id = text(m->comm_id);
    out.has_rank = out.has_ranks = out.has_pid = true;
    out.rank = m->rank;
    out.ranks = m->ranks;
    out.host = text(m->host);
    out.pid = m->pid;
    out.gpu = text(m->gpu);
    out.job = text(m->job);
    out.has_closed = out.closed = m->closed;
    if (last)
        fill_last(&out, last);
    ft_list_message(list, "fabrictrace.rank.v1", &out.base);
}

static bool matches(const struct ft_rank_member *m, const struct ft_rank_filter *f)
{
    return (!f->comm_id || strcmp(f->comm_id, m->comm_id) == 0) &&
           (!f->job || strcmp(f->job, m->job) == 0) &&
           (!f->host || strcmp(f->host, m->host) == 0) && (!f->has_rank || f->rank == m->rank);
}

void ft_api_write_ranks(struct ft_list *list, const struct ft_ranks *ranks,
                        const struct ft_slowest *slowest, const struct ft_rank_filter *filter)
{
    const struct ft_rank_member **members, *m;
    size_t count = 0, n = 0;
    uint32_t index = 0;

    while (ft_ranks_next_member(ranks, &index))
        count++;
    members = calloc(count ? count : 1, sizeof(*members));
    if (!members) {
        list->w->failed = true;
        return;
    }
    index = 0;
    while ((m = ft_ranks_next_member(ranks, &index)))
        if (matches(m, filter))
            members[n++] = m;
    qsort(members, n, sizeof(*members), ft_ranks_by_comm);
    for (size_t i = 0; i < n; i++)
        write_rank(list, members[i], ft_slowest_of(slowest, members[i]->comm_id, members[i]->rank));
    free(members);
}
