// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_NCCL_TRACE_RING_H
#define FT_AGENT_NCCL_TRACE_RING_H
/*
 * Records into a thread's ring: room in it, what is dropped without room, and the fields that come
 * from NCCL. For trace.c alone, inline since it runs inside of NCCL's calls. Thread: the ring's.
 */
#include <stdatomic.h>

#include "agent/nccl/core.h"
#include "agent/nccl/trace.h"

/* One writer, so no read-modify-write. */
static inline void ft_ring_count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static inline void ft_ring_drop(struct ft_core_thread *t, enum ft_segment_drop why, uint64_t events)
{
    ft_ring_count(&t->ring->drops[why], events);
}

/* Where the next record goes, NULL when the ring is full; ft_ring_commit() hands it over. */
static inline struct ft_segment_record *ft_ring_reserve(struct ft_core_thread *t, uint32_t events)
{
    if (t->head - t->tail_seen >= FT_SEGMENT_SLOTS) {
        t->tail_seen = atomic_load_explicit(&t->ring->tail, memory_order_acquire);
        if (t->head - t->tail_seen >= FT_SEGMENT_SLOTS) {
            ft_ring_drop(t, FT_DROP_RING_FULL, events);
            return NULL;
        }
    }
    return &t->records[t->head % FT_SEGMENT_SLOTS];
}

static inline void ft_ring_commit(struct ft_core_thread *t)
{
    t->head++;
    atomic_store_explicit(&t->ring->head, t->head, memory_order_release);
}

static inline void ft_ring_text(char to[FT_SEGMENT_TEXT], const char *from)
{
    unsigned i = 0;

    if (from)
        for (; i < FT_SEGMENT_TEXT - 1 && from[i]; i++)
            to[i] = from[i];
    for (; i < FT_SEGMENT_TEXT; i++)
        to[i] = '\0';
}

static inline void ft_ring_fill_head(struct ft_segment_record *r, enum ft_segment_kind kind,
                                     const struct ft_trace_comm *comm)
{
    r->kind = (uint16_t)kind;
    r->flags = 0;
    r->events = 1;
    r->comm = comm->index;
    r->comm_id = comm->comm_id;
    r->rank = comm->rank;
    r->ranks = comm->ranks;
}

static inline void ft_ring_fill_coll(struct ft_segment_op *op, const struct ft_nccl_coll *c)
{
    op->sequence = c->sequence;
    op->count = c->count;
    op->peer = c->root;
    op->channels = c->channels;
    op->warps = c->warps;
    ft_ring_text(op->func, c->func);
    ft_ring_text(op->datatype, c->datatype);
    ft_ring_text(op->algo, c->algo);
    ft_ring_text(op->proto, c->proto);
}

static inline void ft_ring_fill_p2p(struct ft_segment_op *op, const struct ft_nccl_p2p *p)
{
    op->sequence = 0;
    op->count = p->count;
    op->peer = p->peer;
    op->channels = p->channels;
    op->warps = 0;
    ft_ring_text(op->func, p->func);
    ft_ring_text(op->datatype, p->datatype);
    ft_ring_text(op->algo, NULL);
    ft_ring_text(op->proto, NULL);
}

#endif
