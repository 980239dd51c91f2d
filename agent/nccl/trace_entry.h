// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_NCCL_TRACE_ENTRY_H
#define FT_AGENT_NCCL_TRACE_ENTRY_H
/*
 * Events that stay open: their entries in a thread's pool, and what of them is shown to the agent
 * while they are in flight. For trace.c and comms.c alone, inline since it runs inside of NCCL's
 * calls. Whoever holds an entry is its only writer. Thread: any, at once.
 */
#include <string.h>
#include <time.h>

#include "agent/nccl/core.h"
#include "agent/nccl/trace_ring.h"

#define FT_ENTRY_ABANDONED_NS INT64_C(30000000000) /* this old, it may be replaced by a new one */
#define FT_ENTRY_PROBES       16
#define FT_ENTRY_SPINS        64 /* well below a microsecond */

/* A handle: mark 8 bits, tag 4, thread 6, entry 10, step 5, generation 31. An operation has its
 * communicator (8) and a number of its own (44) instead of the last four. */
#define FT_HANDLE_MARK       UINT64_C(0xf7)
#define FT_HANDLE_GENERATION 0x7fffffffu
#define FT_HANDLE_NUMBER     ((UINT64_C(1) << 44) - 1)

enum ft_handle_tag {
    FT_HANDLE_OP = 1,
    FT_HANDLE_ENTRY,
    FT_HANDLE_STEP,
};

_Static_assert(FT_CORE_ENTRIES <= 1 << 10 && FT_CORE_STEPS <= 1 << 5, "bits of a handle");
_Static_assert(FT_SEGMENT_COMMS <= 1 << 8 && FT_SEGMENT_RINGS <= 1 << 6, "bits of a handle");

static inline int64_t ft_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static inline enum ft_handle_tag ft_handle_tag(uint64_t handle)
{
    return handle >> 56 == FT_HANDLE_MARK ? (enum ft_handle_tag)(handle >> 52 & 0xf) : 0;
}

static inline uint32_t ft_handle_thread(uint64_t handle)
{
    return handle >> 46 & 0x3f;
}

static inline uint32_t ft_handle_entry(uint64_t handle)
{
    return handle >> 36 & 0x3ff;
}

static inline uint32_t ft_handle_step(uint64_t handle)
{
    return handle >> 31 & 0x1f;
}

static inline uint32_t ft_handle_comm(uint64_t op)
{
    return op >> 44 & 0xff;
}

static inline uint64_t ft_handle_of_op(struct ft_trace_comm *comm)
{
    uint64_t number = atomic_fetch_add_explicit(&comm->ops, 1, memory_order_relaxed) + 1;

    return FT_HANDLE_MARK << 56 | (uint64_t)FT_HANDLE_OP << 52 | (uint64_t)comm->index << 44 |
           (number & FT_HANDLE_NUMBER);
}

/* The number in its communicator, 0 when the operation is another one's. */
static inline uint64_t ft_handle_number(const struct ft_trace_comm *comm, uint64_t op)
{
    uint64_t number = op & FT_HANDLE_NUMBER;

    if (ft_handle_tag(op) != FT_HANDLE_OP || ft_handle_comm(op) != comm->index ||
        number <= comm->ops_before)
        return 0;
    return number - comm->ops_before;
}

static inline struct ft_segment_flight *ft_entry_flight(struct ft_core *core,
                                                        const struct ft_core_entry *e)
{
    size_t i = (size_t)(e - &core->entries[0][0]);

    return &core->segment->flight[i / FT_CORE_ENTRIES][i % FT_CORE_ENTRIES];
}

/* What is written until ft_flight_shown() must not be seen before the odd number: the store of a
 * read-modify-write orders only what came before it (arm64). */
static inline void ft_flight_change(struct ft_segment_flight *f)
{
    uint32_t sequence = atomic_load_explicit(&f->sequence, memory_order_relaxed);

    atomic_store_explicit(&f->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static inline void ft_flight_shown(struct ft_segment_flight *f)
{
    uint32_t sequence = atomic_load_explicit(&f->sequence, memory_order_relaxed);

    atomic_store_explicit(&f->sequence, sequence + 1, memory_order_release);
}

static inline void ft_flight_moved(struct ft_segment_flight *f, enum ft_segment_wait wait,
                                   int64_t now)
{
    atomic_store_explicit(&f->moved, ft_segment_step(wait, now), memory_order_relaxed);
}

static inline void ft_flight_step(struct ft_segment_flight *f, unsigned at, uint64_t step)
{
    atomic_store_explicit(&f->step[at], step, memory_order_relaxed);
}

/* Shows an entry that was filled in. */
static inline void ft_entry_show(struct ft_core *core, const struct ft_core_entry *e,
                                 uint32_t expected)
{
    struct ft_segment_flight *f = ft_entry_flight(core, e);
    size_t i = (size_t)(e - &core->entries[0][0]);
    const struct ft_segment_record *r = &e->record;
    bool proxy = r->kind == FT_SEGMENT_PROXY;

    ft_flight_change(f);
    f->kind = r->kind;
    f->flags = r->flags;
    f->op = r->op;
    f->number = r->number;
    f->start_ns = r->start_ns;
    f->comm = e->comm->index;
    f->rank = r->rank;
    f->peer = proxy ? r->u.proxy.peer : -1;
    f->channel = proxy ? r->u.proxy.channel : r->u.kernel.channel;
    f->expected = expected;
    atomic_store_explicit(&f->done, 0, memory_order_relaxed);
    ft_flight_moved(f, FT_WAIT_QUEUED, r->start_ns);
    ft_flight_shown(f);
    atomic_fetch_or_explicit(&core->segment->ring[i / FT_CORE_ENTRIES].open[i / 64 % 8],
                             UINT64_C(1) << i % 64, memory_order_relaxed);
}
_Static_assert(FT_CORE_ENTRIES / 64 == 8, "words of the bits");

static inline void ft_entry_hide(struct ft_core *core, const struct ft_core_entry *e)
{
    struct ft_segment_flight *f = ft_entry_flight(core, e);
    size_t i = (size_t)(e - &core->entries[0][0]);

    atomic_fetch_and_explicit(&core->segment->ring[i / FT_CORE_ENTRIES].open[i / 64 % 8],
                              ~(UINT64_C(1) << i % 64), memory_order_relaxed);
    ft_flight_change(f);
    f->kind = 0;
    ft_flight_shown(f);
    for (uint32_t used = e->used; used; used &= used - 1)
        ft_flight_step(f, (unsigned)__builtin_ctz(used), 0);
}

static inline void ft_entry_emit(struct ft_core_thread *t, const struct ft_core_entry *e)
{
    struct ft_segment_record *r = ft_ring_reserve(t, e->record.events);

    if (r) {
        *r = e->record;
        ft_ring_commit(t);
    }
}

static inline void ft_entry_release(struct ft_core_entry *e)
{
    uint64_t state = atomic_load_explicit(&e->state, memory_order_relaxed);

    atomic_store_explicit(&e->state, state & ~(uint64_t)FT_ENTRY_BUSY, memory_order_release);
}

/* Frees the entry: its handles are stale from now on. */
static inline void ft_entry_retire(struct ft_core *core, struct ft_core_entry *e)
{
    uint64_t state = atomic_load_explicit(&e->state, memory_order_relaxed);

    ft_entry_hide(core, e);
    atomic_store_explicit(&e->state, ((state >> 2) + 1) << 2, memory_order_release);
}

/* The entry of a handle, for the caller alone until it is released or retired; NULL with the drop
 * counted. */
static inline struct ft_core_entry *ft_entry_hold(struct ft_core *core, struct ft_core_thread *t,
                                                  uint64_t handle)
{
    uint32_t index = ft_handle_entry(handle);
    struct ft_core_entry *e;
    uint64_t state;

    if (index >= FT_CORE_ENTRIES) {
        ft_ring_drop(t, FT_DROP_STALE, 1);
        return NULL;
    }
    e = &core->entries[ft_handle_thread(handle)][index];
    for (int i = 0; i < FT_ENTRY_SPINS; i++) {
        state = atomic_load_explicit(&e->state, memory_order_relaxed);
        if (!(state & FT_ENTRY_USED) ||
            (state >> 2 & FT_HANDLE_GENERATION) != (handle & FT_HANDLE_GENERATION)) {
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
static inline bool ft_entry_take(struct ft_core *core, struct ft_core_thread *t,
                                 struct ft_core_entry *e, int64_t now, bool abandoned)
{
    uint64_t state = atomic_load_explicit(&e->state, memory_order_relaxed);
    uint64_t used = state & FT_ENTRY_USED;

    if (state & FT_ENTRY_BUSY || (used && !abandoned) ||
        !atomic_compare_exchange_strong_explicit(&e->state, &state,
                                                 state | FT_ENTRY_USED | FT_ENTRY_BUSY,
                                                 memory_order_acquire, memory_order_relaxed))
        return false;
    if (!used)
        return true;
    if (now - e->touched_ns < FT_ENTRY_ABANDONED_NS) {
        ft_entry_release(e);
        return false;
    }
    e->record.flags |= FT_SEGMENT_INCOMPLETE;
    ft_entry_emit(t, e);
    ft_entry_hide(core, e);
    state = atomic_load_explicit(&e->state, memory_order_relaxed);
    atomic_store_explicit(&e->state, ((state >> 2) + 1) << 2 | FT_ENTRY_USED | FT_ENTRY_BUSY,
                          memory_order_relaxed);
    return true;
}

/* Held, with the drop counted where there is none. What stands for long shows a hang:
 * it is replaced only where all that are looked at are used. */
static inline struct ft_core_entry *ft_entry_open(struct ft_core *core, struct ft_core_thread *t,
                                                  struct ft_trace_comm *comm,
                                                  enum ft_segment_kind kind, uint64_t op,
                                                  uint64_t *handle)
{
    int64_t now = ft_now_ns();
    uint32_t first = t->cursor;

    for (uint32_t i = 0; i < 2 * FT_ENTRY_PROBES; i++) {
        uint32_t index = (first + i % FT_ENTRY_PROBES) % FT_CORE_ENTRIES;
        struct ft_core_entry *e = &t->entries[index];
        uint64_t state;

        if (!ft_entry_take(core, t, e, now, i >= FT_ENTRY_PROBES))
            continue;
        t->cursor = index + 1;
        e->comm = comm;
        e->touched_ns = now;
        e->used = 0;
        memset(&e->record.u, 0, sizeof(e->record.u));
        ft_ring_fill_head(&e->record, kind, comm);
        e->record.op = op;
        e->record.number = ft_handle_number(comm, op);
        e->record.start_ns = e->record.end_ns = now;
        state = atomic_load_explicit(&e->state, memory_order_relaxed);
        *handle = FT_HANDLE_MARK << 56 | (uint64_t)FT_HANDLE_ENTRY << 52 |
                  (uint64_t)t->index << 46 | (uint64_t)index << 36 |
                  (state >> 2 & FT_HANDLE_GENERATION);
        return e;
    }
    t->cursor = first + FT_ENTRY_PROBES;
    ft_ring_drop(t, FT_DROP_POOL_FULL, 1);
    return NULL;
}

#endif
