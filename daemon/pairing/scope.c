// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "daemon/pairing/state.h"

/* A host that nobody has heard of for this time is none any more. */
#define HOST_MS 3600000
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

static struct ft_pairing_bucket_key key_of(uint32_t scope, const struct ft_pairing_qp *e)
{
    bool lo = e->key.local <= e->remote;

    return (struct ft_pairing_bucket_key){scope, lo ? e->key.local : e->remote,
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
 * and comes with its process and its own peer, is no news for what it is part of. */
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
        ft_pairing_doubt(p, e);
    }
}

static void enter(struct ft_pairing *p, uint32_t scope, struct ft_pairing_qp *e)
{
    const struct ft_pairing_bucket_key key = key_of(scope, e);
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

static void leave(struct ft_pairing *p, uint32_t scope, struct ft_pairing_qp *e, bool gone)
{
    const struct ft_pairing_bucket_key key = key_of(scope, e);
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

static struct ft_pairing_claim_key claim_key(const struct ft_pairing_qp *told)
{
    struct ft_pairing_claim_key key;

    memset(&key, 0, sizeof(key));
    key.ip = told->dst;
    key.local = told->remote;
    key.remote = told->key.local;
    return key;
}

static void claim(struct ft_pairing *p, struct ft_pairing_qp *told)
{
    const struct ft_pairing_claim_key key = claim_key(told);
    uint32_t port = ft_pairing_port_at(p, &told->dst);
    struct ft_pairing_qp *e = port == FT_NONE ? NULL : ft_pairing_find(p, port, told->remote);
    struct ft_pairing_claim *c;
    bool fresh;

    c = ft_table_insert(p->claims, &key, &fresh);
    if (!c) {
        p->uncounted++;
        return;
    }
    c->count++;
    c->sum += index_of(p, told);
    /* Another candidate for an end whose peer was found without samples. */
    if (e && e->remote == told->key.local && e->by > FT_PAIRED_BY_BOTH_ENDS)
        ft_pairing_doubt(p, e);
}

static void unclaim(struct ft_pairing *p, const struct ft_pairing_qp *told)
{
    const struct ft_pairing_claim_key key = claim_key(told);
    struct ft_pairing_claim *c = ft_table_find(p->claims, &key);

    if (!c)
        return;
    c->count--;
    c->sum -= index_of(p, told);
    if (c->count == 0)
        ft_table_remove(p->claims, c);
}

void ft_pairing_scope_add(struct ft_pairing *p, struct ft_pairing_qp *e)
{
    const struct ft_pairing_process *process = process_of(p, e);

    if (e->counted)
        return;
    e->counted = true;
    if (e->told) {
        claim(p, e);
        return;
    }
    enter(p, 0, e);
    for (uint32_t i = 0; process && i < process->comm_count; i++)
        enter(p, process->comms[i] + 1, e);
}

void ft_pairing_scope_remove(struct ft_pairing *p, struct ft_pairing_qp *e, bool gone)
{
    const struct ft_pairing_process *process = process_of(p, e);

    if (!e->counted)
        return;
    e->counted = false;
    if (e->told) {
        unclaim(p, e);
        return;
    }
    leave(p, 0, e, gone);
    for (uint32_t i = 0; process && i < process->comm_count; i++)
        leave(p, process->comms[i] + 1, e, gone);
}

static void mark(struct ft_pairing *p, uint32_t scope, const struct ft_pairing_qp *e, bool paired)
{
    const struct ft_pairing_bucket_key key = key_of(scope, e);
    struct ft_pairing_bucket *b = ft_table_find(p->buckets, &key);
    uint32_t own = index_of(p, e) + 1, peer = e->peer == FT_NONE ? own : e->peer + 1;
    uint32_t *place = NULL;

    if (!b)
        return;
    for (int i = 0; i < FT_PAIRING_BUCKET_PAIRS; i++) {
        if (b->pairs[i] == own || b->pairs[i] == peer) {
            b->pairs[i] = paired ? own : 0;
            return;
        }
        if (!b->pairs[i])
            place = &b->pairs[i];
    }
    if (paired)
        *(place ? place : &b->pairs[0]) = own;
}

static bool in_comm(const struct ft_pairing *p, const struct ft_pairing_qp *e, uint32_t comm)
{
    const struct ft_pairing_process *process = process_of(p, e);

    for (uint32_t i = 0; process && i < process->comm_count; i++)
        if (process->comms[i] == comm)
            return true;
    return false;
}

/* An end of the same device that fits, and cannot be the peer: it is of the same process, which is
 * one rank of a communicator, and no rank connects to itself. In a ring of two with queue pairs to
 * either side, made in the same order, each rank has one. NULL. */
static const struct ft_pairing_qp *own_other(const struct ft_pairing *p, uint32_t scope,
                                             const struct ft_pairing_qp *e)
{
    const struct ft_pairing_process *process = process_of(p, e);
    const struct ft_pairing_qp *other;

    if (scope == 0 || !process)
        return NULL;
    for (uint32_t i = 0; i < process->comm_count; i++)
        if (process->comms[i] == scope - 1 && process->ranks[i] != 1)
            return NULL;
    other = ft_pairing_find(p, e->key.port, e->remote);
    return other && other->remote == e->key.local && other->process == e->process &&
                   other->counted && !other->told
               ? other
               : NULL;
}

/* Whether a scope has more that fits than the peer an end is paired with. */
static bool has_rival(const struct ft_pairing *p, uint32_t scope, const struct ft_pairing_qp *e)
{
    const struct ft_pairing_bucket_key key = key_of(scope, e);
    const struct ft_pairing_bucket *b = ft_table_find(p->buckets, &key);
    const struct ft_pairing_qp *peer = ft_pairing_peer(p, e);
    uint32_t known = own_other(p, scope, e) != NULL;

    if (!b || !peer)
        return true;
    known += peer->counted && !peer->told && in_comm(p, peer, scope - 1);
    return (e->key.local <= e->remote ? b->hi_count : b->lo_count) > known;
}

void ft_pairing_scope_enter(struct ft_pairing *p, uint32_t scope, struct ft_pairing_qp *e)
{
    enter(p, scope, e);
    if (!ft_pairing_holds(p, e))
        return;
    if (has_rival(p, scope, e))
        ft_pairing_doubt(p, e);
    else
        mark(p, scope, e, true);
}

void ft_pairing_scope_leave(struct ft_pairing *p, uint32_t scope, struct ft_pairing_qp *e)
{
    leave(p, scope, e, true);
}

void ft_pairing_scope_release(struct ft_pairing *p, uint32_t scope, const struct ft_pairing_qp *e)
{
    mark(p, scope, e, false);
}

void ft_pairing_scope_mark(struct ft_pairing *p, const struct ft_pairing_qp *e, bool paired)
{
    const struct ft_pairing_process *process = process_of(p, e);

    if (e->told)
        return;
    /* Inside a communicator the others do not matter. */
    if (e->comm_index == FT_NONE)
        mark(p, 0, e, paired);
    for (uint32_t i = 0; process && i < process->comm_count; i++)
        mark(p, process->comms[i] + 1, e, paired);
}

/* How far each scope is whole. */
void ft_pairing_scope_begin(struct ft_pairing *p)
{
    struct ft_pairing_member *m;
    struct ft_pairing_comm *comm;
    struct ft_pairing_host *h;
    uint32_t index = 0;

    p->covered = -1;
    p->all_whole_ms = INT64_MAX;
    while ((h = ft_table_next(p->hosts, &index)))
        if (p->now_ms - h->heard_ms < HOST_MS && h->whole_ms < p->all_whole_ms)
            p->all_whole_ms = h->whole_ms;
    for (index = 0; (comm = ft_table_next(p->comms, &index));)
        comm->whole_ms = comm->open == comm->ranks ? INT64_MAX : 0;
    for (index = 0; (m = ft_table_next(p->members, &index));) {
        const struct ft_pairing_process *process = ft_table_at(p->processes, m->process);
        int64_t whole_ms;

        comm = ft_table_at(p->comms, m->key.comm);
        h = ft_table_at(p->hosts, process->key.host);
        /* An end without a process might be of this one. */
        whole_ms = h->anonymous ? 0 : h->whole_ms;
        if (whole_ms < comm->whole_ms)
            comm->whole_ms = whole_ms;
    }
}

/* Of two different numbers: who may be the peer of one end. Whether that one has others to choose
 * from is a question of its own. */
static enum look look(const struct ft_pairing *p, uint32_t scope, const struct ft_pairing_qp *e,
                      struct ft_pairing_qp **peer)
{
    const struct ft_pairing_bucket_key key = key_of(scope, e);
    const struct ft_pairing_bucket *b = ft_table_find(p->buckets, &key);
    const struct ft_pairing_qp *other = own_other(p, scope, e);
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

/* A candidate of one place and those found before: the worse, and the same only once. */
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
        struct ft_pairing_claim_key key;
        const struct ft_pairing_claim *c;

        memset(&key, 0, sizeof(key));
        key.ip = port->addresses[i];
        key.local = e->key.local;
        key.remote = e->remote;
        c = ft_table_find(p->claims, &key);
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
    bool inside;  /* of communicators, one of which is comm */
    bool claimed; /* the peer's host said so */
    uint32_t comm;
    int64_t whole_ms;
};

static void choose_inside(const struct ft_pairing *p, const struct ft_pairing_qp *e,
                          struct choice *out)
{
    const struct ft_pairing_process *process = process_of(p, e);

    out->whole_ms = INT64_MAX;
    for (uint32_t i = 0; process && i < process->comm_count; i++) {
        const struct ft_pairing_comm *comm = ft_table_at(p->comms, process->comms[i]);
        struct ft_pairing_qp *peer = NULL;
        enum look found = look(p, process->comms[i] + 1, e, &peer);

        if (comm->whole_ms < out->whole_ms)
            out->whole_ms = comm->whole_ms;
        if (found != LOOK_NONE && out->look == LOOK_NONE)
            out->comm = process->comms[i];
        out->look = both(out->look, out->peer, found, peer);
        if (peer)
            out->peer = peer;
        out->inside |= found != LOOK_NONE;
    }
    if (process && process->more_comms)
        out->look = LOOK_SEVERAL;
}

static struct choice choose(const struct ft_pairing *p, const struct ft_pairing_qp *e)
{
    struct choice out = {.comm = FT_NONE};
    struct ft_pairing_qp *told = NULL, *peer = NULL;
    enum look claims = look_claims(p, e, &told);
    /* NCCL flushes GPU memory by a queue pair that is connected to itself. */
    bool itself = e->key.local == e->remote;

    if (!itself)
        choose_inside(p, e, &out);
    if (claims == LOOK_ONE && !out.inside && share_comm(p, e, told)) {
        const struct ft_pairing_process *process = process_of(p, e);

        out.inside = true;
        for (uint32_t i = 0; i < process->comm_count; i++)
            if (in_comm(p, told, process->comms[i]))
                out.comm = process->comms[i];
    }
    if (itself && claims == LOOK_NONE)
        out.look = LOOK_ITSELF;
    if (!itself && !out.inside && out.look == LOOK_NONE) {
        out.look = look(p, 0, e, &peer);
        out.peer = peer;
        out.whole_ms = p->all_whole_ms;
    }
    if (claims == LOOK_NONE)
        return out;
    out.claimed = out.look == LOOK_NONE;
    out.look = both(out.look, out.peer, claims, told);
    out.peer = told;
    return out;
}

/* Both can have come within a short time, by what is known of when they did. */
static bool may_be_together(const struct ft_pairing_qp *a, const struct ft_pairing_qp *b)
{
    return !((a->begun && b->since_ms < a->since_ms - TOGETHER_MS) ||
             (b->begun && a->since_ms < b->since_ms - TOGETHER_MS));
}

/* Whether all who could be in a pair of the whole fabric are known. */
static bool all_are_heard(struct ft_pairing *p)
{
    if (p->stranger_ms && p->now_ms - p->stranger_ms < STRANGER_MS)
        return false;
    if (p->covered < 0)
        p->covered = !p->hooks.covered || p->hooks.covered(p->hooks.arg);
    return p->covered;
}

struct ft_pairing_qp *ft_pairing_scope_choose(struct ft_pairing *p, const struct ft_pairing_qp *e,
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
    back = there.claimed ? there : choose(p, there.peer);
    if (!there.claimed &&
        (back.look != LOOK_ONE || back.peer != e || back.claimed || back.inside != there.inside))
        return NULL;
    since_ms = e->since_ms > there.peer->since_ms ? e->since_ms : there.peer->since_ms;
    if (back.whole_ms < there.whole_ms)
        there.whole_ms = back.whole_ms;
    *why = FT_PAIR_UNHEARD;
    if (p->uncounted || (!there.claimed && there.whole_ms == 0))
        return NULL;
    if (!there.claimed && !there.inside && !all_are_heard(p))
        return NULL;
    *why = FT_PAIR_WAITING;
    if (!there.claimed && there.whole_ms < since_ms + FT_PAIRING_SETTLE_MS)
        return NULL;
    *why = FT_PAIR_UNTIMED;
    if (!may_be_together(e, there.peer) ||
        (!there.claimed && !there.inside && !(e->begun && there.peer->begun)))
        return NULL;
    *why = FT_PAIR_PEER_GONE;
    if (e->spent || there.peer->spent)
        return NULL;
    *by = there.claimed  ? FT_PAIRED_BY_PEER
          : there.inside ? FT_PAIRED_BY_COMMUNICATOR
                         : FT_PAIRED_BY_ALL_ENDS;
    *comm = there.inside ? there.comm : FT_NONE;
    return there.peer;
}
