// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "daemon/pairing/state.h"

/* A RoCE host without an agent is believed to be there for this time. */
#define STRANGER_MS 600000
/* Both ends of a connection come within this time. */
#define TOGETHER_MS 30000

enum look {
    LOOK_NONE,
    LOOK_ONE,
    LOOK_SEVERAL,
    LOOK_LEFT,   /* one, and one that left may have been the peer of either */
    LOOK_ITSELF, /* it may be its own peer */
};

static struct ft_pairing_bucket_key key_of(uint32_t group, const struct ft_pairing_qp *e)
{
    bool lo = e->key.local <= e->remote;

    return (struct ft_pairing_bucket_key){group, lo ? e->key.local : e->remote,
                                          lo ? e->remote : e->key.local};
}

static uint32_t index_of(const struct ft_pairing *p, const struct ft_pairing_qp *e)
{
    return ft_table_index(p->ends, e);
}

static struct ft_pairing_process *process_of(const struct ft_pairing *p,
                                             const struct ft_pairing_qp *e)
{
    return e->process == FT_NONE ? NULL : ft_table_at(p->processes, e->process);
}

/* Pairs that rest on being alone are none with one more or one less. An end that was there before,
 * and comes with its process and its own peer, changes nothing for what it is part of. */
static void upset(struct ft_pairing *p, struct ft_pairing_bucket *b, const struct ft_pairing_qp *by)
{
    bool moves_along = ft_pairing_holds(p, by);

    for (int i = 0; i < FT_PAIRING_BUCKET_PAIRS; i++) {
        struct ft_pairing_qp *e = b->pairs[i] ? ft_pairing_at(p, b->pairs[i] - 1) : NULL;
        const struct ft_pairing_qp *peer = e ? ft_pairing_peer(p, e) : NULL;

        if (!e ||
            (moves_along && peer && (e->process == by->process || peer->process == by->process)))
            continue;
        b->pairs[i] = 0;
        ft_pairing_mark_uncertain(p, e);
    }
}

static void enter(struct ft_pairing *p, uint32_t group, struct ft_pairing_qp *e)
{
    const struct ft_pairing_bucket_key key = key_of(group, e);
    struct ft_pairing_bucket *b;
    bool fresh;

    b = ft_table_insert(p->buckets, &key, &fresh);
    if (!b) {
        p->uncounted++;
        return;
    }
    if (e->key.local <= e->remote) {
        b->lo_count++;
        b->lo_sum += index_of(p, e);
    } else {
        b->hi_count++;
        b->hi_sum += index_of(p, e);
    }
    upset(p, b, e);
}

/* It does not count there, and may be the peer of who does. */
static void disturb(struct ft_pairing *p, uint32_t group, const struct ft_pairing_qp *e)
{
    const struct ft_pairing_bucket_key key = key_of(group, e);
    struct ft_pairing_bucket *b = ft_table_find(p->buckets, &key);

    if (b)
        upset(p, b, e);
}

static void leave(struct ft_pairing *p, uint32_t group, struct ft_pairing_qp *e, bool gone)
{
    const struct ft_pairing_bucket_key key = key_of(group, e);
    struct ft_pairing_bucket *b = ft_table_find(p->buckets, &key);
    bool lo = e->key.local <= e->remote;

    if (!b || (lo ? b->lo_count : b->hi_count) == 0)
        return;
    if (lo) {
        b->lo_count--;
        b->lo_sum -= index_of(p, e);
    } else {
        b->hi_count--;
        b->hi_sum -= index_of(p, e);
    }
    if (gone) {
        b->left_seq = p->seq;
        upset(p, b, e);
    }
    if (b->lo_count + b->hi_count == 0)
        ft_table_remove(p->buckets, b);
}

static struct ft_pairing_named_key claim_key(const struct ft_pairing_qp *reported)
{
    struct ft_pairing_named_key key;

    memset(&key, 0, sizeof(key));
    key.ip = reported->dst;
    key.local = reported->remote;
    key.remote = reported->key.local;
    return key;
}

static void named(struct ft_pairing *p, struct ft_pairing_qp *reported)
{
    const struct ft_pairing_named_key key = claim_key(reported);
    uint32_t port = ft_pairing_port_at(p, &reported->dst);
    struct ft_pairing_qp *e = port == FT_NONE ? NULL : ft_pairing_find(p, port, reported->remote);
    struct ft_pairing_named *c;
    bool fresh;

    c = ft_table_insert(p->named, &key, &fresh);
    if (!c) {
        p->uncounted++;
        return;
    }
    c->count++;
    c->sum += index_of(p, reported);
    /* Another candidate for an end whose peer was found without samples. */
    if (e && e->remote == reported->key.local && e->by > FT_PAIRED_BY_BOTH_HOSTS)
        ft_pairing_mark_uncertain(p, e);
}

static void unclaim(struct ft_pairing *p, const struct ft_pairing_qp *reported)
{
    const struct ft_pairing_named_key key = claim_key(reported);
    struct ft_pairing_named *c = ft_table_find(p->named, &key);

    if (!c)
        return;
    c->count--;
    c->sum -= index_of(p, reported);
    if (c->count == 0)
        ft_table_remove(p->named, c);
}

void ft_pairing_group_add(struct ft_pairing *p, struct ft_pairing_qp *e)
{
    const struct ft_pairing_process *process = process_of(p, e);

    if (e->counted)
        return;
    e->counted = true;
    if (e->reported) {
        named(p, e);
        return;
    }
    enter(p, 0, e);
    for (uint32_t i = 0; process && i < process->comm_count; i++) {
        if (e->surplus)
            disturb(p, process->comms[i] + 1, e);
        else
            enter(p, process->comms[i] + 1, e);
    }
}

void ft_pairing_group_remove(struct ft_pairing *p, struct ft_pairing_qp *e, bool gone)
{
    const struct ft_pairing_process *process = process_of(p, e);

    if (!e->counted)
        return;
    e->counted = false;
    if (e->reported) {
        unclaim(p, e);
        return;
    }
    leave(p, 0, e, gone);
    for (uint32_t i = 0; process && !e->surplus && i < process->comm_count; i++)
        leave(p, process->comms[i] + 1, e, gone);
}

static void mark(struct ft_pairing *p, uint32_t group, const struct ft_pairing_qp *e, bool paired)
{
    const struct ft_pairing_bucket_key key = key_of(group, e);
    struct ft_pairing_bucket *b = ft_table_find(p->buckets, &key);
    uint32_t own = index_of(p, e) + 1, peer = e->peer == FT_NONE ? own : e->peer + 1;
    uint32_t *slot = NULL;

    if (!b)
        return;
    for (int i = 0; i < FT_PAIRING_BUCKET_PAIRS; i++) {
        if (b->pairs[i] == own || b->pairs[i] == peer) {
            b->pairs[i] = paired ? own : 0;
            return;
        }
        if (!b->pairs[i])
            slot = &b->pairs[i];
    }
    if (paired)
        *(slot ? slot : &b->pairs[0]) = own;
}

static bool lists(const struct ft_pairing_process *process, uint32_t comm)
{
    for (uint32_t i = 0; i < process->comm_count; i++)
        if (process->comms[i] == comm)
            return true;
    return false;
}

static bool in_comm(const struct ft_pairing *p, const struct ft_pairing_qp *e, uint32_t comm)
{
    const struct ft_pairing_process *process = process_of(p, e);

    return process && lists(process, comm);
}

/* An end of the same device that fits, and cannot be the peer: it is of the same process, which is
 * one rank of a communicator, and no rank connects to itself. In a ring of two with queue pairs to
 * either side, made in the same order, each rank has one. NULL. */
static const struct ft_pairing_qp *own_other(const struct ft_pairing *p, uint32_t group,
                                             const struct ft_pairing_qp *e)
{
    const struct ft_pairing_process *process = process_of(p, e);
    const struct ft_pairing_qp *other;

    if (group == 0 || !process)
        return NULL;
    for (uint32_t i = 0; i < process->comm_count; i++)
        if (process->comms[i] == group - 1 && process->ranks[i] != 1)
            return NULL;
    other = ft_pairing_find(p, e->key.port, e->remote);
    return other && other->remote == e->key.local && other->process == e->process &&
                   other->counted && !other->reported
               ? other
               : NULL;
}

/* Whether a group has another candidate than the peer that an end is paired with. */
static bool has_rival(const struct ft_pairing *p, uint32_t group, const struct ft_pairing_qp *e)
{
    const struct ft_pairing_bucket_key key = key_of(group, e);
    const struct ft_pairing_bucket *b = ft_table_find(p->buckets, &key);
    const struct ft_pairing_qp *peer = ft_pairing_peer(p, e);
    uint32_t known = own_other(p, group, e) != NULL;

    if (!b || !peer)
        return true;
    known += peer->counted && !peer->reported && in_comm(p, peer, group - 1);
    return (e->key.local <= e->remote ? b->hi_count : b->lo_count) > known;
}

void ft_pairing_group_enter(struct ft_pairing *p, uint32_t group, struct ft_pairing_qp *e)
{
    enter(p, group, e);
    if (!ft_pairing_holds(p, e))
        return;
    if (has_rival(p, group, e))
        ft_pairing_mark_uncertain(p, e);
    else
        mark(p, group, e, true);
}

void ft_pairing_group_leave(struct ft_pairing *p, uint32_t group, struct ft_pairing_qp *e)
{
    leave(p, group, e, true);
}

void ft_pairing_group_release(struct ft_pairing *p, uint32_t group, const struct ft_pairing_qp *e)
{
    mark(p, group, e, false);
}

void ft_pairing_group_mark(struct ft_pairing *p, const struct ft_pairing_qp *e, bool paired)
{
    const struct ft_pairing_process *process = process_of(p, e);

    if (e->reported)
        return;
    /* Inside a communicator the others do not matter. */
    if (e->comm_index == FT_NONE)
        mark(p, 0, e, paired);
    for (uint32_t i = 0; process && i < process->comm_count; i++)
        mark(p, process->comms[i] + 1, e, paired);
}

void ft_pairing_groups_begin(struct ft_pairing *p)
{
    p->covered = -1;
    p->all_complete_ms = INT64_MAX;
}

void ft_pairing_groups_host(struct ft_pairing *p, void *host)
{
    const struct ft_pairing_host *h = host;

    if (p->now_ms - h->heard_ms < FT_PAIRING_HOST_MS && h->complete_ms < p->all_complete_ms)
        p->all_complete_ms = h->complete_ms;
}

void ft_pairing_groups_comm(struct ft_pairing *p, void *comm)
{
    struct ft_pairing_comm *c = comm;

    (void)p;
    c->complete_ms = c->open == c->ranks ? INT64_MAX : 0;
}

void ft_pairing_groups_member(struct ft_pairing *p, void *member)
{
    const struct ft_pairing_member *m = member;
    const struct ft_pairing_process *process = ft_table_at(p->processes, m->process);
    const struct ft_pairing_host *h = ft_table_at(p->hosts, process->key.host);
    struct ft_pairing_comm *comm = ft_table_at(p->comms, m->key.comm);
    /* An end without a process might be of this one; and its own may not all be counted. */
    bool known = !h->anonymous && process->surplus == FT_NONE && lists(process, m->key.comm);
    int64_t complete_ms = known ? h->complete_ms : 0;

    if (complete_ms < comm->complete_ms)
        comm->complete_ms = complete_ms;
}

/* Of two different numbers: who may be the peer of one end. Whether that one has others to choose
 * from is a question of its own. */
static enum look look(const struct ft_pairing *p, uint32_t group, const struct ft_pairing_qp *e,
                      struct ft_pairing_qp **peer)
{
    const struct ft_pairing_bucket_key key = key_of(group, e);
    const struct ft_pairing_bucket *b = ft_table_find(p->buckets, &key);
    const struct ft_pairing_qp *other = own_other(p, group, e);
    bool lo = e->key.local <= e->remote;
    uint32_t others;
    uint64_t sum;

    if (!b)
        return LOOK_NONE;
    others = (lo ? b->hi_count : b->lo_count) - (other != NULL);
    sum = (lo ? b->hi_sum : b->lo_sum) - (other ? index_of(p, other) : 0);
    if (others == 0)
        return LOOK_NONE;
    if (others > 1)
        return LOOK_SEVERAL;
    *peer = ft_pairing_at(p, (uint32_t)sum);
    if (e->seq <= b->left_seq || (*peer)->seq <= b->left_seq)
        return LOOK_LEFT;
    return LOOK_ONE;
}

/* A candidate of one group and those found before: the worse result, and the same candidate only
 * once. */
static enum look both(enum look a, const struct ft_pairing_qp *first, enum look b,
                      const struct ft_pairing_qp *second)
{
    if (b == LOOK_NONE)
        return a;
    if (a == LOOK_NONE)
        return b;
    if (a == LOOK_SEVERAL || b == LOOK_SEVERAL || first != second)
        return LOOK_SEVERAL;
    return a == LOOK_LEFT ? a : b;
}

static bool share_comm(const struct ft_pairing *p, const struct ft_pairing_qp *a,
                       const struct ft_pairing_qp *b)
{
    const struct ft_pairing_process *process = process_of(p, a);

    for (uint32_t i = 0; process && i < process->comm_count; i++)
        if (in_comm(p, b, process->comms[i]))
            return true;
    return false;
}

static enum look look_claims(const struct ft_pairing *p, const struct ft_pairing_qp *e,
                             struct ft_pairing_qp **peer)
{
    const struct ft_pairing_port *port = ft_pairing_port_of(p, e);
    uint32_t count = 0;

    for (uint32_t i = 0; i < port->address_count; i++) {
        struct ft_pairing_named_key key;
        const struct ft_pairing_named *c;

        memset(&key, 0, sizeof(key));
        key.ip = port->addresses[i];
        key.local = e->key.local;
        key.remote = e->remote;
        c = ft_table_find(p->named, &key);
        if (!c)
            continue;
        count += c->count;
        *peer = ft_pairing_at(p, (uint32_t)c->sum);
    }
    return count == 0 ? LOOK_NONE : count == 1 ? LOOK_ONE : LOOK_SEVERAL;
}

/* Where the search of one end alone leads. */
struct choice {
    struct ft_pairing_qp *peer;
    enum look look;
    bool inside; /* of communicators, one of which is comm */
    bool named;  /* the peer's host said so */
    uint32_t comm;
    int64_t complete_ms;
};

static void choose_inside(const struct ft_pairing *p, const struct ft_pairing_qp *e,
                          struct choice *out)
{
    const struct ft_pairing_process *process = process_of(p, e);

    out->complete_ms = INT64_MAX;
    for (uint32_t i = 0; process && i < process->comm_count; i++) {
        const struct ft_pairing_comm *comm = ft_table_at(p->comms, process->comms[i]);
        struct ft_pairing_qp *peer = NULL;
        enum look found = look(p, process->comms[i] + 1, e, &peer);

        if (comm->complete_ms < out->complete_ms)
            out->complete_ms = comm->complete_ms;
        if (found != LOOK_NONE && out->look == LOOK_NONE)
            out->comm = process->comms[i];
        out->look = both(out->look, out->peer, found, peer);
        if (peer)
            out->peer = peer;
        out->inside |= found != LOOK_NONE;
    }
    if (process && (process->more_comms || process->surplus != FT_NONE))
        out->look = LOOK_SEVERAL;
}

static struct choice choose(const struct ft_pairing *p, const struct ft_pairing_qp *e)
{
    struct choice out = {.comm = FT_NONE};
    struct ft_pairing_qp *reported = NULL, *peer = NULL;
    enum look named = look_claims(p, e, &reported);
    /* NCCL flushes GPU memory by a queue pair that is connected to itself. */
    bool itself = e->key.local == e->remote;

    if (!itself)
        choose_inside(p, e, &out);
    if (named == LOOK_ONE && !out.inside && share_comm(p, e, reported)) {
        const struct ft_pairing_process *process = process_of(p, e);

        out.inside = true;
        for (uint32_t i = 0; i < process->comm_count; i++)
            if (in_comm(p, reported, process->comms[i]))
                out.comm = process->comms[i];
    }
    if (itself && named == LOOK_NONE)
        out.look = LOOK_ITSELF;
    if (!itself && !out.inside && out.look == LOOK_NONE) {
        out.look = look(p, 0, e, &peer);
        out.peer = peer;
        out.complete_ms = p->all_complete_ms;
    }
    if (named == LOOK_NONE)
        return out;
    out.named = out.look == LOOK_NONE;
    out.look = both(out.look, out.peer, named, reported);
    out.peer = reported;
    return out;
}

/* Both can have come within a short time, by what is known of when they did. */
static bool may_be_together(const struct ft_pairing_qp *a, const struct ft_pairing_qp *b)
{
    return !((a->begun && b->since_ms < a->since_ms - TOGETHER_MS) ||
             (b->begun && a->since_ms < b->since_ms - TOGETHER_MS));
}

uint32_t ft_pairing_groups_cover(struct ft_pairing *p, uint32_t items)
{
    uint32_t from = p->sweep.nic;

    if (p->covered >= 0)
        return items;
    if (p->hooks.covered && !p->hooks.covered(p->hooks.arg, &p->sweep.nic, items)) {
        p->covered = false;
        return items - 1;
    }
    if (p->hooks.covered && p->sweep.nic != UINT32_MAX)
        return p->sweep.nic - from < items ? items - (p->sweep.nic - from) : 0;
    p->covered = true;
    return items - 1;
}

/* Whether all who could be in a pair anywhere in the fabric are known. */
static bool all_are_heard(struct ft_pairing *p)
{
    if (p->stranger_ms && p->now_ms - p->stranger_ms < STRANGER_MS)
        return false;
    while (p->covered < 0)
        ft_pairing_groups_cover(p, UINT32_MAX);
    return p->covered;
}

struct ft_pairing_qp *ft_pairing_groups_choose(struct ft_pairing *p, const struct ft_pairing_qp *e,
                                               enum ft_paired_by *by, uint32_t *comm,
                                               enum ft_pair_state *why)
{
    static const enum ft_pair_state reasons[] = {
        [LOOK_NONE] = FT_PAIR_NO_PEER,
        [LOOK_SEVERAL] = FT_PAIR_SEVERAL_PEERS,
        [LOOK_LEFT] = FT_PAIR_PEER_GONE,
        [LOOK_ITSELF] = FT_PAIR_ITSELF,
    };
    struct choice there = choose(p, e), back;
    int64_t since_ms;

    *why = there.look == LOOK_ONE ? FT_PAIR_SEVERAL_PEERS : reasons[there.look];
    if (there.look != LOOK_ONE)
        return NULL;
    back = there.named ? there : choose(p, there.peer);
    if (!there.named &&
        (back.look != LOOK_ONE || back.peer != e || back.named || back.inside != there.inside))
        return NULL;
    since_ms = e->since_ms > there.peer->since_ms ? e->since_ms : there.peer->since_ms;
    if (back.complete_ms < there.complete_ms)
        there.complete_ms = back.complete_ms;
    *why = FT_PAIR_INCOMPLETE;
    if (p->uncounted || (!there.named && there.complete_ms == 0))
        return NULL;
    if (!there.named && !there.inside && !all_are_heard(p))
        return NULL;
    *why = FT_PAIR_WAITING;
    if (!there.named && there.complete_ms < since_ms + FT_PAIRING_LISTED_MS)
        return NULL;
    *why = FT_PAIR_UNTIMED;
    if (!may_be_together(e, there.peer) ||
        (!there.named && !there.inside && !(e->begun && there.peer->begun)))
        return NULL;
    *why = FT_PAIR_PEER_GONE;
    if (e->spent || there.peer->spent)
        return NULL;
    *by = there.named    ? FT_PAIRED_BY_PEER
          : there.inside ? FT_PAIRED_BY_COMMUNICATOR
                         : FT_PAIRED_BY_FABRIC;
    *comm = there.inside ? there.comm : FT_NONE;
    return there.peer;
}
