// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/jobs/ranks_impl.h"

/* What has ended is still shown for so long, unless its room is needed. */
#define KEEP_MS  3600000
#define SWEEP_MS 10000
/* For one more in a full table so many are looked at, and after so many in vain none for a while.
 */
#define LOOKS    1024
#define VAIN_MAX 16384
#define PRESS_MS 1000

/* Of a member that nobody announced it is known no more than when it was heard of. */
static bool is_over(const struct ft_ranks *r, const struct ft_ranks_member_key *key,
                    int64_t heard_ms)
{
    const struct ft_rank_member *m = ft_ranks_find(r, key);

    return m ? m->closed : r->now_ms - heard_ms > FT_RANKS_SILENT_MS;
}

static bool hosts_over(const struct ft_ranks *r, const struct ft_ranks_hosts *h)
{
    for (uint32_t i = 0; i < h->count; i++)
        if (!is_over(r, &h->src[i], h->heard_ms))
            return false;
    return true;
}

static void close_silent(struct ft_ranks *r, struct ft_ranks_member_entry *m)
{
    /* This host's clock was set back. */
    if (m->heard_ms > r->now_ms)
        m->heard_ms = r->now_ms;
    m->m.closed |= r->now_ms - m->heard_ms > FT_RANKS_SILENT_MS;
}

static bool edge_is_over(void *arg, void *entry)
{
    const struct ft_ranks *r = arg;
    const struct ft_ranks_edge_entry *e = entry;
    const struct ft_ranks_member_key src = ft_ranks_member_key(e->key.comm_id, e->key.src);
    const struct ft_ranks_member_key dst = ft_ranks_member_key(e->key.comm_id, e->key.dst);

    return is_over(r, &src, e->heard_ms) && is_over(r, &dst, e->heard_ms);
}

static bool hosts_are_over(void *arg, void *entry)
{
    return hosts_over(arg, entry);
}

static bool qp_is_over(void *arg, void *entry)
{
    const struct ft_ranks *r = arg;
    const struct ft_ranks_qp *q = entry;

    return is_over(r, &q->src, q->heard_ms);
}

static bool member_is_over(void *arg, void *entry)
{
    const struct ft_ranks_member_entry *m = entry;

    (void)arg;
    return m->m.closed;
}

/* Forgets what has ended and was not heard of for long. */
static void sweep_one(struct ft_ranks *r, enum ft_ranks_phase phase, void *entry)
{
    int64_t since_ms = r->now_ms - KEEP_MS;
    struct ft_ranks_edge_entry *e = entry;
    struct ft_ranks_hosts *h = entry;
    struct ft_ranks_member_entry *m = entry;
    struct ft_ranks_qp *q = entry;

    switch (phase) {
    case FT_RANKS_SILENT:
        close_silent(r, m);
        break;
    case FT_RANKS_EDGES:
        if (e->heard_ms < since_ms && edge_is_over(r, e))
            ft_table_remove(r->edges, e);
        break;
    case FT_RANKS_HOSTS:
        if (h->heard_ms < since_ms && hosts_over(r, h))
            ft_table_remove(r->hosts, h);
        break;
    case FT_RANKS_QPS:
        if (q->heard_ms < since_ms && qp_is_over(r, q))
            ft_table_remove(r->qps, q);
        break;
    case FT_RANKS_MEMBERS:
        if (m->heard_ms < since_ms && m->m.closed)
            ft_table_remove(r->members, m);
        break;
    case FT_RANKS_PHASES:
        break;
    }
}

static struct ft_table *table_of(const struct ft_ranks *r, enum ft_ranks_phase phase)
{
    return phase == FT_RANKS_EDGES   ? r->edges
           : phase == FT_RANKS_HOSTS ? r->hosts
           : phase == FT_RANKS_QPS   ? r->qps
                                     : r->members;
}

void ft_ranks_at(struct ft_ranks *r, int64_t now_ms)
{
    r->now_ms = now_ms;
}

bool ft_ranks_age(struct ft_ranks *r, int64_t now_ms, uint32_t items)
{
    ft_ranks_at(r, now_ms);
    if (!r->sweeping) {
        if (ft_ranks_within(now_ms, r->swept_ms, SWEEP_MS))
            return false;
        r->swept_ms = now_ms;
        r->sweeping = true;
        r->phase = FT_RANKS_SILENT;
        r->index = 0;
    }
    while (items > 0 && r->phase < FT_RANKS_PHASES) {
        struct ft_table *table = table_of(r, r->phase);
        void *entry;

        if (r->index >= ft_table_limit(table)) {
            r->phase++;
            r->index = 0;
            continue;
        }
        entry = ft_table_at(table, r->index++);
        if (entry)
            sweep_one(r, r->phase, entry);
        items--;
    }
    r->sweeping = r->phase < FT_RANKS_PHASES;
    return r->sweeping;
}

void *ft_ranks_insert(struct ft_ranks *r, enum ft_ranks_phase of, const void *key)
{
    static bool (*const over[FT_RANKS_PHASES])(void *arg, void *entry) = {
        [FT_RANKS_EDGES] = edge_is_over,
        [FT_RANKS_HOSTS] = hosts_are_over,
        [FT_RANKS_QPS] = qp_is_over,
        [FT_RANKS_MEMBERS] = member_is_over,
    };
    struct ft_table *table = table_of(r, of);
    struct ft_ranks_search *s = &r->search[of];
    bool fresh;
    void *entry = ft_table_insert(table, key, &fresh);

    if (entry || (s->rests && ft_ranks_within(r->now_ms, s->rests_ms, PRESS_MS)))
        return entry;
    s->rests = false;
    if (ft_table_make_room(table, &s->hand, LOOKS, over[of], r)) {
        s->vain = 0;
        return ft_table_insert(table, key, &fresh);
    }
    s->vain += LOOKS;
    if (s->vain >= VAIN_MAX) {
        s->vain = 0;
        s->rests = true;
        s->rests_ms = r->now_ms;
    }
    return NULL;
}
