// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/collective_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_MS 1000000
#define NS_PER_US 1000
/* Ranks of the largest communicators are some hundred thousand. */
#define RANK_MAX (1 << 24)

static char *own(const char *text)
{
    return (char *)(uintptr_t)text;
}

char *ft_job_text(char *to, size_t to_bytes, const char *from)
{
    size_t n = 0;

    for (; *from && n + 1 < to_bytes; from++)
        if (*from > 0x20 && *from < 0x7f)
            to[n++] = *from;
    to[n] = '\0';
    return n ? to : NULL;
}

bool ft_job_is_rank(int32_t rank)
{
    return rank >= 0 && rank < RANK_MAX;
}

uint64_t ft_job_wall_ms(int64_t mono_ns, const struct ft_job_identity *who)
{
    int64_t ms = mono_ns / NS_PER_MS + who->offset_ms;

    return ms > 0 ? (uint64_t)ms : 0;
}

static void fill_peer(Fabrictrace__PeerTraffic *m, uint32_t *qps,
                      const struct ft_collective_peer *p)
{
    fabrictrace__peer_traffic__init(m);
    m->has_peer = ft_job_is_rank(p->peer);
    m->peer = (uint32_t)p->peer;
    m->has_channel = true;
    m->channel = p->channel;
    m->has_sent_bytes = m->has_sent_messages = p->sent_messages > 0;
    m->sent_bytes = p->sent_bytes;
    m->sent_messages = p->sent_messages;
    m->has_received_bytes = m->has_received_messages = p->received_messages > 0;
    m->received_bytes = p->received_bytes;
    m->received_messages = p->received_messages;
    m->has_step_min_ns = m->has_step_median_ns = m->has_step_max_ns = p->steps.count > 0;
    m->step_min_ns = p->steps.min_ns;
    m->step_median_ns = (uint64_t)ft_collective_median_ns(&p->steps);
    m->step_max_ns = p->steps.max_ns;
    while (m->n_local_qps < FT_RECORD_QPS && p->qps[m->n_local_qps]) {
        qps[m->n_local_qps] = p->qps[m->n_local_qps];
        m->n_local_qps++;
    }
    m->local_qps = qps;
}

static void fill_op(struct ft_collective_record *out, const struct ft_collective *c)
{
    Fabrictrace__Collective *m = &out->collective;

    m->op = ft_job_text(out->op, sizeof(out->op), c->op.func);
    m->datatype = ft_job_text(out->datatype, sizeof(out->datatype), c->op.datatype);
    m->algo = ft_job_text(out->algo, sizeof(out->algo), c->op.algo);
    m->proto = ft_job_text(out->proto, sizeof(out->proto), c->op.proto);
    m->has_count = true;
    m->count = c->op.count;
    m->bytes = ft_collective_bytes(c);
    m->has_bytes = m->bytes > 0 || c->op.count == 0;
    m->has_channels = true;
    m->channels = c->op.channels;
    if (c->p2p) {
        m->has_peer = ft_job_is_rank(c->op.peer);
        m->peer = (uint32_t)c->op.peer;
        return;
    }
    m->has_sequence = true;
    m->sequence = c->op.sequence;
    m->has_root = ft_job_is_rank(c->op.peer);
    m->root = (uint32_t)c->op.peer;
}

void ft_collective_record_fill(struct ft_collective_record *out, const struct ft_collective *c,
                               const struct ft_job_identity *who)
{
    Fabrictrace__Collective *m = &out->collective;

    fabrictrace__record__init(&out->record);
    fabrictrace__collective__init(m);
    out->record.kind_case = FABRICTRACE__RECORD__KIND_COLLECTIVE;
    out->record.collective = m;
    m->has_time_ms = m->has_start_ms = m->has_duration_us = true;
    m->start_ms = ft_job_wall_ms(c->start_ns, who);
    m->time_ms = ft_job_wall_ms(c->end_ns, who);
    m->duration_us = c->end_ns > c->start_ns ? (uint64_t)(c->end_ns - c->start_ns) / NS_PER_US : 0;
    m->has_started_ns = c->start_ns > 0;
    m->started_ns = (uint64_t)c->start_ns;
    m->host = own(who->host);
    m->has_pid = who->pid != 0;
    m->pid = who->pid;
    m->job = who->job[0] ? own(who->job) : NULL;
    snprintf(out->comm_id, sizeof(out->comm_id), "%016" PRIx64, c->comm_id);
    m->comm_id = out->comm_id;
    m->has_rank = ft_job_is_rank(c->rank);
    m->rank = (uint32_t)c->rank;
    m->has_ranks = ft_job_is_rank(c->ranks);
    m->ranks = (uint32_t)c->ranks;
    if (c->has_op)
        fill_op(out, c);
    m->has_number = c->number > 0 && c->number < INT64_MAX;
    m->number = c->number;
    m->has_operations = m->has_events = true;
    m->operations = c->operations;
    m->events = c->events;
    m->has_incomplete = m->incomplete = c->incomplete;
    m->has_foreign = m->foreign = c->foreign;
    m->has_peers_dropped = c->left_out.transfers > 0;
    m->peers_dropped = c->left_out.transfers;
    m->has_sent_bytes_dropped = c->left_out.sent_bytes > 0;
    m->sent_bytes_dropped = c->left_out.sent_bytes;
    m->has_received_bytes_dropped = c->left_out.received_bytes > 0;
    m->received_bytes_dropped = c->left_out.received_bytes;
    m->peers = out->peer_list;
    for (size_t i = 0; i < c->peer_count && i < FT_COLLECTIVE_PEERS_MAX; i++) {
        fill_peer(&out->peers[i], out->qps[i], &c->peers[i]);
        out->peer_list[m->n_peers++] = &out->peers[i];
    }
}

void ft_communicator_record_fill(struct ft_communicator_record *out,
                                 const struct ft_rings_comm *comm, bool closed,
                                 const struct ft_job_identity *who, int64_t now_ms)
{
    Fabrictrace__Communicator *m = &out->communicator;

    fabrictrace__record__init(&out->record);
    fabrictrace__communicator__init(m);
    out->record.kind_case = FABRICTRACE__RECORD__KIND_COMMUNICATOR;
    out->record.communicator = m;
    m->has_time_ms = m->has_since_ms = true;
    m->time_ms = (uint64_t)now_ms;
    m->since_ms = ft_job_wall_ms(comm->opened_ns, who);
    /* The job's word. */
    if (m->since_ms > m->time_ms)
        m->since_ms = m->time_ms;
    m->host = own(who->host);
    m->has_pid = who->pid != 0;
    m->pid = who->pid;
    m->job = who->job[0] ? own(who->job) : NULL;
    snprintf(out->comm_id, sizeof(out->comm_id), "%016" PRIx64, comm->comm_id);
    m->comm_id = out->comm_id;
    m->name = ft_job_text(out->name, sizeof(out->name), comm->name);
    m->gpu = ft_job_text(out->gpu, sizeof(out->gpu), comm->gpu);
    m->has_rank = ft_job_is_rank(comm->rank);
    m->rank = (uint32_t)comm->rank;
    m->has_ranks = ft_job_is_rank(comm->ranks);
    m->ranks = (uint32_t)comm->ranks;
    m->has_nodes = ft_job_is_rank(comm->nodes);
    m->nodes = (uint32_t)comm->nodes;
    m->has_abi = true;
    m->abi = (uint32_t)comm->abi;
    m->has_closed = m->closed = closed;
}
