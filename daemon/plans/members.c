// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/plans/members.h"

#include <stdlib.h>

#include "lib/base/digest.h"
#include "lib/base/table.h"

#define ALONE_MS  60000
#define MEMBER_MS 600000
#define SWEEP_MS  10000
#define LOOKS     64
/* All of a job; of a host: it is not in the topology. */
#define ANY 0

struct pair {
    uint64_t job, host;
};

struct member {
    struct pair key;
    int64_t heard_ms;
};

/* What one host said of another and the other has not said. */
struct alone {
    uint64_t job, host, peer;
    int64_t heard_ms;
};

/* How much of that is of a host. */
struct sayer {
    uint64_t host;
    uint32_t count;
};

struct ft_members {
    struct ft_table *members, *alone, *sayers;
    uint32_t member_hand;
    int64_t now_ms, swept_ms;
};

struct ft_members *ft_members_new(uint64_t seed)
{
    struct ft_members *m = calloc(1, sizeof(*m));

    if (!m)
        return NULL;
    m->members = ft_table_new(sizeof(struct member), sizeof(struct pair), FT_MEMBERS_MAX, seed);
    m->alone = ft_table_new(sizeof(struct alone), offsetof(struct alone, heard_ms),
                            FT_MEMBERS_CLAIMS, seed);
    m->sayers = ft_table_new(sizeof(struct sayer), sizeof(uint64_t), FT_MEMBERS_CLAIMS, seed);
    if (m->members && m->alone && m->sayers)
        return m;
    ft_members_free(m);
    return NULL;
}

void ft_members_free(struct ft_members *m)
{
    if (!m)
        return;
    ft_table_free(m->members);
    ft_table_free(m->alone);
    ft_table_free(m->sayers);
    free(m);
}

static void uncount(struct ft_members *m, uint64_t host)
{
    struct sayer *s = ft_table_find(m->sayers, &host);

    if (s && --s->count == 0)
        ft_table_remove(m->sayers, s);
}

/* Forgets what was said long ago; that takes a look at all of it. */
static void sweep(struct ft_members *m, int64_t now_ms)
{
    uint32_t index = 0;
    struct alone *a;

    if (now_ms - m->swept_ms < SWEEP_MS && now_ms >= m->swept_ms)
        return;
    m->swept_ms = now_ms;
    while ((a = ft_table_next(m->alone, &index))) {
        if (now_ms - a->heard_ms <= ALONE_MS)
            continue;
        uncount(m, a->host);
        ft_table_remove(m->alone, a);
    }
}

static bool is_old(void *arg, void *entry)
{
    const struct ft_members *m = arg;

    return m->now_ms - ((const struct member *)entry)->heard_ms > MEMBER_MS;
}

static void hear(struct ft_members *m, uint64_t job, uint64_t host, int64_t now_ms)
{
    const struct pair key = {job, host};
    struct member *member;
    bool fresh;

    if (ft_table_count(m->members) == FT_MEMBERS_MAX)
        ft_table_make_room(m->members, &m->member_hand, LOOKS, is_old, m);
    member = ft_table_insert(m->members, &key, &fresh);
    if (member)
        member->heard_ms = now_ms;
}

static const struct member *member_of(const struct ft_members *m, uint64_t job, uint64_t host,
                                      int64_t now_ms)
{
    const struct pair key = {job, host};
    const struct member *member = ft_table_find(m->members, &key);

    return member && now_ms - member->heard_ms <= MEMBER_MS ? member : NULL;
}

/* Keeps what a host says alone, as long as it does not say too much. */
static void keep(struct ft_members *m, uint64_t job, uint64_t host, uint64_t peer, int64_t now_ms)
{
    const struct alone key = {.job = job, .host = host, .peer = peer};
    struct alone *a = ft_table_find(m->alone, &key);
    struct sayer *s;
    bool fresh;

    if (a) {
        a->heard_ms = now_ms;
        return;
    }
    sweep(m, now_ms);
    s = ft_table_insert(m->sayers, &host, &fresh);
    if (!s || s->count >= FT_MEMBERS_ALONE)
        return;
    a = ft_table_insert(m->alone, &key, &fresh);
    if (a) {
        a->heard_ms = now_ms;
        s->count++;
    } else if (s->count == 0) {
        ft_table_remove(m->sayers, s);
    }
}

void ft_members_said(struct ft_members *m, uint64_t job, uint64_t host, uint64_t peer,
                     int64_t now_ms)
{
    const struct alone other = {.job = job, .host = peer, .peer = host};
    struct alone *a;

    if (host == peer)
        return;
    m->now_ms = now_ms;
    if (member_of(m, job, host, now_ms) && member_of(m, job, peer, now_ms)) {
        hear(m, job, host, now_ms);
        hear(m, job, ANY, now_ms);
        return;
    }
    a = ft_table_find(m->alone, &other);
    if (!a || now_ms - a->heard_ms > ALONE_MS) {
        keep(m, job, host, peer, now_ms);
        return;
    }
    uncount(m, peer);
    ft_table_remove(m->alone, a);
    hear(m, job, host, now_ms);
    hear(m, job, peer, now_ms);
    hear(m, job, ANY, now_ms);
}

bool ft_members_known(const struct ft_members *m, uint64_t job, int64_t now_ms)
{
    return member_of(m, job, ANY, now_ms);
}

bool ft_members_has(const struct ft_members *m, uint64_t job, uint64_t host, int64_t now_ms)
{
    return host != ANY && member_of(m, job, host, now_ms);
}

uint64_t ft_members_host(const struct ft_topology *t, const struct ft_ip *address, const char *name)
{
    uint32_t nic = t && address ? ft_topology_nic_at(t, address) : FT_NONE, id = FT_NONE;

    if (nic != FT_NONE)
        id = ft_topology_nic(t, nic)->host_id;
    else if (t && name)
        id = ft_topology_find_host(t, name);
    return id == FT_NONE ? 0 : ft_digest_text(ft_topology_host(t, id)->name, 0);
}

void ft_members_flow(struct ft_members *m, const struct ft_topology *t, const char *job,
                     const struct ft_tuple *flow, int64_t now_ms)
{
    uint64_t host = ft_members_host(t, &flow->src, NULL);
    uint64_t peer = host ? ft_members_host(t, &flow->dst, NULL) : 0;

    if (peer)
        ft_members_said(m, ft_digest_text(job, 0), host, peer, now_ms);
}
