// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/hashes/hashes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/hashes/hashes_impl.h"
#include "daemon/join/flow_names.h"
#include "daemon/join/flow_path.h"
#include "lib/base/digest.h"
#include "lib/base/table.h"
#include "lib/fabric/choice.h"
#include "lib/fabric/hash_model.h"
#include "lib/fabric/hinted.h"
#include "lib/fabric/skewed.h"

/* A window's first looks at flows: what comes later in it waits for the next. */
#define FLOWS_A_WINDOW 20000
/* Numbers in flows (learnt_in) are those below this. */
#define LEARNT_IN 16

struct ft_hashes {
    struct ft_table *sets;
    size_t sets_max;
    uint32_t cursor;
    uint32_t hand; /* of what ages them */
    uint32_t gone; /* sets that are not in the topology */
    uint64_t removed;
    uint64_t wide;                    /* hops that more links lead on from than are learnt */
    uint64_t confirmed, contradicted; /* of sets that were removed */
    uint32_t flows_left;
    uint32_t trusted; /* sets, when the window began */
    /* Goes up when there are sets that are new in another topology: of them are flows, too, that
     * stayed on their links and were learnt before. */
    uint32_t generation;
    const struct ft_topology *topology; /* that was seen last */
    bool changed;                       /* since sets were new */
};

struct ft_hashes *ft_hashes_new(size_t sets_max, uint64_t seed)
{
    struct ft_hashes *h = calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->sets_max = sets_max;
    h->sets = ft_table_new(sizeof(struct ft_hash_set), sizeof(uint64_t), sets_max, seed);
    if (!h->sets) {
        free(h);
        return NULL;
    }
    return h;
}

void ft_hashes_free(struct ft_hashes *h)
{
    struct ft_hash_set *s;
    uint32_t index = 0;

    if (!h)
        return;
    while ((s = ft_table_next(h->sets, &index)))
        ft_hash_set_free(s);
    ft_table_free(h->sets);
    free(h);
}

/* What the switch of a hop had to choose from, and the number of the link that it took; false where
 * that was nothing, or is not known, or more than is learnt. */
static bool find_choice(struct ft_hashes *h, struct ft_choice *c, const struct ft_topology *t,
                        uint32_t out, uint32_t dst_nic, uint32_t *taken)
{
    const struct ft_port *port = ft_topology_port(t, out);
    uint32_t left;

    if (port->peer == FT_NONE || port->group == FT_NONE)
        return false;
    left = ft_choice_distance(t, ft_topology_port(t, port->peer)->switch_id, dst_nic);
    if (!ft_choice_find(c, t, port->switch_id, dst_nic, left)) {
        h->wide++;
        return false;
    }
    if (c->count <= 1)
        return false;
    for (uint32_t i = 0; i < c->count; i++) {
        *taken = i;
        if (c->links[i] == out)
            return true;
    }
    return false;
}

/* By names, which stay when the topology is another. */
static uint64_t key_of(const struct ft_choice *c)
{
    uint64_t key = ft_digest_text(c->at ? c->at->name : "", 0);

    for (uint32_t i = 0; i < c->count; i++)
        key = ft_digest_text(ft_choice_member(c, i), key);
    return key;
}

/* Of the set of the same links that learns from the headers of tunnels. */
static uint64_t outer_key(uint64_t key)
{
    return ft_digest_text("outer", key);
}

/* The other set of the same links; NULL: there is none. */
static struct ft_hash_set *other_of(const struct ft_hashes *h, const struct ft_hash_set *s)
{
    uint64_t key = s->outer ? s->own : outer_key(s->own);

    return ft_table_find(h->sets, &key);
}

static void remove_set(struct ft_hashes *h, struct ft_hash_set *s)
{
    h->confirmed += s->confirmed;
    h->contradicted += s->contradicted;
    h->removed++;
    ft_hash_set_free(s);
    ft_table_remove(h->sets, s);
}

static void note_topology(struct ft_hashes *h, const struct ft_topology *t)
{
    h->changed |= h->topology && h->topology != t;
    h->topology = t;
}

/* A set that is new, or there again. */
static void note_made(struct ft_hashes *h, struct ft_hash_set *s)
{
    h->generation += h->changed;
    h->changed = false;
    s->made = h->generation;
}

/* Whether a flow that was learnt then has to be looked at anew, and whether for this set. */
static bool is_of_before(const struct ft_hashes *h, uint32_t learnt_in)
{
    return learnt_in != h->generation % LEARNT_IN;
}

static bool is_newer(const struct ft_hashes *h, const struct ft_hash_set *s, uint32_t learnt_in)
{
    return h->generation - s->made < (h->generation - learnt_in) % LEARNT_IN;
}

static void note_gone(struct ft_hashes *h, struct ft_hash_set *s, int64_t ms)
{
    if (s->gone_ms && !ms)
        note_made(h, s);
    h->gone += (ms != 0) - (s->gone_ms != 0);
    s->gone_ms = ms;
}

/* A set that learns from flows' own headers goes with the one of their tunnels'. */
static void remove_both(struct ft_hashes *h, struct ft_hash_set *own)
{
    struct ft_hash_set *outer = other_of(h, own);

    note_gone(h, own, 0);
    if (outer)
        remove_set(h, outer);
    remove_set(h, own);
}

static struct ft_hash_set *next_own(struct ft_hashes *h)
{
    struct ft_hash_set *s;

    if (h->hand >= ft_table_limit(h->sets))
        h->hand = 0;
    s = ft_table_at(h->sets, h->hand++);
    return s && !s->outer ? s : NULL;
}

static void age(struct ft_hashes *h, const struct ft_topology *t, int64_t now_ms)
{
    for (uint32_t i = 0; i < FT_HASHES_LOOKS && i < ft_table_limit(h->sets); i++) {
        struct ft_hash_set *s = next_own(h);

        if (!s)
            continue;
        if (ft_hash_set_is_there(s, t))
            note_gone(h, s, 0);
        else if (s->gone_ms == 0)
            note_gone(h, s, now_ms);
        else if (now_ms - s->gone_ms >= FT_HASHES_GONE_MS)
            remove_both(h, s);
    }
}

/* In a full table one that is not in the topology goes for one that is. */
static void make_room(struct ft_hashes *h)
{
    for (uint32_t i = 0; i < FT_HASHES_LOOKS && h->gone; i++) {
        struct ft_hash_set *s = next_own(h);

        if (s && s->gone_ms) {
            remove_both(h, s);
            return;
        }
    }
}

/* As they are now: names stay where speeds do not. A NIC weighs none of its ports. */
static void note_speeds(struct ft_hash_set *s, const struct ft_choice *c)
{
    for (uint32_t i = 0; i < s->member_count; i++) {
        s->speeds[i] = c->at ? ft_topology_port(c->t, c->links[i])->speed_bps : 0;
        s->bundles[i] = c->at ? ft_skewed_bundle(c->t, c->links[i]) : i;
    }
}

static struct ft_hash_set *find_set(struct ft_hashes *h, const struct ft_choice *c,
                                    const char *group, bool outer)
{
    uint64_t own = key_of(c), key = outer ? outer_key(own) : own;
    struct ft_hash_set *s;
    bool fresh;

    if (ft_table_count(h->sets) >= h->sets_max && !ft_table_find(h->sets, &key))
        make_room(h);
    s = ft_table_insert(h->sets, &key, &fresh);
    if (s)
        note_gone(h, s, 0);
    if (s && fresh && !ft_hash_set_fill(s, c, group)) {
        ft_hash_set_free(s);
        ft_table_remove(h->sets, s);
        return NULL;
    }
    if (s && fresh) {
        s->outer = outer;
        s->own = own;
        note_made(h, s);
    }
    if (s)
        note_speeds(s, c);
    return s;
}

/* Of a port by which flows come in; in tunnels of different kinds (what) they are as different as
 * by different ports, for nothing else shows what a switch makes of that. */
static uint64_t entry_digest(const struct ft_topology *t, uint32_t in, uint32_t what)
{
    return ft_digest_text(ft_topology_end_name(t, in), what);
}

/* The kind of a tunnel: the protocol, and the port that it is sent to. */
static uint32_t tunnel_of(const struct ft_tuple *outer)
{
    return (uint32_t)outer->dport << 8 | outer->proto;
}

/* Its number among the ports by which flows came in; FT_HASH_ENTRIES_MAX: none did. */
static uint32_t find_entry(const struct ft_hash_set *s, uint64_t digest)
{
    for (uint32_t i = 0; i < s->entry_count; i++) {
        if (s->entries[i] == digest)
            return i;
    }
    return FT_HASH_ENTRIES_MAX;
}

/* The same, and a new one where there is none; none of those after many. */
static uint32_t entry_of(struct ft_hash_set *s, uint64_t digest)
{
    uint32_t known = find_entry(s, digest);

    if (known < FT_HASH_ENTRIES_MAX || s->entry_count == FT_HASH_ENTRIES_MAX)
        return known;
    s->entries[s->entry_count] = digest;
    return s->entry_count++;
}

void ft_hashes_begin(struct ft_hashes *h, const struct ft_topology *t, int64_t now_ms)
{
    struct ft_hash_set *s;
    uint32_t index = 0;

    note_topology(h, t);
    age(h, t, now_ms);
    h->cursor = 0;
    h->flows_left = FLOWS_A_WINDOW;
    h->trusted = 0;
    while ((s = ft_table_next(h->sets, &index))) {
        const struct ft_hash_set *own = s->outer ? other_of(h, s) : NULL;

        s->aside = own && ft_hash_set_is_trusted(own);
        h->trusted += ft_hash_set_is_trusted(s) && !s->aside;
    }
}

/* What a model knows of a header does not distinguish protocols and ports of destination, which
 * switches hash, too: of other headers it knows nothing. */
static bool is_roce(const struct ft_tuple *header)
{
    return header->proto == FT_PROTO_UDP && header->dport == FT_ROCE_PORT;
}

/* By which of its ports the flow's NIC sent it. Of more NICs than there is room for at these leaves
 * nothing is learnt: nothing would distinguish them. */
static void learn_entry(struct ft_hashes *h, const struct ft_topology *t,
                        const struct ft_flow *flow)
{
    uint32_t in = flow->path.hop_count ? flow->path.in : FT_NONE, entry;
    struct ft_hash_flow seen = {.qp = ft_flow_dst_qp(flow)};
    char group[FT_CHOICE_GROUP];
    struct ft_choice choice;
    struct ft_hash_set *s;

    if (in == FT_NONE || !ft_is_port(in) || ft_topology_port(t, in)->nic == FT_NONE ||
        !ft_choice_of_nic(&choice, t, ft_topology_port(t, in)->nic) ||
        ft_choice_nics_group(&choice, group))
        return;
    while (seen.member < choice.count && choice.links[seen.member] != in)
        seen.member++;
    s = seen.member < choice.count ? find_set(h, &choice, group, false) : NULL;
    s = s && flow->learnt && !is_newer(h, s, flow->learnt_in) ? NULL : s;
    entry = s ? entry_of(s, ft_choice_nic_digest(&choice)) : FT_HASH_ENTRIES_MAX;
    if (entry == FT_HASH_ENTRIES_MAX)
        return;
    ft_hash_input(&seen.in, &flow->tuple, entry);
    ft_hash_set_keep(s, &seen);
}

static void take_outer(struct ft_hashes *h, const struct ft_choice *choice, const char *group,
                       uint32_t in, const struct ft_flow_tunnel *tunnel,
                       const struct ft_tuple *outer, struct ft_hash_flow *seen)
{
    struct ft_hash_set *s = in == FT_NONE ? NULL : find_set(h, choice, group, true);
    uint32_t entry;

    if (s && tunnel->learnt && !is_newer(h, s, tunnel->learnt_in))
        return;
    entry = s ? entry_of(s, entry_digest(choice->t, in, tunnel_of(outer))) : FT_HASH_ENTRIES_MAX;
    if (entry == FT_HASH_ENTRIES_MAX)
        return;
    s->tunnels_differ |= s->tunnel && s->tunnel != tunnel_of(outer);
    s->tunnel = tunnel_of(outer);
    ft_hash_input(&seen->in, outer, entry);
    ft_hash_set_keep(s, seen);
}

/* outer: the header of its tunnel, of which nothing was learnt yet, or not in the newest sets;
 * NULL: there is none. */
static void take_hop(struct ft_hashes *h, const struct ft_topology *t, const struct ft_flow *flow,
                     const struct ft_hop *hop, const struct ft_tuple *outer)
{
    struct ft_hash_flow seen = {.qp = ft_flow_dst_qp(flow)};
    struct ft_choice choice;
    struct ft_hash_set *s;
    const char *group;

    if (!ft_is_port(hop->out) || !find_choice(h, &choice, t, hop->out, flow->dst_nic, &seen.member))
        return;
    group = ft_topology_group(t, ft_topology_port(t, hop->out)->group)->name;
    s = find_set(h, &choice, group, false);
    if (!s)
        return;
    if (is_roce(&flow->tuple) && (!flow->learnt || is_newer(h, s, flow->learnt_in))) {
        ft_hash_input(&seen.in, &flow->tuple,
                      hop->in == FT_NONE ? FT_HASH_ENTRIES_MAX
                                         : entry_of(s, entry_digest(t, hop->in, 0)));
        ft_hash_set_keep(s, &seen);
    }
    if (outer)
        take_outer(h, &choice, group, hop->in, ft_flow_tunnel(flow), outer, &seen);
}

/* The header of a flow's tunnel that was seen in the window, where it is to be learnt from. */
static const struct ft_tuple *fresh_outer(const struct ft_hashes *h, const struct ft_join *join,
                                          const struct ft_flow *flow, int64_t window_start_ms)
{
    const struct ft_flow_tunnel *tunnel = ft_flow_tunnel(flow);

    if (!tunnel || (tunnel->learnt && !is_of_before(h, tunnel->learnt_in)) ||
        tunnel->last_ms < window_start_ms)
        return NULL;
    return ft_flow_outer(join, flow);
}

void ft_hashes_flow(struct ft_hashes *h, const struct ft_join *join, struct ft_flow *flow,
                    int64_t window_start_ms)
{
    const struct ft_topology *t = ft_join_topology(join);
    const struct ft_tuple *outer = fresh_outer(h, join, flow, window_start_ms);
    bool own =
        is_roce(&flow->tuple) && (!flow->learnt || is_of_before(h, (uint32_t)flow->learnt_in));
    struct ft_path path;

    if ((!own && !outer) || flow->source_routed || h->flows_left == 0 ||
        flow->state != FT_PATH_RESOLVED || flow->dst_nic == FT_NONE ||
        !ft_join_is_placed(join, flow, window_start_ms))
        return;
    note_topology(h, t);
    h->flows_left--;
    if (own)
        learn_entry(h, t, flow);
    path = ft_flow_path(t, flow);
    for (uint32_t i = 0; i < path.hop_count; i++)
        take_hop(h, t, flow, &path.hops[i], outer);
    flow->learnt = true;
    flow->learnt_in = h->generation % LEARNT_IN;
    if (!outer)
        return;
    ft_flow_tunnel(flow)->learnt = true;
    ft_flow_tunnel(flow)->learnt_in = (uint8_t)(h->generation % LEARNT_IN);
}

/* Emits the record of a set that learns from the flows' own headers. */
static void emit(const struct ft_hashes *h, const struct ft_hash_set *s, const char *fabric,
                 int64_t now_ms, const struct ft_emitter *emitter)
{
    struct ft_hash_set *outer = other_of(h, s);

    if (outer)
        outer->named = ft_hash_set_names_outer(s, outer);
    ft_hash_set_emit(s, outer, false, fabric, now_ms, emitter);
}

/* What is published changed: of a set of tunnels it did where that one is named, or was. */
static bool is_news(const struct ft_hashes *h, const struct ft_hash_set *s)
{
    return s->dirty && (!s->outer || s->named || ft_hash_set_names_outer(other_of(h, s), s));
}

bool ft_hashes_step(struct ft_hashes *h, const char *fabric, int64_t now_ms,
                    const struct ft_emitter *emitter)
{
    struct ft_hash_set *s;

    while ((s = ft_table_next(h->sets, &h->cursor))) {
        bool due = ft_hash_set_due_in(s) == 0;

        if (due)
            ft_hash_set_learn(s);
        if (is_news(h, s))
            emit(h, s->outer ? other_of(h, s) : s, fabric, now_ms, emitter);
        s->dirty = false;
        if (due)
            return true;
    }
    return false;
}

void ft_hashes_finish(struct ft_hashes *h, const char *fabric, int64_t now_ms,
                      const struct ft_emitter *emitter)
{
    uint32_t index = 0;
    struct ft_hash_set *s;

    while ((s = ft_table_next(h->sets, &index))) {
        if (s->fresh)
            ft_hash_set_learn(s);
        s->dirty = false;
    }
    index = 0;
    while ((s = ft_table_next(h->sets, &index)))
        if (!s->outer)
            emit(h, s, fabric, now_ms, emitter);
}

const struct ft_hash_set *ft_hashes_set(const struct ft_hashes *h, uint32_t *index,
                                        const struct ft_hash_set **outer)
{
    const struct ft_hash_set *s;

    do
        s = ft_table_next(h->sets, index);
    while (s && s->outer);
    *outer = s ? other_of(h, s) : NULL;
    return s;
}

bool ft_hashes_next(const struct ft_hashes *h, uint32_t *index, bool function, const char *fabric,
                    int64_t now_ms, const struct ft_emitter *emitter)
{
    const struct ft_hash_set *outer, *s = ft_hashes_set(h, index, &outer);

    if (s)
        ft_hash_set_emit(s, outer, function, fabric, now_ms, emitter);
    return s != NULL;
}

/* The link of a flow with such a header that came in where `entry` says; FT_HASH_MEMBERS_MAX: it is
 * not known, as of one that came in where no flow did. */
static uint32_t member_of(const struct ft_hash_set *s, const struct ft_tuple *header,
                          uint64_t entry)
{
    uint32_t known = ft_hash_set_is_trusted(s) ? find_entry(s, entry) : FT_HASH_ENTRIES_MAX;
    struct ft_hash_input input;
    uint32_t member;

    if (known == FT_HASH_ENTRIES_MAX)
        return FT_HASH_MEMBERS_MAX;
    ft_hash_input(&input, header, known);
    member = ft_hash_predict(&s->model, &input);
    return member < s->member_count && ft_hash_set_is_sure(s, member) ? member
                                                                      : FT_HASH_MEMBERS_MAX;
}

/* Of a flow that was seen in a tunnel either header may be the one that is hashed, where both
 * models are trusted: then both have to say the same. The one that says it; NULL: none does. */
static const struct ft_hash_set *says(const struct ft_hashes *h, const struct ft_hash_set *own,
                                      const struct ft_join *join, const struct ft_flow *flow,
                                      uint32_t in, uint32_t *member)
{
    const struct ft_topology *t = ft_join_topology(join);
    const struct ft_hash_set *other = ft_flow_tunnel(flow) ? other_of(h, own) : NULL;
    const struct ft_tuple *outer = other ? ft_flow_outer(join, flow) : NULL;
    uint32_t by_outer = FT_HASH_MEMBERS_MAX;

    *member = is_roce(&flow->tuple) ? member_of(own, &flow->tuple, entry_digest(t, in, 0))
                                    : FT_HASH_MEMBERS_MAX;
    if (other && ft_hash_set_is_trusted(other)) {
        if (outer)
            by_outer = member_of(other, outer, entry_digest(t, in, tunnel_of(outer)));
        if (!ft_hash_set_is_trusted(own)) {
            own = other;
            *member = by_outer;
        } else if (by_outer != *member) {
            return NULL;
        }
    }
    return *member == FT_HASH_MEMBERS_MAX ? NULL : own;
}

bool ft_hashes_predict(const struct ft_hashes *h, const struct ft_join *join,
                       const struct ft_flow *flow, uint32_t in, struct ft_hint *hint)
{
    const struct ft_topology *t = ft_join_topology(join);
    uint32_t switch_id, left, member;
    const struct ft_hash_set *s;
    struct ft_choice choice;
    uint64_t key;

    if (h->trusted == 0 || flow->dst_nic == FT_NONE)
        return false;
    switch_id = ft_topology_port(t, in)->switch_id;
    left = ft_choice_distance(t, switch_id, flow->dst_nic);
    if (left == FT_NONE || left == 0 ||
        !ft_choice_find(&choice, t, switch_id, flow->dst_nic, left - 1) || choice.count <= 1)
        return false;
    key = key_of(&choice);
    s = ft_table_find(h->sets, &key);
    s = s ? says(h, s, join, flow, in, &member) : NULL;
    if (!s)
        return false;
    *hint = (struct ft_hint){switch_id, choice.links[member], FT_BY_PREDICTION,
                             (float)(s->right / s->predicted)};
    return true;
}

void ft_hashes_checked(const struct ft_hashes *h, uint64_t *confirmed, uint64_t *contradicted)
{
    const struct ft_hash_set *s;
    uint32_t index = 0;

    *confirmed = h->confirmed;
    *contradicted = h->contradicted;
    while ((s = ft_table_next(h->sets, &index))) {
        *confirmed += s->confirmed;
        *contradicted += s->contradicted;
    }
}

uint32_t ft_hashes_trusted(const struct ft_hashes *h)
{
    return h->trusted;
}

size_t ft_hashes_count(const struct ft_hashes *h)
{
    return ft_table_count(h->sets);
}

uint64_t ft_hashes_refused(const struct ft_hashes *h)
{
    return ft_table_refused(h->sets);
}

uint64_t ft_hashes_wide(const struct ft_hashes *h)
{
    return h->wide;
}

uint64_t ft_hashes_removed(const struct ft_hashes *h)
{
    return h->removed;
}
