// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>

#include "daemon/jobs/ranks_impl.h"

/* Of a collective, and queue pairs of each: more than agents list. A peer is compared with all
 * others. */
#define PEERS_MAX    256
#define PEER_QPS_MAX 16

/* Whether another process is the rank that an operation is reported of, as far as the report says.
 */
static bool reports_anothers(const struct ft_ranks *r, const struct ft_ranks_member_key *key,
                             const Fabrictrace__Collective *c)
{
    const struct ft_ranks_member_entry *m = ft_table_find(r->members, key);

    return m &&
           ft_ranks_is_anothers(r, m, c->host ? c->host : m->m.host, c->pid ? c->pid : m->m.pid);
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

static int list_pair(struct ft_ranks *r, const struct ft_ranks_hosts_key *key,
                     const struct ft_ranks_member_key *src, uint32_t dst, const char *by)
{
    struct ft_ranks_hosts *h = ft_ranks_insert(r, FT_RANKS_HOSTS, key, by);

    if (!h)
        return -ENOSPC;
    h->heard_ms = r->now_ms;
    for (uint32_t i = 0; i < h->count; i++)
        if (h->dst[i] == dst && memcmp(&h->src[i], src, sizeof(*src)) == 0)
            return 0;
    /* One that has ended is replaced. */
    for (uint32_t i = 0; i < h->count; i++) {
        const struct ft_rank_member *old = ft_ranks_find(r, &h->src[i]);

        if (old && !old->closed)
            continue;
        h->src[i] = *src;
        h->dst[i] = dst;
        return 0;
    }
    if (h->count == FT_RANKS_CANDIDATES_MAX) {
        h->more = true;
        h->more_ms = r->now_ms;
        return 0;
    }
    h->src[h->count] = *src;
    h->dst[h->count++] = dst;
    return 0;
}

/* Remembers that a pair of ranks talks between its hosts, as soon as both are known. Between hosts
 * of many ranks and communicators there are more than can be named, but few of one process. */
static int list_hosts(struct ft_ranks *r, const struct ft_ranks_member_key *src, uint32_t dst,
                      const char *by)
{
    const struct ft_ranks_member_key dst_key = ft_ranks_member_key(src->comm_id, dst);
    const struct ft_rank_member *a = ft_ranks_find(r, src), *b = ft_ranks_find(r, &dst_key);
    struct ft_ranks_hosts_key key;
    int rc;

    if (!a || !b)
        return 0;
    key = ft_ranks_hosts_key(a->host, b->host, a->pid);
    rc = list_pair(r, &key, src, dst, by);
    if (!key.src_pid)
        return rc;
    key.src_pid = 0;
    return list_pair(r, &key, src, dst, by) ? -ENOSPC : rc;
}

/* Whether a queue pair is still in use by the pair of ranks that it is known of. */
static bool is_used(const struct ft_ranks *r, const struct ft_ranks_qp *qp)
{
    return qp->src.comm_id[0] && ft_ranks_within(r->now_ms, qp->heard_ms, FT_RANKS_SILENT_MS) &&
           !ft_ranks_is_over(r, FT_RANKS_QPS, qp);
}

static void take_qp(struct ft_ranks *r, struct ft_ranks_qp *qp, const Fabrictrace__Collective *c,
                    const Fabrictrace__PeerTraffic *p, const struct ft_ranks_member_key *src)
{
    bool same = memcmp(&qp->src, src, sizeof(*src)) == 0 && qp->dst == p->peer;

    /* It is one of another process. */
    if (qp->src.comm_id[0] && reports_anothers(r, &qp->src, c)) {
        r->contested++;
        qp->others = true;
        qp->others_ms = r->now_ms;
        return;
    }
    if (!same && is_used(r, qp)) {
        qp->several = true;
        qp->several_ms = r->now_ms;
        return;
    }
    if (!same)
        qp->several = qp->others = false;
    qp->heard_ms = r->now_ms;
    qp->src = *src;
    qp->dst = p->peer;
}

static int note_qps(struct ft_ranks *r, const Fabrictrace__Collective *c,
                    const Fabrictrace__PeerTraffic *p, const struct ft_ranks_member_key *src,
                    const char *by)
{
    for (size_t i = 0; i < p->n_local_qps; i++) {
        struct ft_ranks_qp_key key;
        struct ft_ranks_qp *qp;

        memset(&key, 0, sizeof(key));
        ft_ranks_copy(key.host, sizeof(key.host), by);
        key.qp = p->local_qps[i];
        qp = ft_ranks_insert(r, FT_RANKS_QPS, &key, by);
        if (!qp)
            return -ENOSPC;
        take_qp(r, qp, c, p, src);
    }
    return 0;
}

/* What a report says of one direction of a pair. */
static struct ft_rank_edge edge_of(const Fabrictrace__Collective *c, uint32_t src, uint32_t dst)
{
    struct ft_rank_edge e = {.src = src, .dst = dst, .last_ms = (int64_t)c->time_ms};

    /* Both ends of a transfer are one operation. */
    ft_ranks_copy(e.op, sizeof(e.op), c->op && strcmp(c->op, "Recv") == 0 ? "Send" : c->op);
    return e;
}

static double channels_used(const Fabrictrace__Collective *c, uint32_t peer)
{
    double n = 0;

    for (size_t i = 0; i < c->n_peers; i++)
        n += c->peers[i]->has_sent_messages && c->peers[i]->peer == peer;
    return n;
}

static struct ft_rank_edge sent_by(const Fabrictrace__Collective *c,
                                   const Fabrictrace__PeerTraffic *p)
{
    struct ft_rank_edge e = edge_of(c, c->rank, p->peer);
    double expected = ft_ranks_expected(c->op, c->algo, (double)c->bytes, c->ranks,
                                        c->channels ? c->channels : 1, channels_used(c, p->peer));

    e.sent_bytes = p->sent_bytes;
    e.sent_messages = p->sent_messages;
    if (expected > 0 && c->has_bytes)
        e.expected_bytes = expected * (double)(c->has_operations ? c->operations : 1);
    e.step_median_ns = p->step_median_ns;
    e.step_max_ns = p->step_max_ns;
    return e;
}

static struct ft_rank_edge received_by(const Fabrictrace__Collective *c,
                                       const Fabrictrace__PeerTraffic *p)
{
    struct ft_rank_edge e = edge_of(c, p->peer, c->rank);

    e.received_bytes = p->received_bytes;
    e.received_messages = p->received_messages;
    return e;
}

/* Steps are those of the sender's last report. */
static void add_up(struct ft_rank_edge *to, const struct ft_rank_edge *more, bool sent)
{
    to->sent_bytes += more->sent_bytes;
    to->sent_messages += more->sent_messages;
    to->received_bytes += more->received_bytes;
    to->received_messages += more->received_messages;
    to->expected_bytes += more->expected_bytes;
    to->last_ms = more->last_ms;
    if (!sent)
        return;
    to->step_median_ns = more->step_median_ns;
    to->step_max_ns = more->step_max_ns;
}

static int add_edge(struct ft_ranks *r, const char *comm_id, const struct ft_rank_edge *more,
                    bool sent, const char *by)
{
    struct ft_ranks_edge_key key;
    struct ft_ranks_edge_entry *e;

    memset(&key, 0, sizeof(key));
    ft_ranks_copy(key.comm_id, sizeof(key.comm_id), comm_id);
    memcpy(key.op, more->op, sizeof(key.op));
    key.src = more->src;
    key.dst = more->dst;
    e = ft_ranks_insert(r, FT_RANKS_EDGES, &key, by);
    if (!e)
        return -ENOSPC;
    e->heard_ms = r->now_ms;
    memcpy(e->e.comm_id, key.comm_id, sizeof(key.comm_id));
    memcpy(e->e.op, key.op, sizeof(key.op));
    e->e.src = key.src;
    e->e.dst = key.dst;
    add_up(&e->e, more, sent);
    return 0;
}

static int keep_edge(struct ft_ranks_waiting *w, const struct ft_rank_edge *more, bool sent)
{
    uint32_t i = 0;

    while (i < w->count && (w->edges[i].src != more->src || w->edges[i].dst != more->dst ||
                            strcmp(w->edges[i].op, more->op) != 0))
        i++;
    if (i == FT_RANKS_WAITING_EDGES)
        return -ENOSPC;
    if (i == w->count) {
        w->edges[w->count++] = *more;
        return 0;
    }
    add_up(&w->edges[i], more, sent);
    return 0;
}

/* Of a rank that was not announced yet. Whoever never is may not fill what all share. */
static int keep(struct ft_ranks *r, const Fabrictrace__Collective *c,
                const struct ft_ranks_member_key *own)
{
    struct ft_ranks_waiting_key key;
    struct ft_ranks_waiting *w;
    int rc = 0;

    memset(&key, 0, sizeof(key));
    key.rank = *own;
    key.pid = c->pid;
    ft_ranks_copy(key.host, sizeof(key.host), c->host);
    w = c->host ? ft_ranks_insert(r, FT_RANKS_WAITING, &key, c->host) : NULL;
    if (!w) {
        r->unannounced++;
        return -ENOENT;
    }
    if (w->since_ms == 0)
        w->since_ms = r->now_ms;
    for (size_t i = 0; i < c->n_peers; i++) {
        const Fabrictrace__PeerTraffic *p = c->peers[i];
        struct ft_rank_edge e;

        if (p->has_peer && p->has_sent_messages) {
            e = sent_by(c, p);
            rc |= keep_edge(w, &e, true);
        }
        if (p->has_peer && p->has_received_messages) {
            e = received_by(c, p);
            rc |= keep_edge(w, &e, false);
        }
    }
    if (rc)
        r->unannounced++;
    else
        w->records++;
    return -ENOENT;
}

void ft_ranks_add_waiting(struct ft_ranks *r, const struct ft_ranks_member_key *rank,
                          const char *host, uint32_t pid)
{
    struct ft_ranks_waiting_key key;
    const struct ft_rank_member *member;
    struct ft_ranks_waiting *w;
    int rc = 0;

    memset(&key, 0, sizeof(key));
    key.rank = *rank;
    key.pid = pid;
    ft_ranks_copy(key.host, sizeof(key.host), host);
    w = ft_table_find(r->waiting, &key);
    if (!w)
        return;
    member = ft_ranks_find(r, rank);
    for (uint32_t i = 0; i < w->count; i++)
        /* Its communicator has no such rank. */
        if (member && member->ranks &&
            (w->edges[i].src >= member->ranks || w->edges[i].dst >= member->ranks))
            r->contested++;
        else if (add_edge(r, rank->comm_id, &w->edges[i], w->edges[i].src == rank->rank, host))
            rc = -ENOSPC;
    w->records = rc ? w->records : 0;
    ft_ranks_remove(r, FT_RANKS_WAITING, w);
}

static void note_dropped(const Fabrictrace__Collective *c, struct ft_rank_member *m)
{
    if (c->peers_dropped == 0)
        return;
    m->transfers_dropped += c->peers_dropped;
    m->bytes_dropped += c->sent_bytes_dropped + c->received_bytes_dropped;
}

static bool lists_too_much(const Fabrictrace__Collective *c)
{
    bool much = c->n_peers > PEERS_MAX;

    for (size_t i = 0; !much && i < c->n_peers; i++)
        much = c->peers[i]->n_local_qps > PEER_QPS_MAX;
    return much;
}

/* Whether a rank was announced by the process that reports its operation, as far as that says. */
static bool is_announced(const struct ft_ranks_member_entry *m, const Fabrictrace__Collective *c)
{
    return m &&
           ft_ranks_is_process(&m->m, c->host ? c->host : m->m.host, c->pid ? c->pid : m->m.pid);
}

static int take_peer(struct ft_ranks *r, const Fabrictrace__Collective *c,
                     const Fabrictrace__PeerTraffic *p, const struct ft_ranks_member_key *own,
                     const char *by)
{
    const struct ft_ranks_member_key peer = ft_ranks_member_key(c->comm_id, p->peer);
    struct ft_rank_edge e;
    int rc = 0;

    if (p->has_sent_messages) {
        e = sent_by(c, p);
        rc |= add_edge(r, c->comm_id, &e, true, by);
        rc |= list_hosts(r, own, p->peer, by);
        rc |= note_qps(r, c, p, own, by);
    }
    if (p->has_received_messages) {
        e = received_by(c, p);
        rc |= add_edge(r, c->comm_id, &e, false, by);
        rc |= list_hosts(r, &peer, c->rank, by);
    }
    return rc;
}

int ft_ranks_collective(struct ft_ranks *r, const Fabrictrace__Collective *c)
{
    struct ft_ranks_member_entry *m;
    struct ft_ranks_member_key own;
    bool beyond = false, full = false;

    if (!c->comm_id || !c->has_rank || strlen(c->comm_id) >= FT_RANKS_ID || lists_too_much(c))
        return -EINVAL;
    own = ft_ranks_member_key(c->comm_id, c->rank);
    if (reports_anothers(r, &own, c)) {
        r->contested++;
        return -EEXIST;
    }
    m = ft_table_find(r->members, &own);
    if (!is_announced(m, c))
        return keep(r, c, &own);
    note_dropped(c, &m->m);
    for (size_t i = 0; i < c->n_peers; i++) {
        const Fabrictrace__PeerTraffic *p = c->peers[i];

        if (!p->has_peer)
            continue;
        if (m->m.ranks && p->peer >= m->m.ranks)
            beyond = true;
        else
            full |= take_peer(r, c, p, &own, m->m.host) != 0;
    }
    r->contested += beyond;
    return full ? -ENOSPC : 0;
}
