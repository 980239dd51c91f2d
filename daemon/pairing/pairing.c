// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pairing/pairing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pairing/state.h"
#include "proto/record.h"

#define NAMES_MAX 65536
/* Communicators of a process, on average, that its ends are counted in. */
#define GROUPS_EACH 8
#define SWEEP_MS    1000
/* A sweep takes a few percent of the time at most. */
#define SWEEP_ENDS_A_MS 50
/* Announcements that may be missed. */
#define MISSED     2.5
#define QPN_MAX    0xFFFFFFu
#define MOMENT_MAX (INT64_C(1) << 42)

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

static void drop_addresses(struct ft_pairing *p, struct ft_pairing_port *port)
{
    for (uint32_t i = 0; i < port->address_count; i++) {
        struct ft_pairing_address *a = ft_table_find(p->addresses, &port->addresses[i]);

        if (!a)
            continue;
        a->count--;
        a->sum -= ft_table_index(p->ports, port);
        if (a->count == 0)
            ft_table_remove(p->addresses, a);
    }
    port->address_count = 0;
}

/* Pairs of a port whose addresses are others now. */
static void unlink_port(struct ft_pairing *p, uint32_t port)
{
    const struct ft_pairing_port *owner = ft_table_at(p->ports, port);
    struct ft_pairing_qp *e;
    uint32_t index = 0;

    while (owner->held > 0 && (e = ft_table_next(p->ends, &index)))
        if (e->key.port == port && e->by)
            ft_pairing_unlink(p, e, false);
}

static void set_addresses(struct ft_pairing *p, struct ft_pairing_port *port,
                          const Fabrictrace__QueuePairs *list)
{
    struct ft_ip ips[FT_PAIRING_ADDRESSES];
    uint32_t count = 0;

    for (size_t i = 0; i < list->n_addresses && count < FT_PAIRING_ADDRESSES; i++) {
        bool again = false;

        if (ft_ip_from_bytes(list->addresses[i].data, list->addresses[i].len, &ips[count]))
            continue;
        for (uint32_t k = 0; k < count; k++)
            again |= ft_ip_equal(&ips[k], &ips[count]);
        count += !again;
    }
    port->more_addresses = list->n_addresses > FT_PAIRING_ADDRESSES;
    if (count == port->address_count &&
        memcmp(ips, port->addresses, count * sizeof(struct ft_ip)) == 0)
        return;
    if (port->address_count)
        unlink_port(p, ft_table_index(p->ports, port));
    drop_addresses(p, port);
    for (uint32_t i = 0; i < count; i++) {
        struct ft_pairing_address *a;
        bool fresh;

        a = ft_table_insert(p->addresses, &ips[i], &fresh);
        if (!a)
            continue;
        /* Pairs that rest on the address being one port's alone. */
        if (a->count == 1)
            unlink_port(p, (uint32_t)a->sum);
        a->count++;
        a->sum += ft_table_index(p->ports, port);
        port->addresses[port->address_count++] = ips[i];
    }
}

/* gone: there is none any more; else it is only known in another way. */
static void remove_end(struct ft_pairing *p, struct ft_pairing_qp *e, bool gone)
{
    struct ft_pairing_port *port = ft_table_at(p->ports, e->key.port);
    struct ft_pairing_host *host = ft_table_at(p->hosts, port->host);

    ft_pairing_unlink(p, e, gone);
    ft_pairing_group_remove(p, e, gone);
    ft_pairing_unlink_uncertain(p);
    ft_pairing_samples_remove(p, e);
    ft_pairing_process_remove(p, e);
    host->anonymous -= e->pid == 0 && !e->kernel;
    host->held--;
    port->held--;
    ft_table_remove(p->ends, e);
}

static bool fits(const Fabrictrace__QueuePair *q)
{
    struct ft_ip ip;

    return q->has_local && q->local <= QPN_MAX && q->has_remote && q->remote <= QPN_MAX &&
           q->has_since_ms && q->since_ms < MOMENT_MAX &&
           (!q->has_sport || (q->sport > 0 && q->sport <= 65535)) &&
           (!q->has_src || ft_ip_from_bytes(q->src.data, q->src.len, &ip) == 0) &&
           (!q->has_dst || ft_ip_from_bytes(q->dst.data, q->dst.len, &ip) == 0) &&
           q->has_src == q->has_dst;
}

/* The same end, as far as its pair depends on it. */
static bool same(const struct ft_pairing_qp *e, const Fabrictrace__QueuePair *q)
{
    struct ft_ip src, dst;

    /* The thread that made it, which the kernel's list names, may be gone before its process. */
    if (e->remote != q->remote || (e->pid != q->pid && (q->has_pid || q->kernel)) ||
        e->since_ms != (int64_t)q->since_ms || e->reported != (bool)q->has_dst ||
        e->has_sport != (bool)q->has_sport || (e->has_sport && e->sport != q->sport))
        return false;
    return !e->reported || (ft_ip_from_bytes(q->src.data, q->src.len, &src) == 0 &&
                            ft_ip_from_bytes(q->dst.data, q->dst.len, &dst) == 0 &&
                            ft_ip_equal(&src, &e->src) && ft_ip_equal(&dst, &e->dst));
}

static int add_end(struct ft_pairing *p, struct ft_pairing_port *port,
                   const Fabrictrace__QueuePair *q)
{
    const struct ft_pairing_end_key key = {ft_table_index(p->ports, port), q->local};
    struct ft_pairing_host *host = ft_table_at(p->hosts, port->host);
    struct ft_pairing_qp *e;
    bool fresh;

    p->stats.received++;
    e = ft_table_insert(p->ends, &key, &fresh);
    if (!e) {
        p->stats.refused++;
        return -ENOSPC;
    }
    e->remote = q->remote;
    e->pid = q->has_pid ? q->pid : 0;
    e->seq = ++p->seq;
    e->peer = e->comm_index = FT_NONE;
    e->sport = (uint16_t)q->sport;
    e->has_sport = q->has_sport;
    e->begun = q->begun;
    e->kernel = q->kernel;
    e->reported = q->has_dst;
    if (e->reported) {
        ft_ip_from_bytes(q->src.data, q->src.len, &e->src);
        ft_ip_from_bytes(q->dst.data, q->dst.len, &e->dst);
    }
    e->state = e->reported ? FT_PAIR_REPORTED : FT_PAIR_WAITING;
    e->since_ms = (int64_t)q->since_ms;
    host->held++;
    host->anonymous += e->pid == 0 && !e->kernel;
    port->held++;
    ft_pairing_process_add(p, e);
    ft_pairing_group_add(p, e);
    ft_pairing_samples_add(p, e);
    ft_pairing_unlink_uncertain(p);
    return 0;
}

static int take_end(struct ft_pairing *p, struct ft_pairing_port *port,
                    const Fabrictrace__QueuePair *q)
{
    struct ft_pairing_qp *e = ft_pairing_find(p, ft_table_index(p->ports, port), q->local);
    bool known = e && same(e, q);
    int rc;

    if (q->ended || (e && !known)) {
        p->stats.ended += e != NULL;
        if (e)
            remove_end(p, e,
                       q->ended || e->remote != q->remote || e->since_ms != (int64_t)q->since_ms);
        if (q->ended)
            return 0;
    }
    if (!known) {
        rc = add_end(p, port, q);
        if (rc)
            return rc;
        e = ft_pairing_find(p, ft_table_index(p->ports, port), q->local);
    }
    e->heard_ms = p->now_ms;
    e->interval_ms = port->interval_ms;
    if (!known || q->has_pid) {
        e->comm = ft_names_intern(p->names, q->comm);
        e->job = ft_names_intern(p->names, q->job);
    }
    if (known && e->has_tuple)
        ft_pairing_report_again(p, e);
    return 0;
}

static bool is_complete(const Fabrictrace__QueuePairs *l)
{
    bool ok = l->host && strlen(l->host) < FT_PAIRING_NAME && *l->host && l->device &&
              strlen(l->device) < FT_PAIRING_NAME && l->has_port && l->has_time_ms &&
              l->time_ms > 0 && l->time_ms < MOMENT_MAX && l->has_interval_ms && l->has_listed;

    for (size_t i = 0; ok && i < l->n_queue_pairs; i++)
        ok = fits(l->queue_pairs[i]);
    return ok;
}

static struct ft_pairing_port *port_of(struct ft_pairing *p, const Fabrictrace__QueuePairs *l)
{
    struct ft_pairing_port_key key;
    struct ft_pairing_host *host;
    struct ft_pairing_port *port;
    bool fresh;

    memset(&key, 0, sizeof(key));
    snprintf(key.host, sizeof(key.host), "%s", l->host);
    snprintf(key.device, sizeof(key.device), "%s", l->device);
    key.port = l->port;
    host = ft_table_insert(p->hosts, key.host, &fresh);
    port = host ? ft_table_insert(p->ports, &key, &fresh) : NULL;
    if (!port)
        return NULL;
    port->host = ft_table_index(p->hosts, host);
    host->users += fresh;
    snprintf(port->driver, sizeof(port->driver), "%s", l->driver ? l->driver : "");
    port->heard_ms = p->now_ms;
    port->interval_ms = l->interval_ms;
    return port;
}

int ft_pairing_list(struct ft_pairing *p, const Fabrictrace__QueuePairs *l, int64_t now_ms)
{
    struct ft_pairing_port *port;
    struct ft_pairing_host *host;
    int64_t complete_ms;
    int rc = 0;

    p->now_ms = now_ms;
    if (!is_complete(l))
        return -EINVAL;
    port = port_of(p, l);
    if (!port) {
        p->stats.received += l->n_queue_pairs;
        p->stats.refused += l->n_queue_pairs;
        return -ENOSPC;
    }
    set_addresses(p, port, l);
    for (size_t i = 0; i < l->n_queue_pairs; i++)
        if (take_end(p, port, l->queue_pairs[i]))
            rc = -ENOSPC;
    host = ft_table_at(p->hosts, port->host);
    host->listed = l->listed;
    host->heard_ms = now_ms;
    /* A clock that is ahead says nothing of what is yet to come. */
    complete_ms = (int64_t)l->time_ms < now_ms ? (int64_t)l->time_ms : now_ms;
    host->complete_ms = host->held == host->listed ? complete_ms : 0;
    return rc;
}

void ft_pairing_communicator(struct ft_pairing *p, const Fabrictrace__Communicator *c,
                             int64_t now_ms)
{
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

/* Hosts come and go for ever. */
static void forget_hosts(struct ft_pairing *p)
{
    struct ft_pairing_host *host;
    uint32_t index = 0;

    while ((host = ft_table_next(p->hosts, &index)))
        if (host->users == 0 && p->now_ms - host->heard_ms >= FT_PAIRING_HOST_MS)
            ft_table_remove(p->hosts, host);
}

static void age(struct ft_pairing *p)
{
    bool sweeping = ft_names_crowded(p->names);
    struct ft_pairing_port *port;
    struct ft_pairing_qp *e;
    uint32_t index = 0;

    if (sweeping)
        ft_names_begin(p->names);
    while ((e = ft_table_next(p->ends, &index))) {
        if ((double)(p->now_ms - e->heard_ms) <= MISSED * (double)e->interval_ms) {
            ft_names_use(p->names, e->comm);
            ft_names_use(p->names, e->job);
            continue;
        }
        p->stats.aged++;
        remove_end(p, e, true);
    }
    if (sweeping)
        ft_names_sweep(p->names);
    for (index = 0; (port = ft_table_next(p->ports, &index));) {
        struct ft_pairing_host *host = ft_table_at(p->hosts, port->host);

        if ((double)(p->now_ms - port->heard_ms) <= MISSED * (double)port->interval_ms)
            continue;
        host->complete_ms = 0;
        if (port->held)
            continue;
        drop_addresses(p, port);
        host->users--;
        ft_table_remove(p->ports, port);
    }
    for (index = 0; ft_pairing_members_age(p, &index);)
        ft_pairing_unlink_uncertain(p);
    forget_hosts(p);
}

void ft_pairing_sweep(struct ft_pairing *p, int64_t now_ms)
{
    int64_t apart_ms = SWEEP_MS + (int64_t)ft_table_count(p->ends) / SWEEP_ENDS_A_MS;
    struct ft_pairing_qp *e;
    uint32_t index = 0;

    if (ft_table_count(p->ports) == 0 || now_ms - p->swept_ms < apart_ms)
        return;
    p->swept_ms = p->now_ms = now_ms;
    age(p);
    ft_pairing_groups_begin(p);
    while ((e = ft_table_next(p->ends, &index)))
        ft_pairing_judge(p, e);
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
