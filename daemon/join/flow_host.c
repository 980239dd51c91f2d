// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/flow_host.h"

#include <string.h>

/* Of a report's bytes, those of the part of its interval between two moments. */
static uint64_t part_of(const struct ft_host_report *r, int64_t from_ms, int64_t to_ms)
{
    int64_t begun_ms = r->time_ms - r->interval_ms;
    int64_t ms =
        (to_ms < r->time_ms ? to_ms : r->time_ms) - (from_ms > begun_ms ? from_ms : begun_ms);

    return ms <= 0 ? 0 : (uint64_t)((double)r->bytes * (double)ms / (double)r->interval_ms);
}

/* A report's interval may reach over the edges of windows: its bytes are divided by time. What lies
 * in windows that are closed is late: it is not a rate of those that are open. */
void ft_flow_host_add_sent(struct ft_flow_host *host, const struct ft_host_report *r,
                           uint32_t window, uint32_t open, int64_t window_ms)
{
    int64_t edge_ms = (int64_t)window * window_ms;
    uint64_t before = part_of(r, edge_ms - window_ms, edge_ms);
    uint64_t older = part_of(r, INT64_MIN, edge_ms - window_ms);

    host->sent_bytes[window & 1] += r->bytes - before - older;
    if (window > open)
        host->sent_bytes[!(window & 1)] += before;
    host->sent_until_ms = r->time_ms;
}

static void set_name(struct ft_names *names, const char **kept, const char *text)
{
    if (text && (!*kept || strcmp(*kept, text) != 0))
        *kept = ft_names_intern(names, text);
}

static bool same_owner(const struct ft_flow_host *a, const struct ft_flow_host *b)
{
    return a->pid == b->pid && a->comm == b->comm && a->job == b->job &&
           a->qp_local == b->qp_local && a->qp_remote == b->qp_remote &&
           a->paired_by == b->paired_by;
}

static void note_pairing(struct ft_flow_host *host, struct ft_names *names,
                         const struct ft_host_report *r)
{
    if (r->paired_by == 0) {
        host->reported = true;
        return;
    }
    set_name(names, r->sending ? &host->dst_host : &host->src_host, r->peer_host);
    host->paired_by = (uint8_t)r->paired_by;
    host->withdrawn = false;
    if (r->sending)
        set_name(names, &host->peer_device, r->peer_device);
    set_name(names, &host->pair_comm, r->pair_comm);
}

bool ft_flow_host_take(struct ft_flow_host *host, struct ft_names *names,
                       const struct ft_host_report *r)
{
    struct ft_flow_host before = *host;

    set_name(names, r->sending ? &host->src_host : &host->dst_host, r->host);
    note_pairing(host, names, r);
    if (r->tuple_source)
        host->tuple_source = r->tuple_source;
    if (r->sending) {
        set_name(names, &host->comm, r->comm);
        set_name(names, &host->job, r->job);
        if (r->pid)
            host->pid = r->pid;
        if (host->job != before.job && (before.job || before.withdrawn))
            host->other_job_ms = r->time_ms;
    }
    if (r->qp_local != FT_NONE)
        host->qp_local = r->qp_local;
    if (r->qp_remote != FT_NONE)
        host->qp_remote = r->qp_remote;
    if (r->time_ms > host->listed_ms)
        host->listed_ms = r->time_ms;
    return !same_owner(&before, host);
}

void ft_flow_host_withdraw(struct ft_flow_host *host)
{
    *host = (struct ft_flow_host){
        .qp_local = FT_NONE,
        .qp_remote = FT_NONE,
        .reported = host->reported,
        .shown = host->shown,
        .withdrawn = true,
        .other_job_ms = host->other_job_ms,
        .sent_until_ms = host->sent_until_ms,
        .sent_bytes = {host->sent_bytes[0], host->sent_bytes[1]},
    };
}

void ft_flow_host_use_names(const struct ft_flow_host *host, struct ft_names *names)
{
    ft_names_use(names, host->src_host);
    ft_names_use(names, host->dst_host);
    ft_names_use(names, host->comm);
    ft_names_use(names, host->job);
    ft_names_use(names, host->peer_device);
    ft_names_use(names, host->pair_comm);
}
