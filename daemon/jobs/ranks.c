// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/jobs/ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"

/* A member that was not announced for this time is none any more: its host may be gone. */
#define SILENT_MS 120000
/* What has ended is still shown for so long, unless its room is needed. */
#define KEEP_MS  3600000
#define SWEEP_MS 10000
#define PRESS_MS 1000
/* Of a collective, and queue pairs of each: more than agents list. A peer is compared with all
 * others. */
#define PEERS_MAX    256
#define PEER_QPS_MAX 16

struct member_key {
    char comm_id[FT_RANKS_ID];
    uint32_t rank;
};

struct member {
    struct member_key key;
    int64_t heard_ms;
    struct ft_rank_member m;
};

struct edge_key {
    char comm_id[FT_RANKS_ID];
    char op[FT_RANKS_ID];
    uint32_t src, dst;
};

struct edge {
    struct edge_key key;
    int64_t heard_ms;
    struct ft_rank_edge e;
};

/* The pairs of ranks between two hosts, those of one process at the first or all. */
struct hosts_key {
    char src[FT_RANKS_NAME];
    char dst[FT_RANKS_NAME];
    uint32_t src_pid; /* 0: all */
};

struct hosts {
    struct hosts_key key;
    int64_t heard_ms;
    int64_t more_ms; /* when there were more than can be named */
    uint32_t count;
    bool more;
    struct member_key src[FT_RANKS_CANDIDATES_MAX];
    uint32_t dst[FT_RANKS_CANDIDATES_MAX];
};

/* A local queue pair, where NCCL names it. */
struct qp_key {
    char host[FT_RANKS_NAME];
    uint32_t qp;
};

struct qp {
    struct qp_key key;
    int64_t heard_ms;
    struct member_key src;
    uint32_t dst;
};

struct ft_ranks {
    struct ft_table *members, *edges, *hosts, *qps;
    int64_t now_ms, swept_ms, pressed_ms;
    bool pressed; /* once */
};

struct ft_ranks *ft_ranks_new(const struct ft_ranks_config *config)
{
    struct ft_ranks *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->members = ft_table_new(sizeof(struct member), sizeof(struct member_key), config->members_max,
                              config->seed);
    r->edges =
        ft_table_new(sizeof(struct edge), sizeof(struct edge_key), config->edges_max, config->seed);
    r->hosts = ft_table_new(sizeof(struct hosts), sizeof(struct hosts_key), config->edges_max,
                            config->seed);
    r->qps =
        ft_table_new(sizeof(struct qp), sizeof(struct qp_key), config->edges_max, config->seed);
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

static void copy(char *to, size_t to_bytes, const char *from)
{
    snprintf(to, to_bytes, "%s", from ? from : "");
}

static struct member_key member_key(const char *comm_id, uint32_t rank)
{
    struct member_key key;

    memset(&key, 0, sizeof(key));
    copy(key.comm_id, sizeof(key.comm_id), comm_id);
    key.rank = rank;
    return key;
}

static const struct ft_rank_member *find(const struct ft_ranks *r, const struct member_key *key)
{
    const struct member *m = ft_table_find(r->members, key);

    return m ? &m->m : NULL;
}

static bool within(int64_t now_ms, int64_t then_ms, int64_t ms)
{
    return now_ms >= then_ms && now_ms - then_ms < ms;
}

/* Of a member that nobody announced it is known no more than when it was heard of. */
static bool is_over(const struct ft_ranks *r, const struct member_key *key, int64_t heard_ms)
{
    const struct ft_rank_member *m = find(r, key);

    return m ? m->closed : r->now_ms - heard_ms > SILENT_MS;
}

static bool hosts_over(const struct ft_ranks *r, const struct hosts *h)
{
    for (uint32_t i = 0; i < h->count; i++)
        if (!is_over(r, &h->src[i], h->heard_ms))
            return false;
    return true;
}

static void close_silent(struct ft_ranks *r)
{
    uint32_t index = 0;
    struct member *m;

    while ((m = ft_table_next(r->members, &index))) {
        /* This host's clock was set back. */
        if (m->heard_ms > r->now_ms)
            m->heard_ms = r->now_ms;
        m->m.closed |= r->now_ms - m->heard_ms > SILENT_MS;
    }
}

/* Forgets what has ended and was not heard of since. */
static void forget(struct ft_ranks *r, int64_t since_ms)
{
    uint32_t index = 0;
    struct member *m;
    struct edge *e;
    struct hosts *h;
    struct qp *q;

    close_silent(r);
    while ((e = ft_table_next(r->edges, &index))) {
        const struct member_key src = member_key(e->key.comm_id, e->key.src);
        const struct member_key dst = member_key(e->key.comm_id, e->key.dst);

        if (e->heard_ms < since_ms && is_over(r, &src, e->heard_ms) &&
            is_over(r, &dst, e->heard_ms))
            ft_table_remove(r->edges, e);
    }
    for (index = 0; (h = ft_table_next(r->hosts, &index));)
        if (h->heard_ms < since_ms && hosts_over(r, h))
            ft_table_remove(r->hosts, h);
    for (index = 0; (q = ft_table_next(r->qps, &index));)
        if (q->heard_ms < since_ms && is_over(r, &q->src, q->heard_ms))
            ft_table_remove(r->qps, q);
    for (index = 0; (m = ft_table_next(r->members, &index));)
        if (m->heard_ms < since_ms && m->m.closed)
            ft_table_remove(r->members, m);
}

void ft_ranks_age(struct ft_ranks *r, int64_t now_ms)
{
    r->now_ms = now_ms;
    if (within(now_ms, r->swept_ms, SWEEP_MS))
        return;
    r->swept_ms = now_ms;
    forget(r, now_ms - KEEP_MS);
}

/* As ft_table_insert(), but a full table first loses what has ended. Other entries may go. */
static void *insert(struct ft_ranks *r, struct ft_table *table, const void *key)
{
    bool fresh;
    void *entry = ft_table_insert(table, key, &fresh);

    if (entry || (r->pressed && within(r->now_ms, r->pressed_ms, PRESS_MS)))
        return entry;
    r->pressed = true;
    r->pressed_ms = r->now_ms;
    forget(r, INT64_MAX);
    return ft_table_insert(table, key, &fresh);
}

int ft_ranks_communicator(struct ft_ranks *r, const Fabrictrace__Communicator *c)
{
    struct member_key key;
    struct member *m;

    if (!c->comm_id || !c->has_rank || !c->host || strlen(c->comm_id) >= FT_RANKS_ID)
        return -EINVAL;
    key = member_key(c->comm_id, c->rank);
    m = ft_table_find(r->members, &key);
    /* Another process has the rank by now. */
    if (m && c->closed && m->m.pid != c->pid)
        return 0;
    if (!m)
        m = insert(r, r->members, &key);
    if (!m)
        return -ENOSPC;
    m->heard_ms = r->now_ms;
    /* Another process: what its forerunner stood in is over. */
    if (m->m.pid != c->pid)
        m->m.progress = (struct ft_rank_progress){.time_ms = 0};
    memcpy(m->m.comm_id, key.comm_id, sizeof(key.comm_id));
    m->m.rank = c->rank;
    m->m.ranks = c->ranks;
    m->m.pid = c->pid;
    m->m.closed = c->closed;
    copy(m->m.host, sizeof(m->m.host), c->host);
    copy(m->m.job, sizeof(m->m.job), c->job);
    copy(m->m.gpu, sizeof(m->m.gpu), c->gpu);
    copy(m->m.name, sizeof(m->m.name), c->name);
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
    struct member_key key;
    struct member *m;

    if (!in->comm_id || !in->has_rank || strlen(in->comm_id) >= FT_RANKS_ID)
        return;
    key = member_key(in->comm_id, in->rank);
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
    copy(m->m.progress.op, sizeof(m->m.progress.op), in->op);
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

static struct hosts_key hosts_key(const char *src, const char *dst, uint32_t src_pid)
{
    struct hosts_key key;

    memset(&key, 0, sizeof(key));
    copy(key.src, sizeof(key.src), src);
    copy(key.dst, sizeof(key.dst), dst);
    key.src_pid = src_pid;
    return key;
}

static void list_pair(struct ft_ranks *r, const struct hosts_key *key, const struct member_key *src,
                      uint32_t dst)
{
    struct hosts *h = insert(r, r->hosts, key);

    if (!h)
        return;
    h->heard_ms = r->now_ms;
    for (uint32_t i = 0; i < h->count; i++)
        if (h->dst[i] == dst && memcmp(&h->src[i], src, sizeof(*src)) == 0)
            return;
    /* One that has ended is replaced. */
    for (uint32_t i = 0; i < h->count; i++) {
        const struct ft_rank_member *old = find(r, &h->src[i]);

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
static void list_hosts(struct ft_ranks *r, const struct member_key *src, uint32_t dst)
{
    const struct member_key dst_key = member_key(src->comm_id, dst);
    const struct ft_rank_member *a = find(r, src), *b = find(r, &dst_key);
    struct hosts_key key;

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
                     const Fabrictrace__PeerTraffic *p, const struct member_key *src)
{
    for (size_t i = 0; c->host && i < p->n_local_qps; i++) {
        struct qp_key key;
        struct qp *qp;

        memset(&key, 0, sizeof(key));
        copy(key.host, sizeof(key.host), c->host);
        key.qp = p->local_qps[i];
        qp = insert(r, r->qps, &key);
        if (!qp)
            return;
        qp->heard_ms = r->now_ms;
        qp->src = *src;
        qp->dst = p->peer;
    }
}

static struct ft_rank_edge *edge_of(struct ft_ranks *r, const Fabrictrace__Collective *c,
                                    uint32_t src, uint32_t dst)
{
    struct edge_key key;
    struct edge *e;

    memset(&key, 0, sizeof(key));
    copy(key.comm_id, sizeof(key.comm_id), c->comm_id);
    /* Both ends of a transfer are one operation. */
    copy(key.op, sizeof(key.op), c->op && strcmp(c->op, "Recv") == 0 ? "Send" : c->op);
    key.src = src;
    key.dst = dst;
    e = insert(r, r->edges, &key);
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
                         const struct member_key *own)
{
    struct member *m = c->peers_dropped > 0 ? ft_table_find(r->members, own) : NULL;

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
    struct member_key own;
    int rc = 0;

    if (!c->comm_id || !c->has_rank || strlen(c->comm_id) >= FT_RANKS_ID || lists_too_much(c))
        return -EINVAL;
    own = member_key(c->comm_id, c->rank);
    note_dropped(r, c, &own);
    for (size_t i = 0; i < c->n_peers; i++) {
        const Fabrictrace__PeerTraffic *p = c->peers[i];
        const struct member_key peer = member_key(c->comm_id, p->peer);

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

static bool fits(const struct ft_ranks *r, const struct member_key *src, uint32_t dst,
                 uint32_t src_pid, struct ft_rank_pair *pair)
{
    const struct ft_rank_member *a = find(r, src);
    const struct member_key dst_key = member_key(src->comm_id, dst);
    const struct ft_rank_member *b = find(r, &dst_key);

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
    const struct hosts *h;
    struct hosts_key key;
    struct qp_key qp_key;
    bool unknown = false;
    size_t n = 0;

    *more = false;
    if (!query->src_host || !query->dst_host || ft_table_count(r->hosts) == 0)
        return 0;
    memset(&qp_key, 0, sizeof(qp_key));
    copy(qp_key.host, sizeof(qp_key.host), query->src_host);
    qp_key.qp = query->src_qp;
    if (query->src_qp != UINT32_MAX) {
        const struct qp *qp = ft_table_find(r->qps, &qp_key);

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
        unknown |= find(r, &h->src[i])->pid == 0;
        n++;
    }
    /* Of an unknown process, it may be none of them. */
    *more = (h->more && within(r->now_ms, h->more_ms, SILENT_MS)) || unknown ||
            (n > 0 && query->src_pid == 0);
    return n;
}

const struct ft_rank_member *ft_ranks_member(const struct ft_ranks *r, const char *comm_id,
                                             uint32_t rank)
{
    const struct member_key key = member_key(comm_id, rank);

    return find(r, &key);
}

const struct ft_rank_member *ft_ranks_next_member(const struct ft_ranks *r, uint32_t *index)
{
    const struct member *m = ft_table_next(r->members, index);

    return m ? &m->m : NULL;
}

const struct ft_rank_edge *ft_ranks_next_edge(const struct ft_ranks *r, uint32_t *index)
{
    const struct edge *e = ft_table_next(r->edges, index);

    return e ? &e->e : NULL;
}

const struct ft_rank_member *ft_ranks_member_at(const struct ft_ranks *r, uint32_t index)
{
    const struct member *m = ft_table_at(r->members, index);

    return m ? &m->m : NULL;
}

const struct ft_rank_edge *ft_ranks_edge_at(const struct ft_ranks *r, uint32_t index)
{
    const struct edge *e = ft_table_at(r->edges, index);

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
