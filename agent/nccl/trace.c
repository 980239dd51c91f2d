// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/nccl/trace.h"

#include <pthread.h>
#include <string.h>

#include "agent/nccl/core.h"
#include "agent/nccl/trace_entry.h"

static uint64_t as_number(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

/* The calling thread's part, with its event counted. */
static struct ft_core_thread *enter(struct ft_core *core)
{
    struct ft_core_thread *t = ft_core_reserve(core, (uintptr_t)pthread_self());

    if (!t) {
        atomic_fetch_add_explicit(&core->segment->outside_events, 1, memory_order_relaxed);
        return NULL;
    }
    ft_ring_count(&t->ring->events, 1);
    return t;
}

/* The number is good for the operation's children also where its own record found no room. */
static void *start_op(struct ft_core *core, struct ft_core_thread *t, struct ft_trace_comm *comm,
                      bool p2p, const union ft_nccl_subject *subject)
{
    uint64_t handle = ft_handle_of_op(comm);
    uint64_t number = ft_handle_number(comm, handle);
    struct ft_segment_record *r = ft_ring_reserve(t, 1);

    atomic_store_explicit(&core->segment->comm[comm->index].begun, number, memory_order_relaxed);
    if (r) {
        ft_ring_fill_head(r, FT_SEGMENT_OP, comm);
        r->op = handle;
        r->start_ns = r->end_ns = ft_now_ns();
        if (p2p) {
            r->flags = FT_SEGMENT_P2P;
            ft_ring_fill_p2p(&r->u.op, &subject->p2p);
        } else {
            ft_ring_fill_coll(&r->u.op, &subject->coll);
        }
        r->number = number;
        ft_ring_commit(t);
    }
    return (void *)(uintptr_t)handle;
}

static void stop_op(const struct ft_core *core, struct ft_core_thread *t, uint64_t handle)
{
    struct ft_segment_record *r = ft_ring_reserve(t, 1);

    if (!r)
        return;
    r->kind = FT_SEGMENT_END;
    r->flags = 0;
    r->events = 1;
    r->op = handle;
    r->comm = ft_handle_comm(handle);
    r->number = ft_handle_number(&core->comms[r->comm], handle);
    r->start_ns = r->end_ns = ft_now_ns();
    ft_ring_commit(t);
}

static void *start_proxy(struct ft_core *core, struct ft_core_thread *t, struct ft_trace_comm *comm,
                         uint64_t parent, int rank, const struct ft_nccl_proxy_op *op)
{
    bool foreign = op->pid != core->pid || ft_handle_tag(parent) != FT_HANDLE_OP;
    uint64_t handle;
    struct ft_core_entry *e =
        ft_entry_open(core, t, comm, FT_SEGMENT_PROXY, foreign ? 0 : parent, &handle);

    if (!e)
        return NULL;
    if (op->is_send)
        e->record.flags |= FT_SEGMENT_SEND;
    if (foreign) {
        e->record.flags |= FT_SEGMENT_FOREIGN;
        e->record.rank = rank;
    }
    e->record.u.proxy.peer = op->peer;
    e->record.u.proxy.channel = op->channel;
    ft_entry_show(core, e, op->steps > 0 ? (uint32_t)op->steps : 0);
    ft_entry_release(e);
    return (void *)(uintptr_t)handle;
}

static void *start_step(struct ft_core *core, struct ft_core_thread *t, uint64_t parent)
{
    struct ft_core_entry *e = ft_entry_hold(core, t, parent);
    struct ft_segment_flight *f;
    unsigned at;

    if (!e)
        return NULL;
    at = (unsigned)__builtin_ffs((int)~e->used) - 1;
    if (at >= FT_CORE_STEPS) {
        ft_entry_release(e);
        ft_ring_drop(t, FT_DROP_POOL_FULL, 1);
        return NULL;
    }
    e->touched_ns = ft_now_ns();
    e->used |= 1u << at;
    e->steps[at] = (struct ft_core_step){.start_ns = e->touched_ns};
    e->record.events++;
    f = ft_entry_flight(core, e);
    ft_flight_step(f, at, ft_segment_step(FT_WAIT_UNKNOWN, e->touched_ns));
    ft_flight_moved(f, FT_WAIT_IDLE, e->touched_ns);
    ft_entry_release(e);
    parent &= ~(UINT64_C(0xf) << 52);
    return (void *)(uintptr_t)(parent | (uint64_t)FT_HANDLE_STEP << 52 | (uint64_t)at << 31);
}

static void *start_kernel(struct ft_core *core, struct ft_core_thread *t,
                          struct ft_trace_comm *comm, uint64_t parent,
                          const union ft_nccl_subject *subject)
{
    uint64_t op = ft_handle_tag(parent) == FT_HANDLE_OP ? parent : 0;
    uint64_t handle;
    struct ft_core_entry *e = ft_entry_open(core, t, comm, FT_SEGMENT_KERNEL, op, &handle);

    if (!e)
        return NULL;
    e->record.u.kernel.channel = subject->kernel_ch.channel;
    e->record.u.kernel.start_ns = subject->kernel_ch.gpu_time_ns;
    ft_entry_show(core, e, 0);
    ft_entry_release(e);
    return (void *)(uintptr_t)handle;
}

static void note_qp(struct ft_core *core, struct ft_core_thread *t, uint64_t parent,
                    const union ft_nccl_subject *subject)
{
    const struct ft_nccl_ib_qp *qp = subject->net_plugin.data;
    struct ft_core_entry *e = ft_entry_hold(core, t, parent);

    if (!e)
        return;
    e->record.events++;
    if (e->record.kind == FT_SEGMENT_PROXY && subject->net_plugin.id == FT_NCCL_NET_IB_QP && qp) {
        uint32_t *qps = e->record.u.proxy.qps;
        uint32_t number = (uint32_t)qp->qp_number;
        int i = 0;

        while (i < FT_RECORD_QPS && qps[i] && qps[i] != number)
            i++;
        if (i < FT_RECORD_QPS)
            qps[i] = number;
    }
    ft_entry_release(e);
}

void *ft_trace_start(struct ft_trace_comm *comm, uint64_t type, void *parent, int rank,
                     const union ft_nccl_subject *subject)
{
    struct ft_core *core = ft_core;
    struct ft_core_thread *t = core ? enter(core) : NULL;
    uint64_t above = as_number(parent);

    if (!t)
        return NULL;
    if (!ft_trace_ours(core, comm)) {
        ft_ring_drop(t, FT_DROP_CONTEXT, 1);
        return NULL;
    }
    switch (type) {
    case FT_NCCL_COLL:
    case FT_NCCL_P2P:
        return start_op(core, t, comm, type == FT_NCCL_P2P, subject);
    case FT_NCCL_PROXY_OP:
        return start_proxy(core, t, comm, above, rank, &subject->proxy_op);
    case FT_NCCL_PROXY_STEP:
        if (ft_handle_tag(above) == FT_HANDLE_ENTRY)
            return start_step(core, t, above);
        ft_ring_drop(t, FT_DROP_STALE, 1);
        return NULL;
    case FT_NCCL_KERNEL_CH:
        return start_kernel(core, t, comm, above, subject);
    case FT_NCCL_NET_PLUGIN:
        if (ft_handle_tag(above) == FT_HANDLE_STEP || ft_handle_tag(above) == FT_HANDLE_ENTRY)
            note_qp(core, t, above, subject);
        else
            ft_ring_drop(t, FT_DROP_STALE, 1);
        return NULL;
    default:
        ft_ring_drop(t, FT_DROP_UNKNOWN, 1);
        return NULL;
    }
}

static struct ft_core_step *step_of(struct ft_core_entry *e, uint64_t handle)
{
    uint32_t at = ft_handle_step(handle);

    return at < FT_CORE_STEPS && e->used >> at & 1 ? &e->steps[at] : NULL;
}

/* The time that the network had the step; where NCCL did not report it, all of its time. */
static void end_step(struct ft_core *core, struct ft_core_entry *e, struct ft_core_step *s,
                     int64_t now)
{
    struct ft_segment_flight *f = ft_entry_flight(core, e);
    struct ft_segment_proxy *p = &e->record.u.proxy;
    int64_t ns = (s->arrived_ns ? s->arrived_ns : now) - (s->wait_ns ? s->wait_ns : s->start_ns);
    unsigned bucket;

    if (ns < 0)
        ns = 0;
    bucket = ft_segment_bucket(ns);
    if (p->steps == 0 || (uint64_t)ns < p->step_min_ns)
        p->step_min_ns = (uint64_t)ns;
    if ((uint64_t)ns > p->step_max_ns)
        p->step_max_ns = (uint64_t)ns;
    p->step_sum_ns += (uint64_t)ns;
    p->steps++;
    p->bytes += s->bytes;
    if (p->buckets[bucket] < UINT16_MAX)
        p->buckets[bucket]++;
    e->used &= ~(1u << (s - e->steps));
    ft_flight_step(f, (unsigned)(s - e->steps), 0);
    ft_flight_moved(f, FT_WAIT_IDLE, now);
    atomic_store_explicit(&f->done, p->steps, memory_order_relaxed);
}

static void stop_entry(struct ft_core *core, struct ft_core_thread *t, uint64_t handle)
{
    struct ft_core_entry *e = ft_entry_hold(core, t, handle);
    int64_t now = ft_now_ns();

    if (!e)
        return;
    e->touched_ns = now;
    if (ft_handle_tag(handle) == FT_HANDLE_ENTRY) {
        e->record.events++;
        e->record.end_ns = now;
        ft_entry_emit(t, e);
        ft_entry_retire(core, e);
        return;
    }
    if (step_of(e, handle)) {
        e->record.events++;
        end_step(core, e, step_of(e, handle), now);
    } else {
        ft_ring_drop(t, FT_DROP_STALE, 1);
    }
    ft_entry_release(e);
}

void ft_trace_stop(void *handle)
{
    struct ft_core *core = ft_core;
    struct ft_core_thread *t = core ? enter(core) : NULL;

    if (!t)
        return;
    switch (ft_handle_tag(as_number(handle))) {
    case FT_HANDLE_OP:
        stop_op(core, t, as_number(handle));
        break;
    case FT_HANDLE_ENTRY:
    case FT_HANDLE_STEP:
        stop_entry(core, t, as_number(handle));
        break;
    default:
        ft_ring_drop(t, FT_DROP_STALE, 1);
    }
}

static enum ft_segment_wait wait_of(int state)
{
    switch (state) {
    case FT_NCCL_STEP_SEND_GPU_WAIT:
        return FT_WAIT_SEND_GPU;
    case FT_NCCL_STEP_SEND_PEER_WAIT:
        return FT_WAIT_SEND_PEER;
    case FT_NCCL_STEP_SEND_WAIT:
        return FT_WAIT_SEND;
    case FT_NCCL_STEP_RECV_WAIT:
        return FT_WAIT_RECV;
    case FT_NCCL_STEP_RECV_FLUSH:
        return FT_WAIT_RECV_FLUSH;
    case FT_NCCL_STEP_RECV_GPU_WAIT:
        return FT_WAIT_RECV_GPU;
    default:
        return FT_WAIT_UNKNOWN;
    }
}

/* NCCL reports a wait for the peer at every poll: what says nothing new is not counted. Reads
 * alone, so that its thread loses nothing by it. */
static bool says_nothing(struct ft_core *core, uint64_t handle, int state)
{
    uint32_t index = ft_handle_entry(handle), at = ft_handle_step(handle);
    const struct ft_segment_flight *f;
    const struct ft_core_entry *e;
    uint64_t held;
    unsigned wait;

    if (index >= FT_CORE_ENTRIES || at >= FT_CORE_STEPS)
        return false;
    e = &core->entries[ft_handle_thread(handle)][index];
    held = atomic_load_explicit(&e->state, memory_order_relaxed);
    if (!(held & FT_ENTRY_USED) ||
        (held >> 2 & FT_HANDLE_GENERATION) != (handle & FT_HANDLE_GENERATION))
        return false;
    f = ft_entry_flight(core, e);
    if (ft_handle_tag(handle) == FT_HANDLE_ENTRY)
        return state == FT_NCCL_PROXY_IN_PROGRESS &&
               ft_segment_step_wait(atomic_load_explicit(&f->moved, memory_order_relaxed)) ==
                   FT_WAIT_IDLE;
    wait = ft_segment_step_wait(atomic_load_explicit(&f->step[at], memory_order_relaxed));
    return wait != FT_WAIT_UNKNOWN && wait == wait_of(state);
}

static void note_step(struct ft_segment_flight *f, struct ft_core_entry *e, struct ft_core_step *s,
                      int state, const union ft_nccl_state *args)
{
    enum ft_segment_wait wait = wait_of(state);
    /* The GPU has the buffer from the step's start on. */
    int64_t now = wait == FT_WAIT_SEND_GPU ? s->start_ns : ft_now_ns();

    if (wait == FT_WAIT_UNKNOWN)
        return;
    if (wait == FT_WAIT_SEND || wait == FT_WAIT_RECV)
        s->wait_ns = now;
    if (wait == FT_WAIT_RECV_FLUSH)
        s->arrived_ns = now;
    if (args && (wait == FT_WAIT_SEND || wait == FT_WAIT_RECV_FLUSH))
        s->bytes = (uint32_t)args->proxy_step.bytes;
    ft_flight_step(f, (unsigned)(s - e->steps), ft_segment_step(wait, now));
}

static void note_entry(struct ft_segment_flight *f, struct ft_core_entry *e, int state,
                       const union ft_nccl_state *args)
{
    if (state == FT_NCCL_KERNEL_CH_STOP && e->record.kind == FT_SEGMENT_KERNEL && args)
        e->record.u.kernel.end_ns = args->kernel_ch.gpu_time_ns;
    if (state == FT_NCCL_PROXY_IN_PROGRESS && e->record.kind == FT_SEGMENT_PROXY)
        ft_flight_moved(f, FT_WAIT_IDLE, ft_now_ns());
}

void ft_trace_state(void *handle, int state, const union ft_nccl_state *args)
{
    struct ft_core *core = ft_core;
    uint64_t number = as_number(handle);
    enum ft_handle_tag tag = ft_handle_tag(number);
    bool entry = tag == FT_HANDLE_ENTRY || tag == FT_HANDLE_STEP;
    struct ft_core_step *step;
    struct ft_core_thread *t;
    struct ft_core_entry *e;

    if (!core || (entry && says_nothing(core, number, state)))
        return;
    t = enter(core);
    if (!t)
        return;
    if (!entry) {
        ft_ring_drop(t, FT_DROP_STALE, 1);
        return;
    }
    e = ft_entry_hold(core, t, number);
    if (!e)
        return;
    step = tag == FT_HANDLE_STEP ? step_of(e, number) : NULL;
    if (tag == FT_HANDLE_STEP && !step) {
        ft_ring_drop(t, FT_DROP_STALE, 1);
        ft_entry_release(e);
        return;
    }
    e->record.events++;
    if (step)
        note_step(ft_entry_flight(core, e), e, step, state, args);
    else
        note_entry(ft_entry_flight(core, e), e, state, args);
    ft_entry_release(e);
}

const struct ft_segment *ft_trace_segment(void)
{
    struct ft_core *core = ft_core;

    return core ? core->segment : NULL;
}
