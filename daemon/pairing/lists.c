// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/pairing/state.h"
#include "proto/record.h"

#define QPN_MAX    0xFFFFFFu
#define MOMENT_MAX (INT64_C(1) << 42)
/* Of a list: more than agents name at a time. */
#define LIST_ENDS_MAX      512
#define LIST_ADDRESSES_MAX 1024

void ft_pairing_drop_addresses(struct ft_pairing *p, struct ft_pairing_port *port)
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

/* Pairs of a port whose addresses are others now, the oldest first. */
static void unlink_port(struct ft_pairing *p, uint32_t index)
{
    const struct ft_pairing_port *port = ft_table_at(p->ports, index);

    while (port->first_linked != FT_NONE)
        ft_pairing_unlink(p, ft_pairing_at(p, port->first_linked), false);
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
    ft_pairing_drop_addresses(p, port);
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

void ft_pairing_remove_end(struct ft_pairing *p, struct ft_pairing_qp *e, bool gone)
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
    e->next_linked = e->previous_linked = FT_NONE;
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
            ft_pairing_remove_end(
                p, e, q->ended || e->remote != q->remote || e->since_ms != (int64_t)q->since_ms);
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
              l->time_ms > 0 && l->time_ms < MOMENT_MAX && l->has_interval_ms && l->has_listed &&
              l->n_queue_pairs <= LIST_ENDS_MAX && l->n_addresses <= LIST_ADDRESSES_MAX;

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
    if (fresh) {
        port->host = ft_table_index(p->hosts, host);
        port->first_linked = port->last_linked = FT_NONE;
        host->users++;
    }
    snprintf(port->driver, sizeof(port->driver), "%s", l->driver ? l->driver : "");
    port->heard_ms = p->now_ms;
    port->interval_ms = l->interval_ms;
    return port;
}

int ft_pairing_lists_take(struct ft_pairing *p, const Fabrictrace__QueuePairs *l, int64_t now_ms)
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
