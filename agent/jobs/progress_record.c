// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/progress_record.h"

#include <inttypes.h>
#include <stdio.h>

static char *own(const char *text)
{
    return (char *)(uintptr_t)text;
}

static const Fabrictrace__TransferState waits[FT_WAITS] = {
    [FT_WAIT_UNKNOWN] = FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_UNKNOWN,
    [FT_WAIT_QUEUED] = FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_QUEUED,
    [FT_WAIT_IDLE] = FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_IDLE,
    [FT_WAIT_SEND_GPU] = FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_GPU_WAIT,
    [FT_WAIT_SEND_PEER] = FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_PEER_WAIT,
    [FT_WAIT_SEND] = FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_WAIT,
    [FT_WAIT_RECV] = FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_WAIT,
    [FT_WAIT_RECV_FLUSH] = FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_FLUSH_WAIT,
    [FT_WAIT_RECV_GPU] = FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_GPU_WAIT,
};

static const Fabrictrace__ProcessState processes[] = {
    [FT_PROCESS_UNKNOWN] = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_UNKNOWN,
    [FT_PROCESS_RUNNING] = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_RUNNING,
    [FT_PROCESS_STOPPED] = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_STOPPED,
    [FT_PROCESS_UNINTERRUPTIBLE] = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_UNINTERRUPTIBLE,
    [FT_PROCESS_GONE] = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_GONE,
};

static const Fabrictrace__OperationState states[] = {
    [FT_PROGRESS_UNKNOWN] = FABRICTRACE__OPERATION_STATE__OPERATION_STATE_UNKNOWN,
    [FT_PROGRESS_BEGUN] = FABRICTRACE__OPERATION_STATE__OPERATION_STATE_BEGUN,
    [FT_PROGRESS_IN_FLIGHT] = FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT,
    [FT_PROGRESS_FINISHED] = FABRICTRACE__OPERATION_STATE__OPERATION_STATE_FINISHED,
};

static void fill_op(struct ft_progress_record *out, const struct ft_progress_report *r,
                    const struct ft_job_identity *who)
{
    const struct ft_progress_op *op = r->op;
    const struct ft_collective as = {.p2p = op->p2p, .ranks = r->comm->ranks, .op = op->op};
    Fabrictrace__Progress *m = &out->progress;

    m->has_start_ms = m->has_enqueued = m->has_count = m->has_channels = true;
    m->start_ms = ft_job_wall_ms(op->start_ns, who);
    m->has_started_ns = op->start_ns > 0;
    m->started_ns = (uint64_t)op->start_ns;
    m->enqueued = op->enqueued;
    m->op = ft_job_text(out->op, sizeof(out->op), op->op.func);
    m->datatype = ft_job_text(out->datatype, sizeof(out->datatype), op->op.datatype);
    m->algo = ft_job_text(out->algo, sizeof(out->algo), op->op.algo);
    m->proto = ft_job_text(out->proto, sizeof(out->proto), op->op.proto);
    m->count = op->op.count;
    m->bytes = ft_collective_bytes(&as);
    m->has_bytes = m->bytes > 0 || op->op.count == 0;
    m->channels = op->op.channels;
    m->has_transfers_ended = true;
    m->transfers_ended = op->ended;
    m->has_kernels_ended = r->kernels;
    m->kernels_ended = op->kernels_ended;
    if (op->p2p) {
        m->has_peer = ft_job_is_rank(op->op.peer);
        m->peer = (uint32_t)op->op.peer;
        return;
    }
    m->has_sequence = m->has_sequence_stands = true;
    m->sequence = op->op.sequence;
    m->sequence_stands = op->sequence_stands;
    m->has_root = ft_job_is_rank(op->op.peer);
    m->root = (uint32_t)op->op.peer;
}

static void fill_transfer(Fabrictrace__Transfer *m, const struct ft_rings_flight *f,
                          const struct ft_job_identity *who)
{
    fabrictrace__transfer__init(m);
    m->has_peer = ft_job_is_rank(f->peer);
    m->peer = (uint32_t)f->peer;
    m->has_channel = m->has_send = m->has_state = m->has_since_ms = m->has_start_ms = true;
    m->channel = f->channel;
    m->send = f->send;
    m->state = waits[f->wait];
    m->since_ms = ft_job_wall_ms(f->since_ns, who);
    m->start_ms = ft_job_wall_ms(f->start_ns, who);
    m->has_steps_done = m->has_steps_open = true;
    m->steps_done = f->done;
    m->steps_open = f->open;
    m->has_steps = f->expected > 0;
    m->steps = f->expected;
    m->has_number = f->number > 0 && f->number < INT64_MAX;
    m->number = f->number;
    m->has_foreign = m->foreign = f->foreign;
}

static void fill_rank(struct ft_progress_record *out, const struct ft_progress_report *r,
                      const struct ft_job_identity *who)
{
    Fabrictrace__Progress *m = &out->progress;
    const struct ft_rings_comm *comm = r->comm;

    m->host = own(who->host);
    m->has_pid = who->pid != 0;
    m->pid = who->pid;
    m->job = who->job[0] ? own(who->job) : NULL;
    snprintf(out->comm_id, sizeof(out->comm_id), "%016" PRIx64, comm->comm_id);
    m->comm_id = out->comm_id;
    m->gpu = ft_job_text(out->gpu, sizeof(out->gpu), comm->gpu);
    m->has_rank = ft_job_is_rank(comm->rank);
    m->rank = (uint32_t)comm->rank;
    m->has_ranks = ft_job_is_rank(comm->ranks);
    m->ranks = (uint32_t)comm->ranks;
    m->has_nodes = ft_job_is_rank(comm->nodes);
    m->nodes = (uint32_t)comm->nodes;
}

void ft_progress_record_fill(struct ft_progress_record *out, const struct ft_progress_report *r,
                             const struct ft_job_identity *who, int64_t now_ms)
{
    Fabrictrace__Progress *m = &out->progress;

    fabrictrace__record__init(&out->record);
    fabrictrace__progress__init(m);
    out->record.kind_case = FABRICTRACE__RECORD__KIND_PROGRESS;
    out->record.progress = m;
    m->has_time_ms = true;
    m->time_ms = (uint64_t)now_ms;
    fill_rank(out, r, who);
    m->has_process = m->has_process_since_ms = r->process != FT_PROCESS_UNKNOWN;
    m->process = processes[r->process];
    m->process_since_ms = ft_job_wall_ms(r->process_since_ns, who);
    m->has_begun = m->has_standing = true;
    m->begun = r->comm->begun;
    m->standing = r->standing;
    m->has_finished = r->finished > 0;
    m->finished = r->finished < INT64_MAX ? r->finished : INT64_MAX;
    m->has_moved_ms = r->moved_ns > 0;
    m->moved_ms = ft_job_wall_ms(r->moved_ns, who);
    m->has_number = m->has_state = m->has_transfers_open = r->number > 0;
    m->number = r->number < INT64_MAX ? r->number : INT64_MAX;
    m->state = states[r->state];
    m->transfers_open = r->open;
    m->has_kernels_open = r->kernels && r->number > 0;
    m->kernels_open = r->kernels_open;
    if (r->op)
        fill_op(out, r, who);
    for (size_t i = 0; i < r->count; i++) {
        fill_transfer(&out->transfers[i], r->transfers[i], who);
        out->list[i] = &out->transfers[i];
    }
    m->transfers = out->list;
    m->n_transfers = r->count;
    m->has_transfers_dropped = r->dropped > 0;
    m->transfers_dropped = r->dropped < UINT32_MAX ? (uint32_t)r->dropped : UINT32_MAX;
}
