// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/jobs/ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs/ranks_impl.h"
#include "lib/base/table.h"

struct ft_ranks *ft_ranks_new(const struct ft_ranks_config *config)
{
    const size_t waiting_max = config->members_max / 4 + 1;
    struct ft_ranks *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->caps[FT_RANKS_MEMBERS] = config->members_max;
    r->caps[FT_RANKS_EDGES] = r->caps[FT_RANKS_HOSTS] = r->caps[FT_RANKS_QPS] = config->edges_max;
    r->caps[FT_RANKS_WAITING] = waiting_max;
    r->members =
        ft_table_new(sizeof(struct ft_ranks_member_entry), sizeof(struct ft_ranks_member_key),
                     config->members_max, config->seed);
    r->edges = ft_table_new(sizeof(struct ft_ranks_edge_entry), sizeof(struct ft_ranks_edge_key),
                            config->edges_max, config->seed);
    r->hosts = ft_table_new(sizeof(struct ft_ranks_hosts), sizeof(struct ft_ranks_hosts_key),
                            config->edges_max, config->seed);
    r->qps = ft_table_new(sizeof(struct ft_ranks_qp), sizeof(struct ft_ranks_qp_key),
                          config->edges_max, config->seed);
    r->waiting = ft_table_new(sizeof(struct ft_ranks_waiting), sizeof(struct ft_ranks_waiting_key),
                              waiting_max, config->seed);
    /* Each entry may be another host's. */
    r->owners =
        ft_table_new(sizeof(struct ft_ranks_owner), FT_RANKS_NAME,
                     config->members_max + 3 * config->edges_max + waiting_max, config->seed);
    if (!r->members || !r->edges || !r->hosts || !r->qps || !r->waiting || !r->owners) {
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
    ft_table_free(r->waiting);
    ft_table_free(r->owners);
    free(r);
}

int ft_ranks_communicator(struct ft_ranks *r, const Fabrictrace__Communicator *c)
{
    struct ft_ranks_member_key key;
    struct ft_ranks_member_entry *m;

    if (!c->comm_id || !c->has_rank || !c->host || strlen(c->comm_id) >= FT_RANKS_ID)
        return -EINVAL;
    key = ft_ranks_member_key(c->comm_id, c->rank);
    m = ft_table_find(r->members, &key);
    if (ft_ranks_is_anothers(r, m, c->host, c->pid) || (c->ranks && c->rank >= c->ranks)) {
        r->contested++;
        return -EEXIST;
    }
    /* One that has left is not replaced by one that leaves. */
    if (m && c->closed && !ft_ranks_is_process(&m->m, c->host, c->pid))
        return 0;
    if (!m)
        m = ft_ranks_insert(r, FT_RANKS_MEMBERS, &key, c->host);
    if (!m)
        return -ENOSPC;
    m->heard_ms = r->now_ms;
    /* Another process: what its forerunner stood in is over. */
    if (!ft_ranks_is_process(&m->m, c->host, c->pid))
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
    ft_ranks_add_waiting(r, &key, c->host, c->pid);
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
    if (!m || !in->host || !ft_ranks_is_process(&m->m, in->host, in->pid))
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

/* Names of hosts are cut where they are kept. */
static bool is_on(const struct ft_rank_member *m, const char *host)
{
    return strncmp(m->host, host, sizeof(m->host) - 1) == 0;
}

static bool fits(const struct ft_ranks *r, const struct ft_ranks_member_key *src, uint32_t dst,
                 const struct ft_rank_query *query, struct ft_rank_pair *pair)
{
    const struct ft_rank_member *a = ft_ranks_find(r, src);
    const struct ft_ranks_member_key dst_key = ft_ranks_member_key(src->comm_id, dst);
    const struct ft_rank_member *b = ft_ranks_find(r, &dst_key);

    if (!a || !b || a->closed || b->closed || !is_on(a, query->src_host) ||
        !is_on(b, query->dst_host) || (query->src_pid && a->pid && a->pid != query->src_pid))
        return false;
    pair->comm_id = a->comm_id;
    pair->job = a->job[0] ? a->job : NULL;
    pair->src = a->rank;
    pair->dst = dst;
    return true;
}

static bool is_fresh(const struct ft_ranks *r, bool is, int64_t ms)
{
    return is && ft_ranks_within(r->now_ms, ms, FT_RANKS_SILENT_MS);
}

/* The pair of ranks that a queue pair is certainly of: no other of its process has its number, and
 * of other processes none, or the flow's is known. */
static bool fits_qp(const struct ft_ranks *r, const struct ft_ranks_qp *qp,
                    const struct ft_rank_query *query, struct ft_rank_pair *pair)
{
    const struct ft_rank_member *a = ft_ranks_find(r, &qp->src);

    if (!a || is_fresh(r, qp->several, qp->several_ms) ||
        (is_fresh(r, qp->others, qp->others_ms) && (!query->src_pid || !a->pid)))
        return false;
    return fits(r, &qp->src, qp->dst, query, pair);
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

        if (qp && fits_qp(r, qp, query, &pairs[0]))
            return 1;
    }
    key = ft_ranks_hosts_key(query->src_host, query->dst_host, query->src_pid);
    h = ft_table_find(r->hosts, &key);
    if (!h && query->src_pid) {
        key.src_pid = 0;
        h = ft_table_find(r->hosts, &key);
    }
    if (!h)
        return 0;
    for (uint32_t i = 0; i < h->count; i++) {
        if (!fits(r, &h->src[i], h->dst[i], query, &pairs[n]))
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

uint64_t ft_ranks_unannounced(const struct ft_ranks *r)
{
    return r->unannounced;
}

uint64_t ft_ranks_displaced(const struct ft_ranks *r)
{
    return r->displaced;
}
