// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pairing/pairing.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/pairing/state.h"
#include "proto/record.h"

#define NAMES_MAX 65536
/* Communicators of a process, on average, that its ends are counted in. */
#define GROUPS_EACH 8

struct ft_pairing *ft_pairing_new(const struct ft_pairing_config *config,
                                  const struct ft_pairing_hooks *hooks)
{
    struct ft_pairing *p = calloc(1, sizeof(*p));
    size_t ends = config->ends_max, ports = config->ports_max, members = config->members_max;

    if (!p)
        return NULL;
    p->config = *config;
    p->hooks = *hooks;
    p->first_uncertain = p->last_uncertain = FT_NONE;
    p->names = ft_names_new(NAMES_MAX);
#define TABLE(type, key_bytes, cap) ft_table_new(sizeof(struct type), key_bytes, cap, config->seed)
    p->hosts = TABLE(ft_pairing_host, FT_PAIRING_NAME, ports + members);
    p->ports = TABLE(ft_pairing_port, sizeof(struct ft_pairing_port_key), ports);
    p->addresses = TABLE(ft_pairing_address, sizeof(struct ft_ip), ports * FT_PAIRING_ADDRESSES);
    p->ends = TABLE(ft_pairing_qp, sizeof(struct ft_pairing_end_key), ends);
    p->buckets = TABLE(ft_pairing_bucket, sizeof(struct ft_pairing_bucket_key), ends * GROUPS_EACH);
    p->named = TABLE(ft_pairing_named, sizeof(struct ft_pairing_named_key), ends);
    p->sampled = TABLE(ft_pairing_sampled, sizeof(struct ft_pairing_sampled_key), 2 * ends);
    p->tuples = TABLE(ft_pairing_tuple, sizeof(struct ft_tuple), 2 * ends);
    p->processes = TABLE(ft_pairing_process, sizeof(struct ft_pairing_process_key), ends + members);
    p->comms = TABLE(ft_pairing_comm, FT_PAIRING_COMM, members);
    p->members = TABLE(ft_pairing_member, sizeof(struct ft_pairing_member_key), members);
#undef TABLE
    if (!p->names || !p->hosts || !p->ports || !p->addresses || !p->ends || !p->buckets ||
        !p->named || !p->sampled || !p->tuples || !p->processes || !p->comms || !p->members) {
        ft_pairing_free(p);
        return NULL;
    }
    return p;
}

void ft_pairing_free(struct ft_pairing *p)
{
    if (!p)
        return;
    ft_names_free(p->names);
    ft_table_free(p->hosts);
    ft_table_free(p->ports);
    ft_table_free(p->addresses);
    ft_table_free(p->ends);
    ft_table_free(p->buckets);
    ft_table_free(p->named);
    ft_table_free(p->sampled);
    ft_table_free(p->tuples);
    ft_table_free(p->processes);
    ft_table_free(p->comms);
    ft_table_free(p->members);
    free(p);
}

bool ft_pairing_free_step(struct ft_pairing *p)
{
    struct ft_table *const tables[] = {p->ends,   p->buckets,   p->named,     p->sampled,
                                       p->tuples, p->processes, p->addresses, p->ports,
                                       p->hosts,  p->comms,     p->members};

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        if (ft_table_free_some(tables[i]))
            return true;
    ft_pairing_free(p);
    return false;
}

int ft_pairing_list(struct ft_pairing *p, const Fabrictrace__QueuePairs *list, int64_t now_ms)
{
    ft_pairing_finish(p);
    return ft_pairing_lists_take(p, list, now_ms);
}

void ft_pairing_communicator(struct ft_pairing *p, const Fabrictrace__Communicator *c,
                             int64_t now_ms)
{
    ft_pairing_finish(p);
    p->now_ms = now_ms;
    ft_pairing_members_take(p, c);
    ft_pairing_unlink_uncertain(p);
}

void ft_pairing_observe(struct ft_pairing *p, const struct ft_observed *o, int64_t now_ms)
{
    struct ft_pairing_qp *e, *peer;
    const struct ft_tuple *tuple = &o->tuple;
    int64_t ms = (int64_t)o->first_ms;
    uint32_t from, to;

    ft_pairing_finish(p);
    p->now_ms = now_ms;
    if (ft_table_count(p->ports) == 0 || !o->has_dst_qp || tuple->dport != FT_ROCE_PORT)
        return;
    from = ft_pairing_port_at(p, &tuple->src);
    to = ft_pairing_port_at(p, &tuple->dst);
    if (from == FT_NONE || to == FT_NONE)
        p->stranger_ms = now_ms;
    if (from == FT_NONE)
        return;
    if (to == FT_NONE) {
        if (!ft_pairing_knows(p, &tuple->dst)) {
            ft_pairing_samples_take(p, from, tuple, o->dst_qp, ms);
            ft_pairing_unlink_uncertain(p);
        }
        return;
    }
    peer = ft_pairing_find(p, to, o->dst_qp);
    e = peer ? ft_pairing_find(p, from, peer->remote) : NULL;
    if (e && e != peer && e->remote == o->dst_qp && ft_pairing_is_later(e, ms) &&
        ft_pairing_is_later(peer, ms) && ft_pairing_samples_alone(p, e, tuple, ms))
        ft_pairing_confirm(p, e, peer, tuple, ms);
}

size_t ft_pairing_ends(const struct ft_pairing *p)
{
    return ft_table_count(p->ends);
}

size_t ft_pairing_bytes(const struct ft_pairing *p)
{
    return ft_table_bytes(p->hosts) + ft_table_bytes(p->ports) + ft_table_bytes(p->addresses) +
           ft_table_bytes(p->ends) + ft_table_bytes(p->buckets) + ft_table_bytes(p->named) +
           ft_table_bytes(p->sampled) + ft_table_bytes(p->tuples) + ft_table_bytes(p->processes) +
           ft_table_bytes(p->comms) + ft_table_bytes(p->members);
}

static void describe(const struct ft_pairing *p, const struct ft_pairing_qp *e,
                     struct ft_pairing_end *out)
{
    const struct ft_pairing_port *port = ft_pairing_port_of(p, e);
    const struct ft_pairing_qp *peer = ft_pairing_peer(p, e);

    *out = (struct ft_pairing_end){
        .host = port->key.host,
        .device = port->key.device,
        .driver = port->driver,
        .port = port->key.port,
        .local = e->key.local,
        .remote = e->remote,
        .pid = e->pid,
        .comm = e->comm,
        .job = e->job,
        .state = (enum ft_pair_state)e->state,
        .by = (enum ft_paired_by)e->by,
        .has_tuple = e->has_tuple,
        .observed = e->observed,
        .tuple = e->tuple,
        .since_ms = e->since_ms,
    };
    if (peer) {
        out->peer_host = ft_pairing_port_of(p, peer)->key.host;
        out->peer_device = ft_pairing_port_of(p, peer)->key.device;
    }
    if (e->comm_index != FT_NONE)
        out->comm_id = ((const struct ft_pairing_comm *)ft_table_at(p->comms, e->comm_index))->id;
}

bool ft_pairing_next(const struct ft_pairing *p, uint32_t *index, struct ft_pairing_end *out)
{
    const struct ft_pairing_qp *e = ft_table_next(p->ends, index);

    if (e)
        describe(p, e, out);
    return e != NULL;
}

bool ft_pairing_end_at(const struct ft_pairing *p, uint32_t index, struct ft_pairing_end *out)
{
    const struct ft_pairing_qp *e = ft_table_at(p->ends, index);

    if (e)
        describe(p, e, out);
    return e != NULL;
}

const char *ft_pair_state_name(enum ft_pair_state state)
{
    static const char *const names[FT_PAIR_STATES] = {
        [FT_PAIR_WAITING] = "waiting",
        [FT_PAIR_PAIRED] = "paired",
        [FT_PAIR_REPORTED] = "reported",
        [FT_PAIR_NO_PEER] = "no_peer",
        [FT_PAIR_SEVERAL_PEERS] = "several_peers",
        [FT_PAIR_SEVERAL_ADDRESSES] = "several_addresses",
        [FT_PAIR_NO_ADDRESS] = "no_address",
        [FT_PAIR_NO_PORT] = "no_port",
        [FT_PAIR_SAME_HOST] = "same_host",
        [FT_PAIR_PEER_GONE] = "peer_gone",
        [FT_PAIR_INCOMPLETE] = "incomplete",
        [FT_PAIR_UNTIMED] = "untimed",
        [FT_PAIR_ITSELF] = "itself",
    };

    return names[state];
}

const char *ft_paired_by_name(enum ft_paired_by by)
{
    static const char *const names[] = {
        [FT_PAIRED_BY_NOTHING] = "",
        [FT_PAIRED_BY_SAMPLES] = "samples",
        [FT_PAIRED_BY_BOTH_HOSTS] = "both_hosts",
        [FT_PAIRED_BY_COMMUNICATOR] = "communicator",
        [FT_PAIRED_BY_FABRIC] = "fabric",
        [FT_PAIRED_BY_PEER] = "peer",
    };

    return names[by];
}

void ft_pairing_account(const struct ft_pairing *p, struct ft_account *account)
{
    struct ft_account_stage *stage = ft_account_stage(account, "queue_pairs", "ends");

    stage->received = p->stats.received;
    stage->processed = p->stats.ended;
    stage->pending = ft_table_count(p->ends);
    ft_account_drop(stage, "table_full", p->stats.refused);
    ft_account_drop(stage, "not_announced", p->stats.aged);
}

void ft_pairing_stats(const struct ft_pairing *p, struct ft_pairing_stats *stats)
{
    *stats = p->stats;
}
