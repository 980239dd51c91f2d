// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/numbering.h"

#include <string.h>

/* Rows that one may have to be put before: what ended within a second. */
#define ORDER_MAX 256

static struct ft_recent_peer *find_peer(const struct ft_recent_rank *rank, uint32_t peer)
{
    const struct ft_recent_peer *p = rank->peers;

    while (p < rank->peers + rank->peer_count && p->peer != peer)
        p++;
    return p < rank->peers + FT_RECENT_PEERS ? (struct ft_recent_peer *)(uintptr_t)p : NULL;
}

/* What was reported without its transfers, or in a sum, is counted where the peer is known to be
 * one over the network. */
static void take_pair(struct ft_recent_rank *rank, const Fabrictrace__Collective *c,
                      struct ft_recent_row *row)
{
    struct ft_recent_peer *p = find_peer(rank, c->peer);
    bool seen = c->n_peers > 0 && c->operations <= 1;
    uint64_t *counted;

    if (!p || (!seen && p == rank->peers + rank->peer_count))
        return;
    if (p == rank->peers + rank->peer_count) {
        *p = (struct ft_recent_peer){.peer = c->peer};
        rank->peer_count++;
    }
    counted = strcmp(c->op, "Recv") == 0 ? &p->received : &p->sent;
    row->peer = c->peer;
    row->sequence = *counted;
    *counted += c->operations > 1 ? c->operations : 1;
    if (seen && c->number > p->seen)
        p->seen = c->number;
    if (!seen && c->number > p->unseen)
        p->unseen = c->number;
}

void ft_numbering_take(struct ft_recent_rank *rank, const Fabrictrace__Collective *c,
                       struct ft_recent_row *row)
{
    uint64_t more = c->operations > 1 ? c->operations - 1 : 0;

    if (c->number && c->number <= UINT64_MAX - more) {
        rank->first_number =
            rank->numbers && rank->first_number < c->number ? rank->first_number : c->number;
        rank->last_number =
            rank->last_number > c->number + more ? rank->last_number : c->number + more;
        rank->numbers += 1 + more;
    }
    if (!c->has_sequence && c->has_peer)
        take_pair(rank, c, row);
}

void ft_numbering_forget(struct ft_recent_rank *rank)
{
    rank->peer_count = 0;
    rank->numbers = rank->first_number = rank->last_number = 0;
}

uint64_t ft_numbering_next(const struct ft_recent_rank *rank, uint32_t peer, bool receives)
{
    const struct ft_recent_peer *p = find_peer(rank, peer);

    if (!p || p == rank->peers + rank->peer_count)
        return 0;
    return receives ? p->received : p->sent;
}

static struct ft_recent_row *row_at(struct ft_recent_rank *rank, size_t i)
{
    return &rank->rows[(rank->first + i) % rank->size];
}

void ft_numbering_order(struct ft_recent_rank *rank)
{
    for (size_t n = 1; n < rank->count && n <= ORDER_MAX; n++) {
        struct ft_recent_row *row = row_at(rank, rank->count - n);
        struct ft_recent_row *before = row_at(rank, rank->count - n - 1), moved = *row;

        if (row->number == 0 || before->number <= row->number)
            return;
        /* Those of one peer were counted in the order of their coming. */
        if (row->peer != FT_RECENT_NO_PEER && row->peer == before->peer &&
            row->function == before->function) {
            moved.sequence = before->sequence;
            before->sequence = row->sequence;
        }
        *row = *before;
        *before = moved;
    }
}

bool ft_numbering_is_known(const struct ft_recent_rank *rank, uint32_t peer)
{
    const struct ft_recent_progress *at = &rank->progress;
    const struct ft_recent_peer *p = find_peer(rank, peer);

    if (rank->numbers != rank->last_number - rank->first_number + (rank->numbers > 0))
        return false;
    if (at->in_flight && at->row.number && rank->numbers && at->row.number > rank->last_number + 1)
        return false;
    return !p || p == rank->peers + rank->peer_count || p->unseen <= p->seen;
}
