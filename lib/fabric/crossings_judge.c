// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>

#include "lib/fabric/crossings.h"
#include "lib/fabric/crossings_impl.h"

/* Few flows have to speak for longer. */
#define FLOWS_LEAST      2
#define VOTES_LEAST      6
#define SPAN_LEAST_MS    4000
#define VOTES_OF_ONE     12
#define SPAN_OF_ONE_MS   12000
#define FLOWS_ONE_WAY    3 /* where no flow comes back */
#define VOTES_ONE_WAY    12
#define SPAN_ONE_WAY_MS  8000
#define MARGIN           4 /* times as many votes as for anything else */
#define MARGIN_UNCERTAIN 8 /* where the TTL does not distinguish neighbours from others */
#define NEARER_LEAST     3 /* votes each way */
#define UNCOUNTED_MS     60000
#define FRESH_LEAST      3
#define PASSES_MAX       16

static uint32_t index_of(const struct ft_crossings *x, const struct ft_crossing_entry *p)
{
    return ft_table_index(x->ports, p);
}

static struct ft_crossing_voice *voice_for(const struct ft_crossings *x,
                                           struct ft_crossing_voice *list,
                                           const struct ft_crossing_entry *p)
{
    return ft_crossing_find(list, index_of(x, p), p->serial);
}

static uint32_t flows_of(const struct ft_crossing_voice *v)
{
    int set = v ? __builtin_popcountll(v->flows | v->flows_before) : 0;

    /* Two flows may have the same bit. */
    return set == 64 ? 300 : (uint32_t)lround(-64 * log(1 - set / 64.0));
}

/* By how much the TTL falls between the two ports, where that is always the same. */
static bool is_clear(const struct ft_crossing_voice *v, enum ft_crossing_step *step)
{
    uint32_t reported = 0, best = 0;

    for (uint32_t s = 0; v && s < FT_CROSSING_NO_TTL; s++) {
        reported += v->votes[s];
        if (v->votes[s] > v->votes[best])
            best = s;
    }
    if (reported == 0 || v->votes[best] * 5 < reported * 4)
        return false;
    *step = (enum ft_crossing_step)best;
    return true;
}

static bool is_enough(const struct ft_crossing_voice *v)
{
    uint32_t votes = v ? ft_crossing_votes(v) : 0;
    int64_t span_ms = v ? v->last_ms - v->first_ms : 0;

    return (votes >= VOTES_LEAST && span_ms >= SPAN_LEAST_MS && flows_of(v) >= FLOWS_LEAST) ||
           (votes >= VOTES_OF_ONE && span_ms >= SPAN_OF_ONE_MS);
}

/* How many TTLs apart two neighbours are, where it is known at which point both sample. */
static bool distance(const struct ft_crossings *x, const struct ft_crossing_entry *from,
                     const struct ft_crossing_entry *to, int *step)
{
    const struct ft_crossing_node *a = ft_table_at(x->nodes, from->node);
    const struct ft_crossing_node *b = ft_table_at(x->nodes, to->node);

    if (!a || !b || !a->ttl || !b->ttl)
        return false;
    *step = FT_CROSSING_NEXT + (int)b->ttl - (int)a->ttl;
    return true;
}

static bool is_further(const struct ft_crossings *x, const struct ft_crossing_entry *from,
                       const struct ft_crossing_entry *to, enum ft_crossing_step step)
{
    int neighbours;

    return distance(x, from, to, &neighbours) && (int)step > neighbours;
}

/* What a round trip between two ports takes off the TTL: of neighbours, one for each of the two
 * that counts it down. False where one of the two ways does not show it. */
static bool is_round_trip(const struct ft_crossing_voice *there,
                          const struct ft_crossing_voice *back, int *sum)
{
    enum ft_crossing_step a, b;

    if (!is_clear(there, &a) || !is_clear(back, &b))
        return false;
    *sum = (int)a + (int)b;
    return true;
}

static void note_uncounted(struct ft_crossings *x, uint32_t node)
{
    struct ft_crossing_node *n = ft_table_at(x->nodes, node);

    if (n)
        n->uncounted_ms = x->stepped_ms;
}

/* Whether a port has another one whose round trip takes less off the TTL. Whoever does not count it
 * down is nearer than a neighbour behind it, which would pass for the other end of the cable. */
static bool has_nearer(struct ft_crossings *x, struct ft_crossing_entry *p,
                       const struct ft_crossing_entry *except, int sum)
{
    bool nearer = false;

    for (uint32_t i = 0; i < FT_CROSSING_VOICES; i++) {
        struct ft_crossing_voice *v = &p->out[i];
        struct ft_crossing_entry *other = ft_crossing_entry_at(x, v->port, v->serial);
        const struct ft_crossing_voice *back = other ? voice_for(x, other->out, p) : NULL;
        int trip;

        if (!other || other == except || !is_round_trip(v, back, &trip) || trip >= sum ||
            ft_crossing_votes(v) < NEARER_LEAST || ft_crossing_votes(back) < NEARER_LEAST)
            continue;
        nearer = true;
        if (trip < 2 * FT_CROSSING_NEXT) {
            note_uncounted(x, p->node);
            note_uncounted(x, other->node);
        }
    }
    return nearer;
}

bool ft_crossing_leads_on(const struct ft_crossings *x, const struct ft_crossing_entry *p)
{
    for (uint32_t i = 0; i < FT_CROSSING_VOICES; i++) {
        const struct ft_crossing_voice *v = &p->out[i];
        struct ft_crossing_entry *other = ft_crossing_entry_at(x, v->port, v->serial);
        int trip;

        if (other && is_round_trip(v, voice_for(x, other->out, p), &trip) &&
            trip <= 2 * FT_CROSSING_NEXT)
            return true;
    }
    return false;
}

static bool is_uncounted(const struct ft_crossings *x, const struct ft_crossing_entry *p)
{
    const struct ft_crossing_node *n = ft_table_at(x->nodes, p->node);

    return n && n->uncounted_ms && x->stepped_ms - n->uncounted_ms < UNCOUNTED_MS;
}

/* The strongest voice for any port of a switch: how far that is does not depend on the port. */
static const struct ft_crossing_voice *
voice_of_node(const struct ft_crossings *x, const struct ft_crossing_voice *list, uint32_t node)
{
    const struct ft_crossing_voice *best = NULL;

    for (uint32_t i = 0; i < FT_CROSSING_VOICES; i++) {
        const struct ft_crossing_entry *p = ft_crossing_entry_at(x, list[i].port, list[i].serial);

        if (p && p->node == node && ft_crossing_votes(&list[i]) &&
            (!best || ft_crossing_votes(&list[i]) > ft_crossing_votes(best)))
            best = &list[i];
    }
    return best;
}

/* The strongest of the other voices that may be a cable's: the round trip takes no more off the TTL
 * than `trip`, or the way back says nothing yet and the port is not further away than the one that
 * is asked for. */
static struct ft_crossing_voice *rival_of(const struct ft_crossings *x, struct ft_crossing_entry *p,
                                          bool leaving, const struct ft_crossing_voice *except,
                                          enum ft_crossing_step step, int trip)
{
    struct ft_crossing_voice *list = leaving ? p->out : p->in, *strongest = NULL;

    for (uint32_t i = 0; i < FT_CROSSING_VOICES; i++) {
        struct ft_crossing_voice *v = &list[i];
        struct ft_crossing_entry *other = ft_crossing_entry_at(x, v->port, v->serial);
        enum ft_crossing_step there, back;

        if (v == except || !other || ft_crossing_votes(v) == 0)
            continue;
        if (is_clear(v, &there)) {
            const struct ft_crossing_voice *reverse =
                leaving ? voice_for(x, other->out, p) : voice_for(x, p->out, other);

            /* With one TTL at two switches, either may be the first: the wrong order has no way
             * back. */
            if (v->far || is_further(x, leaving ? p : other, leaving ? other : p, there))
                continue;
            if (!reverse)
                reverse = voice_of_node(x, leaving ? p->in : p->out, other->node);
            if (is_clear(reverse, &back) ? (int)(there + back) > trip
                                         : there > step || there == FT_CROSSING_SAME)
                continue;
        }
        if (!strongest || ft_crossing_votes(v) > ft_crossing_votes(strongest))
            strongest = v;
    }
    return strongest;
}

static bool stands_out(const struct ft_crossings *x, struct ft_crossing_entry *from,
                       struct ft_crossing_entry *to, const struct ft_crossing_voice *v,
                       enum ft_crossing_step step, int trip)
{
    const struct ft_crossing_voice *arriving = voice_for(x, to->in, from);
    const struct ft_crossing_voice *a = rival_of(x, from, true, v, step, trip);
    const struct ft_crossing_voice *b = rival_of(x, to, false, arriving, step, trip);
    uint32_t votes = ft_crossing_votes(v);

    return arriving && (!a || votes >= MARGIN * ft_crossing_votes(a)) &&
           (!b || votes >= MARGIN * ft_crossing_votes(b));
}

static void unlink_from(struct ft_crossings *x, struct ft_crossing_entry *p)
{
    struct ft_crossing_entry *peer = ft_crossing_entry_at(x, p->peer, p->peer_serial);

    if (peer) {
        peer->peer = FT_CROSSING_NOBODY;
        ft_crossings_note(x, peer);
    }
    if (p->peer != FT_CROSSING_NOBODY)
        ft_crossings_note(x, p);
    p->peer = FT_CROSSING_NOBODY;
}

static void link_up(struct ft_crossings *x, struct ft_crossing_entry *a,
                    struct ft_crossing_entry *b, int later)
{
    a->peer_later = later;
    b->peer_later = -later;
    if (ft_crossing_entry_at(x, a->peer, a->peer_serial) == b)
        return;
    unlink_from(x, a);
    unlink_from(x, b);
    a->peer = index_of(x, b);
    a->peer_serial = b->serial;
    b->peer = index_of(x, a);
    b->peer_serial = a->serial;
    ft_crossings_note(x, a);
    ft_crossings_note(x, b);
}

/* What was found is given up when flows say something else, though not yet what is so. */
static void mark_uncertain(struct ft_crossings *x, struct ft_crossing_entry *p)
{
    struct ft_crossing_entry *peer = ft_crossing_entry_at(x, p->peer, p->peer_serial);

    for (unsigned leaving = 0; peer && leaving < 2; leaving++) {
        const struct ft_crossing_voice *v = voice_for(x, leaving ? p->out : p->in, peer), *rival;
        enum ft_crossing_step step = FT_CROSSING_NEXT;

        is_clear(v, &step);
        rival = rival_of(x, p, leaving, v, step, 2 * FT_CROSSING_NEXT);
        if (is_enough(rival) &&
            ft_crossing_votes(rival) >= MARGIN * (v ? ft_crossing_votes(v) : 0)) {
            unlink_from(x, p);
            return;
        }
    }
}

/* Where nothing comes back, the TTLs of one direction identify neighbours if it is known at which
 * point both switches sample. */
static bool is_next(const struct ft_crossings *x, const struct ft_crossing_entry *from,
                    const struct ft_crossing_entry *to, const struct ft_crossing_voice *v,
                    enum ft_crossing_step step)
{
    int neighbours;

    return distance(x, from, to, &neighbours) && (int)step == neighbours &&
           !is_uncounted(x, from) && !is_uncounted(x, to) && flows_of(v) >= FLOWS_ONE_WAY &&
           ft_crossing_votes(v) >= VOTES_ONE_WAY && v->last_ms - v->first_ms >= SPAN_ONE_WAY_MS;
}

/* Whether flows make two ports the ends of a cable; by how much the second switch samples later. */
static bool is_cable(struct ft_crossings *x, struct ft_crossing_entry *p,
                     struct ft_crossing_entry *other, const struct ft_crossing_voice *v, int *later)
{
    const struct ft_crossing_voice *back = voice_for(x, other->out, p);
    enum ft_crossing_step there, here;
    int trip = 2 * FT_CROSSING_NEXT;

    if (!is_enough(v) || !is_clear(v, &there) || (back && !is_round_trip(v, back, &trip)) ||
        trip > 2 * FT_CROSSING_NEXT || trip == 0 || !stands_out(x, p, other, v, there, trip) ||
        has_nearer(x, p, other, trip) || has_nearer(x, other, p, trip))
        return false;
    *later = trip == 2 * FT_CROSSING_NEXT ? (int)there - FT_CROSSING_NEXT : 0;
    if (!back)
        return !v->far && is_next(x, p, other, v, there);
    is_clear(back, &here);
    return is_enough(back) ? stands_out(x, other, p, back, here, trip)
                           : is_next(x, p, other, v, there);
}

void ft_crossings_weigh(struct ft_crossings *x, struct ft_crossing_entry *p)
{
    struct ft_crossing_entry *peer = ft_crossing_entry_at(x, p->peer, p->peer_serial);

    for (uint32_t i = 0; i < FT_CROSSING_VOICES; i++) {
        struct ft_crossing_voice *v = &p->out[i];
        struct ft_crossing_entry *other = ft_crossing_entry_at(x, v->port, v->serial);
        int later;

        if (other && other->node != p->node && is_cable(x, p, other, v, &later)) {
            link_up(x, p, other, later);
            return;
        }
    }
    if (peer && has_nearer(x, p, peer, 2 * FT_CROSSING_NEXT))
        unlink_from(x, p);
    else
        mark_uncertain(x, p);
}

static void add_proof(struct ft_crossing_proof *to, const struct ft_crossing_voice *v)
{
    to->samples += v ? v->samples : 0;
    to->flows += flows_of(v);
}

static struct ft_crossing_proof proof_of(const struct ft_crossings *x, struct ft_crossing_entry *a,
                                         struct ft_crossing_entry *b)
{
    struct ft_crossing_proof proof = {0};

    add_proof(&proof, voice_for(x, a->out, b));
    add_proof(&proof, voice_for(x, b->out, a));
    return proof;
}

/* The strongest voice for another port of the same switch: a flow enters or leaves a switch by one
 * port. */
static void find_conflict(const struct ft_crossings *x, struct ft_crossing_entry *p,
                          const struct ft_crossing_entry *said,
                          const struct ft_crossing_voice **strongest, unsigned end, unsigned *at)
{
    for (unsigned leaving = 0; leaving < 2; leaving++) {
        struct ft_crossing_voice *list = leaving ? p->out : p->in;

        for (uint32_t i = 0; i < FT_CROSSING_VOICES; i++) {
            const struct ft_crossing_voice *v = &list[i];
            const struct ft_crossing_entry *other = ft_crossing_entry_at(x, v->port, v->serial);
            enum ft_crossing_step step = FT_CROSSING_NEXT;

            if (!other || other == said || other->node != said->node || !ft_crossing_votes(v))
                continue;
            is_clear(v, &step);
            if (step == FT_CROSSING_NEXT &&
                (!*strongest || ft_crossing_votes(v) > ft_crossing_votes(*strongest))) {
                *strongest = v;
                *at = end;
            }
        }
    }
}

/* Neighbours, as far as their TTLs show. */
static bool may_be_next(const struct ft_crossing_voice *there, const struct ft_crossing_voice *back)
{
    enum ft_crossing_step a = FT_CROSSING_NEXT, b = FT_CROSSING_NEXT;
    bool reported = is_clear(there, &a), reported_back = is_clear(back, &b);

    if (reported && reported_back)
        return a + b <= 2 * FT_CROSSING_NEXT;
    return a == FT_CROSSING_NEXT && b == FT_CROSSING_NEXT;
}

/* Where no cable is found: one direction, or samples without TTL, may still agree or not. */
static void judge_claim(struct ft_crossings *x, struct ft_crossing_entry *const p[2],
                        struct ft_crossing_judgement *out)
{
    const struct ft_crossing_voice *there = voice_for(x, p[0]->out, p[1]);
    const struct ft_crossing_voice *back = voice_for(x, p[1]->out, p[0]), *conflict = NULL;
    uint32_t votes = 0, against;
    unsigned end = 0;

    votes += there ? ft_crossing_votes(there) : 0;
    votes += back ? ft_crossing_votes(back) : 0;
    find_conflict(x, p[0], p[1], &conflict, 0, &end);
    find_conflict(x, p[1], p[0], &conflict, 1, &end);
    against = conflict ? ft_crossing_votes(conflict) : 0;
    if (is_enough(conflict) && against >= MARGIN_UNCERTAIN * votes) {
        out->verdict = FT_CROSSING_DIFFERS;
        out->end = end;
        out->other = ft_crossing_entry_at(x, conflict->port, conflict->serial)->key;
        add_proof(&out->proof, conflict);
        p[0]->agreed = FT_CROSSING_NOBODY;
        return;
    }
    if ((is_enough(there) || is_enough(back)) && votes >= MARGIN_UNCERTAIN * against &&
        may_be_next(there, back)) {
        p[0]->agreed = index_of(x, p[1]);
        p[0]->agreed_serial = p[1]->serial;
    }
    if (ft_crossing_entry_at(x, p[0]->agreed, p[0]->agreed_serial) == p[1]) {
        out->verdict = FT_CROSSING_AGREES;
        out->proof = proof_of(x, p[0], p[1]);
    }
}

void ft_crossings_judge(struct ft_crossings *x, const struct ft_crossing_port ends[2],
                        struct ft_crossing_judgement *out)
{
    struct ft_crossing_entry *p[2] = {ft_table_find(x->ports, &ends[0]),
                                      ft_table_find(x->ports, &ends[1])};

    *out = (struct ft_crossing_judgement){.verdict = FT_CROSSING_OPEN};
    for (unsigned e = 0; e < 2; e++) {
        struct ft_crossing_entry *peer =
            p[e] ? ft_crossing_entry_at(x, p[e]->peer, p[e]->peer_serial) : NULL;

        if (!peer)
            continue;
        out->verdict = peer == p[!e] ? FT_CROSSING_AGREES : FT_CROSSING_DIFFERS;
        out->proof = proof_of(x, p[e], peer);
        out->end = e;
        out->other = peer->key;
        return;
    }
    if (p[0] && p[1])
        judge_claim(x, p, out);
}

static bool some_reported(const struct ft_crossing_voice *list)
{
    for (uint32_t i = 0; i < FT_CROSSING_VOICES; i++)
        if (ft_crossing_votes(&list[i]))
            return true;
    return false;
}

static void find(const struct ft_crossings *x, struct ft_crossing_entry *p,
                 struct ft_crossing_found *out)
{
    struct ft_crossing_entry *peer = ft_crossing_entry_at(x, p->peer, p->peer_serial);

    *out = (struct ft_crossing_found){.port = p->key,
                                      .linked = peer != NULL,
                                      .from_switch = peer || some_reported(p->in),
                                      .to_switch = peer || some_reported(p->out),
                                      .has_hosts = p->hosts >= FT_CROSSING_HOSTS_LEAST,
                                      .first_ms = p->first_ms,
                                      .last_ms = p->last_ms};
    if (peer) {
        out->peer = peer->key;
        out->proof = proof_of(x, p, peer);
    }
}

bool ft_crossings_next(const struct ft_crossings *x, uint32_t *index, struct ft_crossing_found *out)
{
    struct ft_crossing_entry *p = ft_table_next(x->ports, index);

    if (p)
        find(x, p, out);
    return p;
}

bool ft_crossings_found(const struct ft_crossings *x, uint32_t index, struct ft_crossing_found *out)
{
    struct ft_crossing_entry *p = ft_table_at(x->ports, index);

    if (p)
        find(x, p, out);
    return p;
}

uint32_t ft_crossings_limit(const struct ft_crossings *x)
{
    return ft_table_limit(x->ports);
}

/* Takes what is known of one switch's point of sampling over its cables to others. */
static void spread_points(struct ft_crossings *x)
{
    bool more = true;

    for (uint32_t pass = 0; more && pass < PASSES_MAX; pass++) {
        struct ft_crossing_entry *p, *peer;
        uint32_t index = 0;

        more = false;
        while ((p = ft_table_next(x->ports, &index))) {
            struct ft_crossing_node *n = ft_table_at(x->nodes, p->node), *far;

            peer = ft_crossing_entry_at(x, p->peer, p->peer_serial);
            far = peer ? ft_table_at(x->nodes, peer->node) : NULL;
            if (!n || !far || !n->ttl || far->ttl)
                continue;
            far->ttl = (int)n->ttl + p->peer_later > FT_CROSSING_TTL_RECEIVED
                           ? FT_CROSSING_TTL_SENT
                           : FT_CROSSING_TTL_RECEIVED;
            more = true;
        }
    }
}

void ft_crossings_find_points(struct ft_crossings *x)
{
    struct ft_crossing_entry *p;
    struct ft_crossing_node *n;
    uint32_t index = 0;

    while ((n = ft_table_next(x->nodes, &index)))
        n->ttl = n->fresh >= FRESH_LEAST && n->fresh >= n->fresh_less_one ? FT_CROSSING_TTL_RECEIVED
                                                                          : FT_CROSSING_TTL_UNKNOWN;
    spread_points(x);
    /* One less than what hosts send is what a leaf shows that has counted down, or a spine under a
     * silent leaf: only where a cable joins it to switches of which none has shown more. */
    for (index = 0; (p = ft_table_next(x->ports, &index));) {
        n = ft_table_at(x->nodes, p->node);
        if (n && !n->ttl && ft_crossing_entry_at(x, p->peer, p->peer_serial) &&
            n->fresh_less_one >= FRESH_LEAST)
            n->ttl = FT_CROSSING_TTL_SENT;
    }
    spread_points(x);
}
