// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/jobs/ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs/ranks_impl.h"
#include "lib/base/table.h"

/* Of a collective, and queue pairs of each: more than agents list. A peer is compared with all
 * others. */
#define PEERS_MAX    256
#define PEER_QPS_MAX 16

struct ft_ranks *ft_ranks_new(const struct ft_ranks_config *config)
{
    struct ft_ranks *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->members =
        ft_table_new(sizeof(struct ft_ranks_member_entry), sizeof(struct ft_ranks_member_key),
                     config->members_max, config->seed);
    r->edges = ft_table_new(sizeof(struct ft_ranks_edge_entry), sizeof(struct ft_ranks_edge_key),
                            config->edges_max, config->seed);
    r->hosts = ft_table_new(sizeof(struct ft_ranks_hosts), sizeof(struct ft_ranks_hosts_key),
                            config->edges_max, config->seed);
    r->qps = ft_table_new(sizeof(struct ft_ranks_qp), sizeof(struct ft_ranks_qp_key),
                          config->edges_max, config->seed);
    if (!r->members || !r->edges || !r->hosts || !r->qps) {
        ft_ranks_free(r);
        return NULL;
    }
    return r;
}

void ft_ranks_free(struct ft_ranks *r)
{
    if (!r)
        return;
    ft_table_free(r->members);
    ft_table_free(r->edges);
    ft_table_free(r->hosts);
    ft_table_free(r->qps);
    free(r);
}

static bool is_process(const struct ft_ranks_member_entry *m, const char *host, uint32_t pid)
{
    return m->m.pid == pid && strncmp(m->m.host, host, sizeof(m->m.host) - 1) == 0;
}

/* Whether the rank is another process than this one: it has not left, and was heard of. */
static bool is_anothers(const struct ft_ranks *r, const struct ft_ranks_member_entry *m,
                        const char *host, uint32_t pid)
{
    return m && !m->m.closed && ft_ranks_within(r->now_ms, m->heard_ms, FT_RANKS_SILENT_MS) &&
           !is_process(m, host, pid);
}

/* The same of who reports an operation, as far as the report says. */
static bool reports_anothers(const struct ft_ranks *r, const struct ft_ranks_member_key *key,
                             const Fabrictrace__Collective *c)
{
    const struct ft_ranks_member_entry *m = ft_table_find(r->members, key);

    return m && is_anothers(r, m, c->host ? c->host : m->m.host, c->pid ? c->pid : m->m.pid);
}

int ft_ranks_communicator(struct ft_ranks *r, const Fabrictrace__Communicator *c)
{
    struct ft_ranks_member_key key;
    struct ft_ranks_member_entry *m;

    if (!c->comm_id || !c->has_rank || !c->host || strlen(c->comm_id) >= FT_RANKS_ID)
        return -EINVAL;
    key = ft_ranks_member_key(c->comm_id, c->rank);
    m = ft_table_find(r->members, &key);
    if (is_anothers(r, m, c->host, c->pid)) {
        r->contested++;
        return -EEXIST;
    }
    /* One that has left is not replaced by one that leaves. */
    if (m && c->closed && !is_process(m, c->host, c->pid))
        return 0;
    if (!m)
        m = ft_ranks_insert(r, FT_RANKS_MEMBERS, &key);
    if (!m)
        return -ENOSPC;
    m->heard_ms = r->now_ms;
    /* Another process: what its forerunner stood in is over. */
    if (!is_process(m, c->host, c->pid))
        m->m.progress = (struct ft_rank_progress){.time_ms = 0};
    memcpy(m->m.comm_id, key.comm_id, sizeof(key.comm_id));
    m->m.rank = c->rank;
    m->m.ranks = c->ranks;
    m->m.pid = c->pid;
    m->m.closed = c->closed;
    ft_ranks_copy(m->m.host, sizeof(m->m.host), c->host);
    ft_ranks_copy(m->m.job, sizeof(m->m.job), c->job);
    ft_ranks_copy(m->m.gpu, sizeof(m->m.gpu), c->gpu);
    ft_ranks_copy(m->m.name, sizeof(m->m.name), c->name);
    return 0;
}

/* Of the operation that holds up the others, where that is known. */
static const Fabrictrace__Transfer *longest(const Fabrictrace__Progress *in)
{
    const Fabrictrace__Transfer *found = NULL;

    for (size_t i = 0; i < in->n_transfers; i++) {
        const Fabrictrace__Transfer *t = in->transfers[i];

        if (!t->has_since_ms || !t->has_state || (in->has_number && t->number != in->number))
            continue;
        if (!found || t->since_ms < found->since_ms)
            found = t;
    }
    return found;
}

void ft_ranks_progress(struct ft_ranks *r, const Fabrictrace__Progress *in)
{
    const Fabrictrace__Transfer *t = longest(in);
    struct ft_ranks_member_key key;
    struct ft_ranks_member_entry *m;

    if (!in->comm_id || !in->has_rank || strlen(in->comm_id) >= FT_RANKS_ID)
        return;
    key = ft_ranks_member_key(in->comm_id, in->rank);
    m = ft_table_find(r->members, &key);
    if (!m || m->m.pid != in->pid || !in->host || strcmp(m->m.host, in->host) != 0)
        return;
    m->m.progress = (struct ft_rank_progress){
        .time_ms = (int64_t)in->time_ms,
        .process = in->process,
        .state = in->state,
        .standing = in->standing,
        .begun = in->begun,
        .finished = in->finished,
        .number = in->number,
        .start_ms = (int64_t)in->start_ms,
        .has_transfer = t,
        .transfer = t ? t->state : 0,
        .transfer_send = t && t->send,
        .transfer_peer = t && t->has_peer ? t->peer : UINT32_MAX,
        .transfer_since_ms = t ? (int64_t)t->since_ms : 0,
    };
    ft_ranks_copy(m->m.progress.op, sizeof(m->m.progress.op), in->op);
}

double ft_ranks_expected(const char *op, const char *algo, double bytes, double ranks,
                         double channels, double channels_used)
{
    bool ring = algo && strcmp(algo, "RING") == 0, tree = algo && strcmp(algo, "TREE") == 0;

    if (!op || ranks < 1 || channels < 1 || channels_used < 1)
        return -1;
    if (strcmp(op, "AllReduce") == 0 && ring)
        return 2 * bytes * (ranks - 1) / ranks / channels;
    if (strcmp(op, "AllReduce") == 0 && tree)
        return bytes / channels;
    if ((strcmp(op, "AllGather") == 0 || strcmp(op, "ReduceScatter") == 0) && ring)
        return bytes * (ranks - 1) / ranks / channels;
    if ((strcmp(op, "Broadcast") == 0 || strcmp(op, "Reduce") == 0) && ring)
        return bytes / channels;
    if (strcmp(op, "AlltoAll") == 0)
        return bytes / ranks / channels_used;
    if (strcmp(op, "Send") == 0)
        return bytes / channels_used;
    return -1;
}

static struct ft_ranks_hosts_key hosts_key(const char *src, const char *dst, uint32_t src_pid)
{
    struct ft_ranks_hosts_key key;

    memset(&key, 0, sizeof(key));
    ft_ranks_copy(key.src, sizeof(key.src), src);
    ft_ranks_copy(key.dst, sizeof(key.dst), dst);
    key.src_pid = src_pid;
    return key;
}

static void list_pair(struct ft_ranks *r, const struct ft_ranks_hosts_key *key,
                      const struct ft_ranks_member_key *src, uint32_t dst)
{
    struct ft_ranks_hosts *h = ft_ranks_insert(r, FT_RANKS_HOSTS, key);

    if (!h)
        return;
    h->heard_ms = r->now_ms;
    for (uint32_t i = 0; i < h->count; i++)
        if (h->dst[i] == dst && memcmp(&h->src[i], src, sizeof(*src)) == 0)
            return;
    /* One that has ended is replaced. */
    for (uint32_t i = 0; i < h->count; i++) {
        const struct ft_rank_member *old = ft_ranks_find(r, &h->src[i]);

        if (old && !old->closed)
            continue;
        h->src[i] = *src;
        h->dst[i] = dst;
        return;
    }
    if (h->count == FT_RANKS_CANDIDATES_MAX) {
        h->more = true;
        h->more_ms = r->now_ms;
        return;
    }
    h->src[h->count] = *src;
    h->dst[h->count++] = dst;
}

/* Remembers that a pair of ranks talks between its hosts, as soon as both are known. Between hosts
 * of many ranks and communicators there are more than can be named, but few of one process. */
static void list_hosts(struct ft_ranks *r, const struct ft_ranks_member_key *src, uint32_t dst)
{
    const struct ft_ranks_member_key dst_key = ft_ranks_member_key(src->comm_id, dst);
    const struct ft_rank_member *a = ft_ranks_find(r, src), *b = ft_ranks_find(r, &dst_key);
    struct ft_ranks_hosts_key key;

    if (!a || !b)
        return;
    key = hosts_key(a->host, b->host, a->pid);
    list_pair(r, &key, src, dst);
    if (key.src_pid) {
        key.src_pid = 0;
        list_pair(r, &key, src, dst);
    }
}

static void note_qps(struct ft_ranks *r, const Fabrictrace__Collective *c,
                     const Fabrictrace__PeerTraffic *p, const struct ft_ranks_member_key *src)
{
    for (size_t i = 0; c->host && i < p->n_local_qps; i++) {
        struct ft_ranks_qp_key key;
        struct ft_ranks_qp *qp;

        memset(&key, 0, sizeof(key));
        ft_ranks_copy(key.host, sizeof(key.host), c->host);
        key.qp = p->local_qps[i];
        qp = ft_ranks_insert(r, FT_RANKS_QPS, &key);
        if (!qp)
            return;
        /* It is one of another process. */
        if (qp->src.comm_id[0] && reports_anothers(r, &qp->src, c)) {
            r->contested++;
            continue;
        }
        qp->heard_ms = r->now_ms;
        qp->src = *src;
        qp->dst = p->peer;
    }
}

static struct ft_rank_edge *edge_of(struct ft_ranks *r, const Fabrictrace__Collective *c,
                                    uint32_t src, uint32_t dst)
{
    struct ft_ranks_edge_key key;
    struct ft_ranks_edge_entry *e;

    memset(&key, 0, sizeof(key));
    ft_ranks_copy(key.comm_id, sizeof(key.comm_id), c->comm_id);
    /* Both ends of a transfer are one operation. */
    ft_ranks_copy(key.op, sizeof(key.op), c->op && strcmp(c->op, "Recv") == 0 ? "Send" : c->op);
    key.src = src;
    key.dst = dst;
    e = ft_ranks_insert(r, FT_RANKS_EDGES, &key);
    if (!e)
        return NULL;
    e->heard_ms = r->now_ms;
    memcpy(e->e.comm_id, key.comm_id, sizeof(key.comm_id));
    memcpy(e->e.op, key.op, sizeof(key.op));
    e->e.src = src;
    e->e.dst = dst;
    e->e.last_ms = (int64_t)c->time_ms;
    return &e->e;
}

static double channels_used(const Fabrictrace__Collective *c, uint32_t peer)
{
    double n = 0;

    for (size_t i = 0; i < c->n_peers; i++)
        n += c->peers[i]->has_sent_messages && c->peers[i]->peer == peer;
    return n;
}

static int add_sent(struct ft_ranks *r, const Fabrictrace__Collective *c,
                    const Fabrictrace__PeerTraffic *p)
{
    struct ft_rank_edge *e = edge_of(r, c, c->rank, p->peer);
    double expected = ft_ranks_expected(c->op, c->algo, (double)c->bytes, c->ranks,
                                        c->channels ? c->channels : 1, channels_used(c, p->peer));

    if (!e)
        return -ENOSPC;
    e->sent_bytes += p->sent_bytes;
    e->sent_messages += p->sent_messages;
    if (expected > 0 && c->has_bytes)
        e->expected_bytes += expected * (double)(c->has_operations ? c->operations : 1);
    e->step_median_ns = p->step_median_ns;
    e->step_max_ns = p->step_max_ns;
    return 0;
}

static void note_dropped(struct ft_ranks *r, const Fabrictrace__Collective *c,
                         const struct ft_ranks_member_key *own)
{
    struct ft_ranks_member_entry *m = c->peers_dropped > 0 ? ft_table_find(r->members, own) : NULL;

    if (!m)
        return;
    m->m.transfers_dropped += c->peers_dropped;
    m->m.bytes_dropped += c->sent_bytes_dropped + c->received_bytes_dropped;
}

static bool lists_too_much(const Fabrictrace__Collective *c)
{
    bool much = c->n_peers > PEERS_MAX;

    for (size_t i = 0; !much && i < c->n_peers; i++)
        much = c->peers[i]->n_local_qps > PEER_QPS_MAX;
    return much;
}

int ft_ranks_collective(struct ft_ranks *r, const Fabrictrace__Collective *c)
{
    struct ft_ranks_member_key own;
    int rc = 0;

    if (!c->comm_id || !c->has_rank || strlen(c->comm_id) >= FT_RANKS_ID || lists_too_much(c))
        return -EINVAL;
    own = ft_ranks_member_key(c->comm_id, c->rank);
    if (reports_anothers(r, &own, c)) {
        r->contested++;
        return -EEXIST;
    }
    note_dropped(r, c, &own);
    for (size_t i = 0; i < c->n_peers; i++) {
        const Fabrictrace__PeerTraffic *p = c->peers[i];
        const struct ft_ranks_member_key peer = ft_ranks_member_key(c->comm_id, p->peer);

        if (!p->has_peer)
            continue;
        if (p->has_sent_messages) {
            if (add_sent(r, c, p))
                rc = -ENOSPC;
            list_hosts(r, &own, p->peer);
            note_qps(r, c, p, &own);
        }
        if (p->has_received_messages) {
            struct ft_rank_edge *e = edge_of(r, c, p->peer, c->rank);

            if (!e) {
                rc = -ENOSPC;
                continue;
            }
            e->received_bytes += p->received_bytes;
            e->received_messages += p->received_messages;
            list_hosts(r, &peer, c->rank);
        }
    }
    return rc;
}

static bool fits(const struct ft_ranks *r, const struct ft_ranks_member_key *src, uint32_t dst,
                 uint32_t src_pid, struct ft_rank_pair *pair)
{
    const struct ft_rank_member *a = ft_ranks_find(r, src);
    const struct ft_ranks_member_key dst_key = ft_ranks_member_key(src->comm_id, dst);
    const struct ft_rank_member *b = ft_ranks_find(r, &dst_key);

    if (!a || !b || a->closed || b->closed || (src_pid && a->pid && a->pid != src_pid))
        return false;
    pair->comm_id = a->comm_id;
    pair->job = a->job[0] ? a->job : NULL;
    pair->src = a->rank;
    pair->dst = dst;
    return true;
}

size_t ft_ranks_match(const struct ft_ranks *r, const struct ft_rank_query *query,
                      struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX], bool *more)
{
    const struct ft_ranks_hosts *h;
    struct ft_ranks_hosts_key key;
    struct ft_ranks_qp_key qp_key;
    bool unknown = false;
    size_t n = 0;

    *more = false;
    if (!query->src_host || !query->dst_host || ft_table_count(r->hosts) == 0)
        return 0;
    memset(&qp_key, 0, sizeof(qp_key));
    ft_ranks_copy(qp_key.host, sizeof(qp_key.host), query->src_host);
    qp_key.qp = query->src_qp;
    if (query->src_qp != UINT32_MAX) {
        const struct ft_ranks_qp *qp = ft_table_find(r->qps, &qp_key);

        if (qp && fits(r, &qp->src, qp->dst, query->src_pid, &pairs[0]))
            return 1;
    }
    key = hosts_key(query->src_host, query->dst_host, query->src_pid);
    h = ft_table_find(r->hosts, &key);
    if (!h && query->src_pid) {
        key.src_pid = 0;
        h = ft_table_find(r->hosts, &key);
    }
    if (!h)
        return 0;
    for (uint32_t i = 0; i < h->count; i++) {
        if (!fits(r, &h->src[i], h->dst[i], query->src_pid, &pairs[n]))
            continue;
        unknown |= ft_ranks_find(r, &h->src[i])->pid == 0;
        n++;
    }
    /* Of an unknown process, it may be none of them. */
    *more = (h->more && ft_ranks_within(r->now_ms, h->more_ms, FT_RANKS_SILENT_MS)) || unknown ||
            (n > 0 && query->src_pid == 0);
    return n;
}

const struct ft_rank_member *ft_ranks_member(const struct ft_ranks *r, const char *comm_id,
                                             uint32_t rank)
{
    const struct ft_ranks_member_key key = ft_ranks_member_key(comm_id, rank);

    return ft_ranks_find(r, &key);
}

const struct ft_rank_member *ft_ranks_next_member(const struct ft_ranks *r, uint32_t *index)
{
    const struct ft_ranks_member_entry *m = ft_table_next(r->members, index);

    return m ? &m->m : NULL;
}

const struct ft_rank_edge *ft_ranks_next_edge(const struct ft_ranks *r, uint32_t *index)
{
    const struct ft_ranks_edge_entry *e = ft_table_next(r->edges, index);

    return e ? &e->e : NULL;
}

const struct ft_rank_member *ft_ranks_member_at(const struct ft_ranks *r, uint32_t index)
{
    const struct ft_ranks_member_entry *m = ft_table_at(r->members, index);

    return m ? &m->m : NULL;
}

const struct ft_rank_edge *ft_ranks_edge_at(const struct ft_ranks *r, uint32_t index)
{
    const struct ft_ranks_edge_entry *e = ft_table_at(r->edges, index);

    return e ? &e->e : NULL;
}

size_t ft_ranks_members(const struct ft_ranks *r)
{
    return ft_table_count(r->members);
}

size_t ft_ranks_edges(const struct ft_ranks *r)
{
    return ft_table_count(r->edges);
}

uint64_t ft_ranks_contested(const struct ft_ranks *r)
{
    return r->contested;
}
