// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/jobs/slowest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs/sent.h"
#include "lib/base/table.h"

#define PAIRS_MAX  64
#define OTHERS_MIN 2
/* A middle of fewer steps says little. */
#define STEPS_MIN 4
#define FRESH_MS  10000
/* Agents give the median to within a fifth: what is only that much apart may be equal. */
#define TO_MIDDLE  2.0
#define TO_HIGHEST 1.5

/* Where sizes vary, no two operations have the same: those of up to twice the size go together. */
struct kind_key {
    uint64_t size; /* bits of the bytes' number */
    char comm_id[FT_RANKS_ID], op[FT_RANKS_ID], algo[FT_RANKS_ID], proto[FT_RANKS_ID];
};

struct pair {
    uint32_t src, dst;
    uint64_t time_ms;
    double ns, bytes; /* of a step */
};

struct kind {
    struct kind_key key;
    uint32_t count, next;
    struct pair pairs[PAIRS_MAX];
};

struct rank_key {
    char comm_id[FT_RANKS_ID];
    uint32_t rank;
};

struct rank {
    struct rank_key key;
    struct ft_slowest_last last;
};

struct ft_slowest {
    struct ft_table *kinds, *ranks;
    uint64_t forgotten;
};

struct ft_slowest *ft_slowest_new(const struct ft_slowest_config *config)
{
    struct ft_slowest *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->kinds = ft_table_new(sizeof(struct kind), sizeof(struct kind_key), config->operations_max,
                            config->seed);
    s->ranks =
        ft_table_new(sizeof(struct rank), sizeof(struct rank_key), config->ranks_max, config->seed);
    if (!s->kinds || !s->ranks) {
        ft_slowest_free(s);
        return NULL;
    }
    return s;
}

void ft_slowest_free(struct ft_slowest *s)
{
    if (!s)
        return;
    ft_table_free(s->kinds);
    ft_table_free(s->ranks);
    free(s);
}

static void copy(char to[FT_RANKS_ID], const char *from)
{
    snprintf(to, FT_RANKS_ID, "%s", from ? from : "");
}

static struct kind *kind_of(struct ft_slowest *s, const Fabrictrace__Collective *c)
{
    struct kind_key key;
    struct kind *kind;
    bool fresh;

    memset(&key, 0, sizeof(key));
    key.size = c->bytes ? 64 - (unsigned)__builtin_clzll(c->bytes) : 0;
    copy(key.comm_id, c->comm_id);
    copy(key.op, c->op);
    copy(key.algo, c->algo);
    copy(key.proto, c->proto);
    kind = ft_table_insert(s->kinds, &key, &fresh);
    if (kind)
        return kind;
    /* A condition that continues is raised again at once. */
    ft_table_clear(s->kinds);
    s->forgotten++;
    return ft_table_insert(s->kinds, &key, &fresh);
}

static struct ft_slowest_last *last_of(struct ft_slowest *s, const Fabrictrace__Collective *c)
{
    struct rank_key key;
    struct rank *rank;
    bool fresh;

    memset(&key, 0, sizeof(key));
    copy(key.comm_id, c->comm_id);
    key.rank = c->rank;
    rank = ft_table_insert(s->ranks, &key, &fresh);
    if (!rank) {
        /* Of ranks that are over nobody hears any more, and the others come again at once. */
        ft_table_clear(s->ranks);
        rank = ft_table_insert(s->ranks, &key, &fresh);
    }
    return rank ? &rank->last : NULL;
}

static bool is_usable(const struct ft_sent *s)
{
    return !s->mixed && s->messages >= STEPS_MIN && s->bytes > 0 && s->ns > 0;
}

static void remember(struct kind *kind, const Fabrictrace__Collective *c, const struct ft_sent *s)
{
    uint32_t at = 0;

    while (at < kind->count && (kind->pairs[at].src != c->rank || kind->pairs[at].dst != s->peer))
        at++;
    if (at == PAIRS_MAX) {
        at = kind->next;
        kind->next = (kind->next + 1) % PAIRS_MAX;
    } else if (at == kind->count) {
        kind->count++;
    }
    kind->pairs[at] =
        (struct pair){c->rank, s->peer, c->time_ms, s->ns / s->messages, s->bytes / s->messages};
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* What another pair's step would have taken for as many bytes, at most: in proportion for more of
 * them, for fewer no less, since a part of the time is the same for any size. */
static double scaled(const struct pair *p, double bytes)
{
    return bytes > p->bytes ? p->ns * bytes / p->bytes : p->ns;
}

/* The middle of the other pairs, for a step of as many bytes, when this one is certainly slower
 * than all of them; else 0. */
static double others_middle(const struct kind *kind, const Fabrictrace__Collective *c,
                            const struct ft_sent *s)
{
    double others[PAIRS_MAX], own = s->ns / s->messages, middle;
    size_t n = 0;

    for (uint32_t i = 0; i < kind->count; i++) {
        const struct pair *p = &kind->pairs[i];
        uint64_t apart_ms =
            p->time_ms > c->time_ms ? p->time_ms - c->time_ms : c->time_ms - p->time_ms;

        if (apart_ms <= FRESH_MS && (p->src != c->rank || p->dst != s->peer))
            others[n++] = scaled(p, s->bytes / s->messages);
    }
    if (n < OTHERS_MIN)
        return 0;
    qsort(others, n, sizeof(*others), by_time);
    middle = n % 2 ? others[n / 2] : (others[n / 2 - 1] + others[n / 2]) / 2;
    return own >= TO_MIDDLE * middle && own >= TO_HIGHEST * others[n - 1] ? middle : 0;
}

static uint64_t rounded(double ns)
{
    return ns < 9e18 ? (uint64_t)(ns + 0.5) : UINT64_MAX;
}

static void judge(struct ft_slowest *s, struct ft_slowest_last *last,
                  const Fabrictrace__Collective *c, const struct ft_pair_links *links)
{
    struct kind *kind = kind_of(s, c);
    struct ft_sent sent[PAIRS_MAX];
    size_t n = ft_sent_add_up(sent, PAIRS_MAX, c);
    const struct ft_pair_link *link;

    if (!kind)
        return;
    for (size_t i = 0; i < n; i++)
        if (is_usable(&sent[i]))
            remember(kind, c, &sent[i]);
    for (size_t i = 0; i < n && !last->named; i++) {
        double middle = is_usable(&sent[i]) ? others_middle(kind, c, &sent[i]) : 0;

        if (middle <= 0)
            continue;
        last->named = true;
        last->peer = sent[i].peer;
        last->step_median_ns = rounded(sent[i].ns / sent[i].messages);
        last->others_median_ns = rounded(middle);
    }
    link = last->named ? ft_pair_links_find(links, c->comm_id, c->rank, last->peer) : NULL;
    last->has_link = link != NULL;
    if (link)
        last->link = *link;
}

const struct ft_slowest_last *ft_slowest_take(struct ft_slowest *s,
                                              const Fabrictrace__Collective *c,
                                              const struct ft_pair_links *links)
{
    struct ft_slowest_last *last = c->op && c->op[0] ? last_of(s, c) : NULL;

    if (!last)
        return NULL;
    memset(last, 0, sizeof(*last));
    copy(last->op, c->op);
    last->time_ms = c->time_ms;
    /* A part that never ended, or was another process's, shows no usual step. */
    if (c->has_bytes && c->has_time_ms && !c->incomplete && !c->foreign && !c->peers_dropped)
        judge(s, last, c, links);
    return last;
}

const struct ft_slowest_last *ft_slowest_of(const struct ft_slowest *s, const char *comm_id,
                                            uint32_t rank)
{
    struct rank_key key;
    const struct rank *found;

    memset(&key, 0, sizeof(key));
    copy(key.comm_id, comm_id);
    key.rank = rank;
    found = ft_table_find(s->ranks, &key);
    return found ? &found->last : NULL;
}

uint64_t ft_slowest_forgotten(const struct ft_slowest *s)
{
    return s->forgotten;
}
