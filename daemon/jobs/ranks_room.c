// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/jobs/ranks_impl.h"

/* For one more in a full table so many are looked at, and after so many in vain none for a while.
 */
#define LOOKS    1024
#define VAIN_MAX 16384
#define PRESS_MS 1000
/* Agents announce a rank every half minute: what came before that waits for so long. */
#define WAIT_MS 60000

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

static bool edge_is_over(const struct ft_ranks *r, const struct ft_ranks_edge_entry *e)
{
    const struct ft_ranks_member_key src = ft_ranks_member_key(e->key.comm_id, e->key.src);
    const struct ft_ranks_member_key dst = ft_ranks_member_key(e->key.comm_id, e->key.dst);

    return is_over(r, &src, e->heard_ms) && is_over(r, &dst, e->heard_ms);
}

bool ft_ranks_is_over(const struct ft_ranks *r, enum ft_ranks_phase of, const void *entry)
{
    const struct ft_ranks_qp *q = entry;
    const struct ft_ranks_member_entry *m = entry;
    const struct ft_ranks_waiting *w = entry;

    switch (of) {
    case FT_RANKS_EDGES:
        return edge_is_over(r, entry);
    case FT_RANKS_HOSTS:
        return hosts_over(r, entry);
    case FT_RANKS_QPS:
        return is_over(r, &q->src, q->heard_ms);
    case FT_RANKS_SILENT:
    case FT_RANKS_MEMBERS:
        return m->m.closed;
    case FT_RANKS_WAITING:
        return !ft_ranks_within(r->now_ms, w->since_ms, WAIT_MS);
    case FT_RANKS_PHASES:
        break;
    }
    return false;
}

struct ft_table *ft_ranks_table(const struct ft_ranks *r, enum ft_ranks_phase of)
{
    return of == FT_RANKS_EDGES     ? r->edges
           : of == FT_RANKS_HOSTS   ? r->hosts
           : of == FT_RANKS_QPS     ? r->qps
           : of == FT_RANKS_WAITING ? r->waiting
                                    : r->members;
}

static uint32_t *owner_in(enum ft_ranks_phase of, void *entry)
{
    static const size_t at[FT_RANKS_PHASES] = {
        [FT_RANKS_EDGES] = offsetof(struct ft_ranks_edge_entry, owner),
        [FT_RANKS_HOSTS] = offsetof(struct ft_ranks_hosts, owner),
        [FT_RANKS_QPS] = offsetof(struct ft_ranks_qp, owner),
        [FT_RANKS_MEMBERS] = offsetof(struct ft_ranks_member_entry, owner),
        [FT_RANKS_WAITING] = offsetof(struct ft_ranks_waiting, owner),
    };

    return (uint32_t *)(void *)((char *)entry + at[of]);
}

static struct ft_ranks_owner *owner_of(struct ft_ranks *r, const char *host)
{
    char key[FT_RANKS_NAME] = {0};
    bool fresh;

    ft_ranks_copy(key, sizeof(key), host);
    return ft_table_insert(r->owners, key, &fresh);
}

/* A host that has nothing has no share. */
static void drop_owner(struct ft_ranks *r, struct ft_ranks_owner *owner)
{
    for (int i = 0; i < FT_RANKS_PHASES; i++)
        if (owner->held[i])
            return;
    ft_table_remove(r->owners, owner);
}

static void let_go(struct ft_ranks *r, enum ft_ranks_phase of, void *entry)
{
    struct ft_ranks_owner *owner = ft_table_at(r->owners, *owner_in(of, entry));
    const struct ft_ranks_waiting *w = entry;

    if (of == FT_RANKS_WAITING)
        r->unannounced += w->records;
    owner->held[of]--;
    drop_owner(r, owner);
}

void ft_ranks_remove(struct ft_ranks *r, enum ft_ranks_phase of, void *entry)
{
    let_go(r, of, entry);
    ft_table_remove(ft_ranks_table(r, of), entry);
}

struct room {
    struct ft_ranks *r;
    enum ft_ranks_phase of;
    uint32_t share; /* whoever has more gives some up; UINT32_MAX: nobody does */
};

static bool may_go(void *arg, void *entry)
{
    struct room *room = arg;
    const struct ft_ranks_owner *owner = ft_table_at(room->r->owners, *owner_in(room->of, entry));
    bool over = ft_ranks_is_over(room->r, room->of, entry);

    if (!over && owner->held[room->of] <= room->share)
        return false;
    room->r->displaced += !over && room->of != FT_RANKS_WAITING;
    let_go(room->r, room->of, entry);
    return true;
}

static bool make_room(struct ft_ranks *r, enum ft_ranks_phase of, uint32_t held)
{
    uint32_t share = (uint32_t)(r->caps[of] / ft_table_count(r->owners));
    bool poor = held < share;
    struct room room = {r, of, poor ? share : UINT32_MAX};
    struct ft_ranks_search *s = &r->search[of][poor];

    if (s->rests && ft_ranks_within(r->now_ms, s->rests_ms, PRESS_MS))
        return false;
    s->rests = false;
    if (ft_table_make_room(ft_ranks_table(r, of), &s->hand, LOOKS, may_go, &room)) {
        s->vain = 0;
        return true;
    }
    s->vain += LOOKS;
    if (s->vain >= VAIN_MAX) {
        s->vain = 0;
        s->rests = true;
        s->rests_ms = r->now_ms;
    }
    return false;
}

void *ft_ranks_insert(struct ft_ranks *r, enum ft_ranks_phase of, const void *key, const char *host)
{
    struct ft_table *table = ft_ranks_table(r, of);
    void *entry = ft_table_find(table, key);
    struct ft_ranks_owner *owner;
    bool fresh;

    if (entry)
        return entry;
    owner = owner_of(r, host);
    if (!owner)
        return NULL;
    /* Held meanwhile, so that it is not let go with the last of its others. */
    owner->held[of]++;
    if (ft_table_count(table) < r->caps[of] || make_room(r, of, owner->held[of] - 1))
        entry = ft_table_insert(table, key, &fresh);
    if (!entry) {
        owner->held[of]--;
        drop_owner(r, owner);
        return NULL;
    }
    *owner_in(of, entry) = ft_table_index(r->owners, owner);
    return entry;
}
