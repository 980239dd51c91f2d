// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/peer_list.h"

#include <stdlib.h>
#include <string.h>

#define OP_PEERS_MAX 128
/* Jobs may say anything: no sum wraps, no number is one that readers of JSON do not have. */
#define BYTES_MAX (UINT64_C(1) << 53)

/* Lists grow by doubling: their room is a power of 2, from 4 on. */
static size_t room_of(size_t count)
{
    size_t room = count ? 4 : 0;

    while (room < count)
        room *= 2;
    return room;
}

/* likely: where it is looked for first; operations of a job have their lists in the same order. */
static struct ft_collective_peer *find(const struct ft_collective *in, int32_t peer,
                                       uint32_t channel, size_t likely)
{
    if (likely < in->peer_count && in->peers[likely].peer == peer &&
        in->peers[likely].channel == channel)
        return &in->peers[likely];
    for (size_t i = 0; i < in->peer_count; i++)
        if (in->peers[i].peer == peer && in->peers[i].channel == channel)
            return &in->peers[i];
    return NULL;
}

const struct ft_collective_peer *ft_peer_list_find(const struct ft_collective *in, int32_t peer,
                                                   uint32_t channel)
{
    return find(in, peer, channel, 0);
}

bool ft_peer_list_may_grow(const struct ft_peer_room *room, const struct ft_collective *to,
                           size_t count)
{
    return count <= OP_PEERS_MAX &&
           room->used + room_of(count) - room_of(to->peer_count) <= room->max;
}

bool ft_peer_list_fits(const struct ft_peer_room *room, const struct ft_collective *to,
                       const struct ft_collective *from)
{
    size_t count = to->peer_count;

    for (size_t i = 0; i < from->peer_count; i++)
        count += find(to, from->peers[i].peer, from->peers[i].channel, i) == NULL;
    return ft_peer_list_may_grow(room, to, count);
}

static struct ft_collective_peer *grow(struct ft_peer_room *room, struct ft_collective *to)
{
    size_t had = room_of(to->peer_count), needed = room_of(to->peer_count + 1);
    struct ft_collective_peer *peers;

    if (!ft_peer_list_may_grow(room, to, to->peer_count + 1))
        return NULL;
    if (needed > had) {
        peers = realloc(to->peers, needed * sizeof(*peers));
        if (!peers)
            return NULL;
        to->peers = peers;
        room->used += needed - had;
    }
    return &to->peers[to->peer_count++];
}

static uint64_t add_bytes(uint64_t sum, uint64_t more)
{
    return more < BYTES_MAX - sum ? sum + more : BYTES_MAX;
}

static void add_qp(struct ft_collective_peer *p, uint32_t qp)
{
    for (int i = 0; i < FT_RECORD_QPS; i++) {
        if (p->qps[i] == qp)
            return;
        if (p->qps[i] == 0) {
            p->qps[i] = qp;
            return;
        }
    }
}

static void add_steps(struct ft_collective_steps *to, const struct ft_collective_steps *from)
{
    if (from->count == 0)
        return;
    if (to->count == 0 || from->min_ns < to->min_ns)
        to->min_ns = from->min_ns;
    if (from->max_ns > to->max_ns)
        to->max_ns = from->max_ns;
    to->count += from->count;
    for (int i = 0; i < FT_RECORD_BUCKETS; i++)
        to->buckets[i] += from->buckets[i];
}

void ft_peer_list_leave_out(struct ft_collective *to, const struct ft_collective_left_out *more)
{
    struct ft_collective_left_out *sum = &to->left_out;

    sum->transfers += more->transfers;
    sum->sent_bytes = add_bytes(sum->sent_bytes, more->sent_bytes);
    sum->received_bytes = add_bytes(sum->received_bytes, more->received_bytes);
}

/* Copies what is the first of its peer and channel. */
static void set(struct ft_collective_peer *p, const struct ft_collective_peer *from)
{
    *p = *from;
    p->sent_bytes = add_bytes(0, from->sent_bytes);
    p->received_bytes = add_bytes(0, from->received_bytes);
    if (p->steps.count == 0)
        memset(&p->steps, 0, sizeof(p->steps));
    memset(p->qps, 0, sizeof(p->qps));
    for (int i = 0; i < FT_RECORD_QPS && from->qps[i]; i++)
        add_qp(p, from->qps[i]);
}

bool ft_peer_list_add(struct ft_peer_room *room, struct ft_collective *to,
                      const struct ft_collective_peer *from, size_t likely)
{
    struct ft_collective_peer *p = find(to, from->peer, from->channel, likely);

    if (!p) {
        p = grow(room, to);
        if (!p) {
            ft_peer_list_leave_out(to, &(struct ft_collective_left_out){from->transfers,
                                                                        from->sent_bytes,
                                                                        from->received_bytes});
            return false;
        }
        set(p, from);
        return true;
    }
    p->transfers += from->transfers;
    p->sent_bytes = add_bytes(p->sent_bytes, from->sent_bytes);
    p->received_bytes = add_bytes(p->received_bytes, from->received_bytes);
    p->sent_messages += from->sent_messages;
    p->received_messages += from->received_messages;
    add_steps(&p->steps, &from->steps);
    for (int i = 0; i < FT_RECORD_QPS && from->qps[i]; i++)
        add_qp(p, from->qps[i]);
    return true;
}

void ft_peer_list_forget(struct ft_peer_room *room, struct ft_collective *from)
{
    room->used -= room_of(from->peer_count);
    free(from->peers);
    from->peers = NULL;
    from->peer_count = 0;
}
