// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/nccl/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/nccl/core.h"
#include "agent/nccl/gpu.h"
#include "agent/nccl/link.h"
#include "agent/nccl/trace_ring.h"

#define NS_PER_S     INT64_C(1000000000)
#define ABANDONED_NS (30 * NS_PER_S) /* an event this old may be replaced by a new one */
#define PROBES       16
#define SPINS        64 /* well below a microsecond */

/* A handle: mark 8 bits, tag 4, thread 6, entry 10, step 5, generation 31. An operation has a
 * number of its own instead of the last three. */
#define MARK       UINT64_C(0xf7)
#define GENERATION 0x7fffffffu
#define OP_NUMBER  ((UINT64_C(1) << 46) - 1)

enum tag {
    TAG_OP = 1,
    TAG_ENTRY,
    TAG_STEP,
};

_Static_assert(FT_CORE_ENTRIES <= 1 << 10 && FT_CORE_STEPS <= 1 << 5, "bits of a handle");

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static uint64_t handle_head(enum tag tag, const struct ft_core_thread *t)
{
    return MARK << 56 | (uint64_t)tag << 52 | (uint64_t)t->index << 46;
}

static enum tag handle_tag(uint64_t handle)
{
    return handle >> 56 == MARK ? (enum tag)(handle >> 52 & 0xf) : 0;
}

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
static void *start_op(struct ft_core_thread *t, const struct ft_trace_comm *comm, bool p2p,
                      const union ft_nccl_subject *subject)
{
    uint64_t handle = handle_head(TAG_OP, t) | (++t->next_op & OP_NUMBER);
    struct ft_segment_record *r = ft_ring_reserve(t, 1);

    if (r) {
        ft_ring_fill_head(r, FT_SEGMENT_OP, comm);
        r->op = handle;
        r->start_ns = r->end_ns = now_ns();
        if (p2p) {
            r->flags = FT_SEGMENT_P2P;
            ft_ring_fill_p2p(&r->u.op, &subject->p2p);
        } else {
            ft_ring_fill_coll(&r->u.op, &subject->coll);
        }
        ft_ring_commit(t);
    }
    return (void *)(uintptr_t)handle;
}

static void stop_op(struct ft_core_thread *t, uint64_t handle)
{
    struct ft_segment_record *r = ft_ring_reserve(t, 1);

    if (!r)
        return;
    r->kind = FT_SEGMENT_END;
    r->flags = 0;
    r->events = 1;
    r->op = handle;
    r->start_ns = r->end_ns = now_ns();
    ft_ring_commit(t);
}

static void emit_entry(struct ft_core_thread *t, const struct ft_core_entry *e)
{
    struct ft_segment_record *r = ft_ring_reserve(t, e->record.events);

    if (r) {
        *r = e->record;
        ft_ring_commit(t);
    }
}

static void release(struct ft_core_entry *e)
{
    uint64_t state = atomic_load_explicit(&e->state, memory_order_relaxed);

    atomic_store_explicit(&e->state, state & ~(uint64_t)FT_ENTRY_BUSY, memory_order_release);
}

/* Frees the entry: its handles are stale from now on. */
static void retire(struct ft_core_entry *e)
{
    uint64_t state = atomic_load_explicit(&e->state, memory_order_relaxed);

    atomic_store_explicit(&e->state, ((state >> 2) + 1) << 2, memory_order_release);
}

/* The entry of a handle, for the caller alone until release() or retire(); NULL with the drop
 * counted. */
static struct ft_core_entry *hold(struct ft_core *core, struct ft_core_thread *t, uint64_t handle)
{
    uint32_t index = handle >> 36 & 0x3ff;
    struct ft_core_entry *e;
    uint64_t state;

    if (index >= FT_CORE_ENTRIES) {
        ft_ring_drop(t, FT_DROP_STALE, 1);
        return NULL;
    }
    e = &core->entries[handle >> 46 & 0x3f][index];
    for (int i = 0; i < SPINS; i++) {
        state = atomic_load_explicit(&e->state, memory_order_relaxed);
        if (!(state & FT_ENTRY_USED) || (state >> 2 & GENERATION) != (handle & GENERATION)) {
            ft_ring_drop(t, FT_DROP_STALE, 1);
            return NULL;
        }
        if (!(state & FT_ENTRY_BUSY) &&
            atomic_compare_exchange_weak_explicit(&e->state, &state, state | FT_ENTRY_BUSY,
                                                  memory_order_acquire, memory_order_relaxed))
            return e;
    }
    ft_ring_drop(t, FT_DROP_CONTENDED, 1);
    return NULL;
}

/* Takes over an entry: a free one, or one that nobody has touched for long, which goes out first.
 */
static bool take(struct ft_core_thread *t, struct ft_core_entry *e, int64_t now)
{
    uint64_t state = atomic_load_explicit(&e->state, memory_order_relaxed);
    uint64_t used = state & FT_ENTRY_USED;

    if (state & FT_ENTRY_BUSY || !atomic_compare_exchange_strong_explicit(
                                     &e->state, &state, state | FT_ENTRY_USED | FT_ENTRY_BUSY,
                                     memory_order_acquire, memory_order_relaxed))
        return false;
    if (!used)
        return true;
    if (now - e->touched_ns < ABANDONED_NS) {
        release(e);
        return false;
    }
    e->record.flags |= FT_SEGMENT_INCOMPLETE;
    emit_entry(t, e);
    state = atomic_load_explicit(&e->state, memory_order_relaxed);
    atomic_store_explicit(&e->state, ((state >> 2) + 1) << 2 | FT_ENTRY_USED | FT_ENTRY_BUSY,
                          memory_order_relaxed);
    return true;
}

static struct ft_core_entry *open_entry(struct ft_core_thread *t, struct ft_trace_comm *comm,
                                        enum ft_segment_kind kind, uint64_t op, uint64_t *handle)
{
    int64_t now = now_ns();

    for (uint32_t i = 0; i < PROBES; i++) {
        uint32_t index = t->cursor++ % FT_CORE_ENTRIES;
        struct ft_core_entry *e = &t->entries[index];
        uint64_t state;

        if (!take(t, e, now))
            continue;
        e->comm = comm;
        e->touched_ns = now;
        e->used = 0;
        memset(&e->record.u, 0, sizeof(e->record.u));
        ft_ring_fill_head(&e->record, kind, comm);
        e->record.op = op;
        e->record.start_ns = e->record.end_ns = now;
        state = atomic_load_explicit(&e->state, memory_order_relaxed);
        *handle = handle_head(TAG_ENTRY, t) | (uint64_t)index << 36 | (state >> 2 & GENERATION);
        return e;
    }
    ft_ring_drop(t, FT_DROP_POOL_FULL, 1);
    return NULL;
}

static void *start_proxy(struct ft_core *core, struct ft_core_thread *t, struct ft_trace_comm *comm,
                         uint64_t parent, int rank, const struct ft_nccl_proxy_op *op)
{
    bool foreign = op->pid != core->pid || handle_tag(parent) != TAG_OP;
    uint64_t handle;
    struct ft_core_entry *e = open_entry(t, comm, FT_SEGMENT_PROXY, foreign ? 0 : parent, &handle);

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
    release(e);
    return (void *)(uintptr_t)handle;
}

static void *start_step(struct ft_core *core, struct ft_core_thread *t, uint64_t parent)
{
    struct ft_core_entry *e = hold(core, t, parent);
    unsigned at;

    if (!e)
        return NULL;
    at = (unsigned)__builtin_ffs((int)~e->used) - 1;
    if (at >= FT_CORE_STEPS) {
        release(e);
        ft_ring_drop(t, FT_DROP_POOL_FULL, 1);
        return NULL;
    }
    e->touched_ns = now_ns();
    e->used |= 1u << at;
    e->steps[at] = (struct ft_core_step){.start_ns = e->touched_ns};
    e->record.events++;
    release(e);
    parent &= ~(UINT64_C(0xf) << 52);
    return (void *)(uintptr_t)(parent | (uint64_t)TAG_STEP << 52 | (uint64_t)at << 31);
}

static void *start_kernel(struct ft_core_thread *t, struct ft_trace_comm *comm, uint64_t parent,
                          const union ft_nccl_subject *subject)
{
    uint64_t op = handle_tag(parent) == TAG_OP ? parent : 0;
    uint64_t handle;
    struct ft_core_entry *e = open_entry(t, comm, FT_SEGMENT_KERNEL, op, &handle);

    if (!e)
        return NULL;
    e->record.u.kernel.channel = subject->kernel_ch.channel;
    e->record.u.kernel.start_ns = subject->kernel_ch.gpu_time_ns;
    release(e);
    return (void *)(uintptr_t)handle;
}

static void note_qp(struct ft_core *core, struct ft_core_thread *t, uint64_t parent,
                    const union ft_nccl_subject *subject)
{
    const struct ft_nccl_ib_qp *qp = subject->net_plugin.data;
    struct ft_core_entry *e = hold(core, t, parent);

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
    release(e);
}

static bool ours(const struct ft_core *core, const struct ft_trace_comm *comm)
{
    uintptr_t offset = (uintptr_t)comm - (uintptr_t)core->comms;

    return offset < sizeof(core->comms) && offset % sizeof(*comm) == 0;
}

void *ft_trace_start(struct ft_trace_comm *comm, uint64_t type, void *parent, int rank,
                     const union ft_nccl_subject *subject)
{
    struct ft_core *core = ft_core;
    struct ft_core_thread *t = core ? enter(core) : NULL;
    uint64_t above = as_number(parent);

    if (!t)
        return NULL;
    if (!ours(core, comm)) {
        ft_ring_drop(t, FT_DROP_CONTEXT, 1);
        return NULL;
    }
    switch (type) {
    case FT_NCCL_COLL:
    case FT_NCCL_P2P:
        return start_op(t, comm, type == FT_NCCL_P2P, subject);
    case FT_NCCL_PROXY_OP:
        return start_proxy(core, t, comm, above, rank, &subject->proxy_op);
    case FT_NCCL_PROXY_STEP:
        if (handle_tag(above) == TAG_ENTRY)
            return start_step(core, t, above);
        ft_ring_drop(t, FT_DROP_STALE, 1);
        return NULL;
    case FT_NCCL_KERNEL_CH:
        return start_kernel(t, comm, above, subject);
    case FT_NCCL_NET_PLUGIN:
        if (handle_tag(above) == TAG_STEP || handle_tag(above) == TAG_ENTRY)
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
    uint32_t at = handle >> 31 & 0x1f;

    return at < FT_CORE_STEPS && e->used >> at & 1 ? &e->steps[at] : NULL;
}

/* The time that the network had the step; where NCCL did not report it, all of its time. */
static void end_step(struct ft_core_entry *e, struct ft_core_step *s, int64_t now)
{
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
}

static void stop_entry(struct ft_core *core, struct ft_core_thread *t, uint64_t handle)
{
    struct ft_core_entry *e = hold(core, t, handle);
    int64_t now = now_ns();

    if (!e)
        return;
    e->touched_ns = now;
    if (handle_tag(handle) == TAG_ENTRY) {
        e->record.events++;
        e->record.end_ns = now;
        emit_entry(t, e);
        retire(e);
        return;
    }
    if (step_of(e, handle)) {
        e->record.events++;
        end_step(e, step_of(e, handle), now);
    } else {
        ft_ring_drop(t, FT_DROP_STALE, 1);
    }
    release(e);
}

void ft_trace_stop(void *handle)
{
    struct ft_core *core = ft_core;
    struct ft_core_thread *t = core ? enter(core) : NULL;

    if (!t)
        return;
    switch (handle_tag(as_number(handle))) {
    case TAG_OP:
        stop_op(t, as_number(handle));
        break;
    case TAG_ENTRY:
    case TAG_STEP:
        stop_entry(core, t, as_number(handle));
        break;
    default:
        ft_ring_drop(t, FT_DROP_STALE, 1);
    }
}

static void note_step(struct ft_core_step *s, int state, const union ft_nccl_state *args)
{
    if (state == FT_NCCL_STEP_SEND_WAIT || state == FT_NCCL_STEP_RECV_WAIT)
        s->wait_ns = now_ns();
    if (state == FT_NCCL_STEP_RECV_FLUSH)
        s->arrived_ns = now_ns();
    if (args && (state == FT_NCCL_STEP_SEND_WAIT || state == FT_NCCL_STEP_RECV_FLUSH))
        s->bytes = (uint32_t)args->proxy_step.bytes;
}

void ft_trace_state(void *handle, int state, const union ft_nccl_state *args)
{
    struct ft_core *core = ft_core;
    struct ft_core_thread *t = core ? enter(core) : NULL;
    enum tag tag = handle_tag(as_number(handle));
    struct ft_core_step *step;
    struct ft_core_entry *e;

    if (!t)
        return;
    if (tag != TAG_ENTRY && tag != TAG_STEP) {
        ft_ring_drop(t, FT_DROP_STALE, 1);
        return;
    }
    e = hold(core, t, as_number(handle));
    if (!e)
        return;
    step = tag == TAG_STEP ? step_of(e, as_number(handle)) : NULL;
    if (tag == TAG_STEP && !step) {
        ft_ring_drop(t, FT_DROP_STALE, 1);
        release(e);
        return;
    }
    e->record.events++;
    if (step)
        note_step(step, state, args);
    else if (state == FT_NCCL_KERNEL_CH_STOP && e->record.kind == FT_SEGMENT_KERNEL && args)
        e->record.u.kernel.end_ns = args->kernel_ch.gpu_time_ns;
    release(e);
}

static void show_comm(struct ft_segment_comm *to, const struct ft_trace_options *options)
{
    uint32_t sequence = atomic_fetch_add_explicit(&to->sequence, 1, memory_order_relaxed);

    /* What follows must not be seen before the odd number: the store of a read-modify-write orders
     * only what came before it (arm64). */
    atomic_thread_fence(memory_order_release);
    to->open = options != NULL;
    if (options) {
        to->comm_id = options->comm_id;
        to->rank = options->rank;
        to->ranks = options->ranks;
        to->nodes = options->nodes;
        to->abi = options->abi;
        to->opened_ns = now_ns();
        snprintf(to->name, sizeof(to->name), "%s", options->name ? options->name : "");
        ft_gpu_bus_id(to->gpu);
    }
    atomic_store_explicit(&to->sequence, sequence + 2, memory_order_release);
}

static struct ft_trace_comm *find_free(struct ft_core *core)
{
    static uint32_t next;

    /* A slot just closed is the last to be taken again: late events of it still come. */
    for (uint32_t i = 0; i < FT_SEGMENT_COMMS; i++) {
        struct ft_trace_comm *comm = &core->comms[next++ % FT_SEGMENT_COMMS];

        if (!comm->open)
            return comm;
    }
    return NULL;
}

int ft_trace_open(const struct ft_trace_options *options, struct ft_trace_comm **out)
{
    const char *socket = secure_getenv("FABRICTRACE_SOCKET");
    struct ft_trace_comm *comm;
    struct ft_core *core;
    int rc;

    ft_core_lock();
    rc = ft_core_get(&core);
    if (rc)
        goto out;
    comm = find_free(core);
    if (!comm) {
        atomic_fetch_add(&core->segment->comms_refused, 1);
        rc = -ENOSPC;
        goto out;
    }
    comm->comm_id = options->comm_id;
    comm->rank = options->rank;
    comm->ranks = options->ranks;
    show_comm(&core->segment->comm[comm - core->comms], options);
    comm->open = true;
    /* Without the thread the rings fill up and count: no reason to stop a job. */
    if (core->open++ == 0)
        core->link = ft_link_new(core->memory_fd, socket ? socket : FT_RUNSTATEDIR "/nccl.sock");
    *out = comm;
out:
    ft_core_unlock();
    return rc;
}

static void sweep(struct ft_core *core, const struct ft_trace_comm *comm)
{
    struct ft_core_thread *t = ft_core_reserve(core, (uintptr_t)pthread_self());

    for (uint32_t i = 0; t && i < FT_SEGMENT_RINGS; i++) {
        if (!core->threads[i].owner)
            continue;
        for (uint32_t k = 0; k < FT_CORE_ENTRIES; k++) {
            struct ft_core_entry *e = &core->entries[i][k];
            uint64_t state = e->state;

            if ((state & (FT_ENTRY_USED | FT_ENTRY_BUSY)) != FT_ENTRY_USED ||
                !atomic_compare_exchange_strong(&e->state, &state, state | FT_ENTRY_BUSY))
                continue;
            if (e->comm != comm) {
                release(e);
                continue;
            }
            e->record.flags |= FT_SEGMENT_INCOMPLETE;
            e->record.end_ns = e->touched_ns;
            emit_entry(t, e);
            retire(e);
        }
    }
}

void ft_trace_close(struct ft_trace_comm *comm)
{
    struct ft_core *core = ft_core;
    struct ft_link *link = NULL;

    if (!core || !ours(core, comm))
        return;
    ft_core_lock();
    if (comm->open) {
        sweep(core, comm);
        show_comm(&core->segment->comm[comm - core->comms], NULL);
        comm->open = false;
        if (--core->open == 0) {
            link = core->link;
            core->link = NULL;
        }
    }
    ft_core_unlock();
    ft_link_free(link);
}

const struct ft_segment *ft_trace_segment(void)
{
    struct ft_core *core = ft_core;

    return core ? core->segment : NULL;
}
