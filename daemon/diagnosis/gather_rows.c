// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/diagnosis/gather_parts.h"
#include "lib/base/task.h"

void ft_gather_number(struct ft_gather_job *g)
{
    size_t processes = 0;

    ft_task_spend(g->task, 1 + g->source_count / 16);
    for (size_t i = 0; i < g->source_count; i++)
        g->sources[i].rank->process->number = FT_OPERATIONS_NONE;
    for (size_t i = 0; i < g->source_count; i++) {
        processes += g->sources[i].rank->process->number == FT_OPERATIONS_NONE;
        g->sources[i].rank->process->number = 0;
    }
    for (size_t i = 0; i < g->source_count && !g->out->numbered;
         i += g->members[g->sources[i].comm]) {
        size_t n = g->members[g->sources[i].comm], own = 0;

        if (n != processes)
            continue;
        for (size_t k = i; k < i + n; k++)
            g->sources[k].rank->process->number = FT_OPERATIONS_NONE;
        for (size_t k = i; k < i + n; k++) {
            own += g->sources[k].rank->process->number == FT_OPERATIONS_NONE;
            g->sources[k].rank->process->number = g->sources[k].rank->rank;
        }
        g->out->numbered = own == processes;
    }
    for (size_t i = 0; i < g->source_count && g->comm_count > 1 && !g->out->numbered; i++)
        g->out->apart |= g->sources[i].rank->process->pid == 0;
}

int ft_gather_add_rows(struct ft_gather_job *g)
{
    char host[FT_OPERATIONS_NAME_BYTES];
    int rc = 0;

    for (size_t i = 0; i < g->item_count && rc == 0; i++) {
        const struct ft_recent_rank *r = g->items[i].source->rank, *peer = NULL;
        const struct ft_recent_row *row = g->items[i].row;
        struct ft_operation_row add = {
            .host = g->out->apart ? host : r->process->host,
            .comm = r->comm_id,
            .function = ft_recent_function(g->recent, row->function),
            .rank = g->out->numbered ? r->process->number : r->rank,
            .peer = FT_OPERATIONS_NONE,
            .sequence = g->items[i].sequence,
            .bytes = row->bytes,
            .start_ns = ft_gather_starts_at(&g->items[i]),
            .end_ns = ft_apart_at(r->process, g->items[i].end_ns),
        };

        ft_task_spend(g->task, 1);
        if (!g->items[i].chosen)
            continue;
        if (g->out->apart)
            snprintf(host, sizeof(host), "%s in communicator %s", r->process->host, r->comm_id);
        if (row->peer != FT_RECENT_NO_PEER)
            peer = ft_recent_find(g->recent, r->comm_id, row->peer);
        if (peer && peer->process)
            add.peer = g->out->numbered ? peer->process->number : peer->rank;
        rc = ft_operations_add(g->out->ops, &add);
        /* Two processes of one number: which is whose, nobody knows. */
        if (rc == -EINVAL)
            rc = 0;
        else
            g->out->rows++;
    }
    return rc;
}

void ft_gather_say_members(const struct ft_gather_job *g)
{
    for (size_t i = 0; i < g->source_count; i += g->members[g->sources[i].comm]) {
        const struct ft_recent_rank *r = g->sources[i].rank;
        size_t known = g->members[g->sources[i].comm];
        uint32_t ranks = 0;

        ft_task_spend(g->task, 1 + known / 16);
        for (size_t k = i; k < i + known; k++)
            if (ranks < g->sources[k].rank->ranks)
                ranks = g->sources[k].rank->ranks;
        ft_operations_say_members(g->out->ops, r->comm_id, ranks, (uint32_t)known);
    }
}
