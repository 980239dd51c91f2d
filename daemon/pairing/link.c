// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <string.h>

#include "daemon/pairing/state.h"

static struct ft_tuple turned(const struct ft_tuple *tuple)
{
    struct ft_tuple out = *tuple;

    out.src = tuple->dst;
    out.dst = tuple->src;
    return out;
}

static bool is_wired_to(const struct ft_pairing_qp *e, const struct ft_pairing_qp *peer)
{
    return e->sampled && e->sampled_seq == peer->seq && e->sampled_key.port == peer->key.port &&
           e->sampled_key.local == peer->key.local;
}

static uint64_t id_of(const struct ft_pairing *p, const struct ft_pairing_qp *e, bool reverse)
{
    return (uint64_t)ft_table_index(p->ends, e) << 1 | reverse;
}

/* Whether all that share a tuple with an end are of its process, as in a ring of two ranks; beyond
 * two nobody knows. */
static bool of_one_process(const struct ft_pairing *p, const struct ft_pairing_tuple *t,
                           const struct ft_pairing_qp *e, bool reverse)
{
    uint64_t other = t->sum - id_of(p, e, reverse);
    const struct ft_pairing_qp *second;

    if (t->count != 2 || (other & 1) != reverse)
        return t->count < 2;
    second = ft_pairing_at(p, (uint32_t)(other >> 1));
    return e->process != FT_NONE && e->process == second->process;
}

/* Several queue pairs that share a tuple share what is said of it: hosts, and the process. */
static void say(struct ft_pairing *p, const struct ft_pairing_tuple *t,
                const struct ft_pairing_qp *e, bool reverse, bool ended)
{
    bool shared = t->count > 1, owned = of_one_process(p, t, e, reverse);
    const struct ft_pairing_qp *peer = ft_pairing_peer(p, e);
    const struct ft_pairing_port *port = ft_pairing_port_of(p, e);
    const struct ft_pairing_comm *comm =
        e->comm_index == FT_NONE ? NULL : ft_table_at(p->comms, e->comm_index);
    struct ft_host_report report = {
        .tuple = reverse ? turned(&e->tuple) : e->tuple,
        .time_ms = p->now_ms,
        .sending = !reverse,
        .host = port->key.host,
        .qp_local = shared    ? FT_NONE
                    : reverse ? e->remote
                              : e->key.local,
        .qp_remote = shared    ? FT_NONE
                     : reverse ? e->key.local
                               : e->remote,
        .pid = owned ? e->pid : 0,
        .comm = owned ? e->comm : NULL,
        .job = owned ? e->job : NULL,
        .tuple_source = e->observed && !reverse ? FABRICTRACE__TUPLE_SOURCE__TUPLE_SOURCE_OBSERVED
                                                : FABRICTRACE__TUPLE_SOURCE__TUPLE_SOURCE_COMPUTED,
        .ended = ended,
        .paired_by = e->by,
        .pair_comm = comm ? comm->id : NULL,
    };

    if (peer) {
        report.peer_host = ft_pairing_port_of(p, peer)->key.host;
        report.peer_device = ft_pairing_port_of(p, peer)->key.device;
    }
    p->hooks.report(p->hooks.arg, &report);
}

static void say_of(struct ft_pairing *p, const struct ft_pairing_tuple *t, uint64_t id, bool ended)
{
    say(p, t, ft_pairing_at(p, (uint32_t)(id >> 1)), id & 1, ended);
}

static bool hold(struct ft_pairing *p, const struct ft_tuple *tuple, uint64_t id)
{
    struct ft_pairing_tuple *t;
    bool fresh;

    t = ft_table_insert(p->tuples, tuple, &fresh);
    if (!t)
        return false;
    t->count++;
    t->sum += id;
    /* A number was said of one, a process maybe of two. */
    if (t->count == 2 || t->count == 3)
        p->hooks.withdraw(p->hooks.arg, tuple);
    say_of(p, t, id, false);
    return true;
}

static void let_go(struct ft_pairing *p, const struct ft_tuple *tuple, uint64_t id, bool ended)
{
    struct ft_pairing_tuple *t = ft_table_find(p->tuples, tuple);

    if (!t)
        return;
    t->count--;
    t->sum -= id;
    if (t->count == 0) {
        if (ended)
            say_of(p, t, id, true);
        else
            p->hooks.withdraw(p->hooks.arg, tuple);
        ft_table_remove(p->tuples, t);
    } else if (t->count == 1) {
        p->hooks.withdraw(p->hooks.arg, tuple);
        say_of(p, t, t->sum, false);
    }
}

static void drop_tuples(struct ft_pairing *p, struct ft_pairing_qp *e, bool ended)
{
    const struct ft_tuple reverse = turned(&e->tuple);

    if (e->has_tuple)
        let_go(p, &e->tuple, id_of(p, e, false), ended);
    if (e->has_reverse)
        let_go(p, &reverse, id_of(p, e, true), ended);
    if (e->has_tuple && !ended)
        p->stats.withdrawn++;
    e->has_tuple = e->has_reverse = e->observed = false;
}

/* Sets what an end sends by, and reports it. */
static void set_tuple(struct ft_pairing *p, struct ft_pairing_qp *e, const struct ft_tuple *tuple,
                      bool observed)
{
    const struct ft_tuple reverse = turned(tuple);
    bool alone = e->by == FT_PAIRED_BY_SAMPLES;

    if (e->has_tuple && !ft_tuple_equal(&e->tuple, tuple))
        drop_tuples(p, e, false);
    e->observed = observed;
    e->state = FT_PAIR_PAIRED;
    if (e->has_tuple) {
        ft_pairing_report_again(p, e);
        return;
    }
    e->tuple = *tuple;
    e->has_tuple = hold(p, tuple, id_of(p, e, false));
    p->stats.paired += e->has_tuple;
    /* Nobody else reports the other direction. */
    if (alone && e->has_sport && e->sport == tuple->sport)
        e->has_reverse = hold(p, &reverse, id_of(p, e, true));
}

void ft_pairing_report_again(struct ft_pairing *p, struct ft_pairing_qp *e)
{
    const struct ft_tuple reverse = turned(&e->tuple);
    const struct ft_pairing_tuple *t = e->has_tuple ? ft_table_find(p->tuples, &e->tuple) : NULL;

    if (t)
        say(p, t, e, false, false);
    t = e->has_reverse ? ft_table_find(p->tuples, &reverse) : NULL;
    if (t)
        say(p, t, e, true, false);
}

static void set_pair(struct ft_pairing *p, struct ft_pairing_qp *e, uint32_t peer,
                     enum ft_paired_by by, uint32_t comm)
{
    if (e->by > FT_PAIRED_BY_BOTH_HOSTS)
        ft_pairing_group_mark(p, e, false);
    ft_pairing_set_by(p, e, by);
    e->peer = peer;
    ft_pairing_members_rest(p, e, comm);
    if (by > FT_PAIRED_BY_BOTH_HOSTS)
        ft_pairing_group_mark(p, e, true);
}

static void link_two(struct ft_pairing *p, struct ft_pairing_qp *e, struct ft_pairing_qp *peer,
                     enum ft_paired_by by, uint32_t comm)
{
    set_pair(p, e, ft_table_index(p->ends, peer), by, comm);
    set_pair(p, peer, ft_table_index(p->ends, e), by, comm);
}

/* Both directions were seen: they are nobody else's peer. */
static void conclude(struct ft_pairing *p, struct ft_pairing_qp *e)
{
    set_pair(p, e, FT_NONE, FT_PAIRED_BY_BOTH_HOSTS, FT_NONE);
    if (!e->reported)
        ft_pairing_group_remove(p, e, false);
    ft_pairing_report_again(p, e);
}

void ft_pairing_confirm(struct ft_pairing *p, struct ft_pairing_qp *e, struct ft_pairing_qp *peer,
                        const struct ft_tuple *tuple, int64_t ms)
{
    if (e->reported && e->has_sport)
        return; /* its host knows all of it */
    if (is_wired_to(e, peer) && e->has_tuple && ft_tuple_equal(&e->tuple, tuple)) {
        e->sampled_ms = ms;
        return;
    }
    if (e->sampled && ms - e->sampled_ms < FT_PAIRING_OVER_MS)
        return;
    if (e->by && (e->peer == FT_NONE || e->peer != ft_table_index(p->ends, peer)))
        ft_pairing_unlink(p, e, false);
    if (peer->peer != FT_NONE && peer->peer != ft_table_index(p->ends, e))
        ft_pairing_unlink(p, peer, false);
    e->sampled = true;
    e->sampled_key = peer->key;
    e->sampled_seq = peer->seq;
    e->sampled_ms = ms;
    if (!e->by)
        ft_pairing_set_by(p, e, FT_PAIRED_BY_BOTH_HOSTS);
    set_tuple(p, e, tuple, true);
    if (is_wired_to(peer, e)) {
        conclude(p, e);
        conclude(p, peer);
    }
}

static void part(struct ft_pairing *p, struct ft_pairing_qp *e)
{
    if (e->by > FT_PAIRED_BY_BOTH_HOSTS)
        ft_pairing_group_mark(p, e, false);
    ft_pairing_set_by(p, e, FT_PAIRED_BY_NOTHING);
    e->sampled = false;
    e->peer = FT_NONE;
    ft_pairing_members_rest(p, e, FT_NONE);
    e->state = e->reported ? FT_PAIR_REPORTED : e->spent ? FT_PAIR_PEER_GONE : FT_PAIR_WAITING;
    /* One whose peer is gone for certain is nobody else's. */
    if (!e->spent)
        ft_pairing_group_add(p, e);
}

static void unlink_one(struct ft_pairing *p, struct ft_pairing_qp *e, bool ended)
{
    struct ft_pairing_qp *peer = ft_pairing_peer(p, e);
    bool both = peer && (e->peer != FT_NONE || is_wired_to(peer, e));

    if (e->by == FT_PAIRED_BY_NOTHING)
        return;
    drop_tuples(p, e, ended);
    e->spent |= ended;
    if (both) {
        drop_tuples(p, peer, ended);
        peer->spent |= ended;
    }
    part(p, e);
    if (both)
        part(p, peer);
}

void ft_pairing_unlink_uncertain(struct ft_pairing *p)
{
    struct ft_pairing_qp *e;

    while ((e = ft_pairing_take_uncertain(p)))
        unlink_one(p, e, false);
}

void ft_pairing_unlink(struct ft_pairing *p, struct ft_pairing_qp *e, bool ended)
{
    unlink_one(p, e, ended);
    ft_pairing_unlink_uncertain(p);
}

static bool is_link_local(const struct ft_ip *ip)
{
    size_t len;
    const uint8_t *b = ft_ip_bytes(ip, &len);

    return len == 4 ? b[0] == 169 && b[1] == 254 : b[0] == 0xfe && (b[1] & 0xc0) == 0x80;
}

/* The only addresses that two ends can talk by. NCCL picks no link-local one by itself. */
static enum ft_pair_state pick(const struct ft_pairing *p, const struct ft_pairing_qp *e,
                               const struct ft_pairing_qp *peer, bool link_local,
                               struct ft_tuple *tuple)
{
    const struct ft_pairing_port *a = ft_pairing_port_of(p, e), *b = ft_pairing_port_of(p, peer);
    uint32_t found = 0;

    if (a->more_addresses || b->more_addresses)
        return FT_PAIR_SEVERAL_ADDRESSES;
    for (uint32_t i = 0; i < a->address_count; i++) {
        for (uint32_t k = 0; k < b->address_count; k++) {
            const struct ft_ip *src = &a->addresses[i], *dst = &b->addresses[k];

            if (ft_ip_is4(src) != ft_ip_is4(dst) || is_link_local(src) != is_link_local(dst) ||
                (is_link_local(src) && !link_local))
                continue;
            tuple->src = *src;
            tuple->dst = *dst;
            found++;
        }
    }
    if (found != 1)
        return found ? FT_PAIR_SEVERAL_ADDRESSES : FT_PAIR_NO_ADDRESS;
    /* Two that have the same address cannot be distinguished. */
    return ft_pairing_port_at(p, &tuple->src) == e->key.port &&
                   ft_pairing_port_at(p, &tuple->dst) == peer->key.port
               ? FT_PAIR_PAIRED
               : FT_PAIR_SEVERAL_ADDRESSES;
}

static enum ft_pair_state agree(const struct ft_pairing *p, const struct ft_pairing_qp *e,
                                const struct ft_pairing_qp *peer, enum ft_paired_by by,
                                struct ft_tuple *tuple)
{
    if (ft_pairing_host_of(p, e) == ft_pairing_host_of(p, peer))
        return FT_PAIR_SAME_HOST;
    if (!e->has_sport || !peer->has_sport || e->sport != peer->sport)
        return FT_PAIR_NO_PORT;
    *tuple = (struct ft_tuple){.sport = e->sport, .dport = FT_ROCE_PORT, .proto = FT_PROTO_UDP};
    if (by == FT_PAIRED_BY_PEER) {
        tuple->src = peer->dst;
        tuple->dst = peer->src;
        return FT_PAIR_PAIRED;
    }
    return pick(p, e, peer, by == FT_PAIRED_BY_FABRIC && p->config.link_local, tuple);
}

void ft_pairing_judge(struct ft_pairing *p, struct ft_pairing_qp *e)
{
    enum ft_paired_by by = FT_PAIRED_BY_NOTHING;
    struct ft_pairing_qp *peer;
    struct ft_tuple tuple, back;
    enum ft_pair_state why;
    uint32_t comm = FT_NONE;

    if (e->by == FT_PAIRED_BY_BOTH_HOSTS && !ft_pairing_peer(p, e))
        ft_pairing_unlink(p, e, true);
    if (e->reported || e->by)
        return;
    if (ft_pairing_samples_determine(p, e, &tuple)) {
        ft_pairing_set_by(p, e, FT_PAIRED_BY_SAMPLES);
        set_tuple(p, e, &tuple, true);
        return;
    }
    e->state = FT_PAIR_PEER_GONE;
    if (e->spent || !e->counted)
        return;
    peer = ft_pairing_groups_choose(p, e, &by, &comm, &why);
    if (peer)
        why = peer->by ? FT_PAIR_WAITING : agree(p, e, peer, by, &tuple);
    e->state = (uint8_t)why;
    if (!peer || why != FT_PAIR_PAIRED)
        return;
    link_two(p, e, peer, by, comm);
    set_tuple(p, e, &tuple, false);
    back = turned(&tuple);
    if (!peer->reported)
        set_tuple(p, peer, &back, false);
}
