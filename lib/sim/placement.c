// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/placement.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"

/* Paths that one look at a flow compares; of more than that the first. */
#define PATHS_MAX 256
#define NO_ITEM   UINT32_MAX
/* Rates are added and taken away again: what is over by rounding alone is not over. */
#define SLACK 1e-9

/* A flow on a link: item flow * FT_PATH_LINKS_MAX + i is on the flow's i-th link. */
struct item {
    uint32_t next, previous;
};

/* A flow that looks for a path; the one before it in the chain takes `path` when it has left. */
struct seeker {
    uint32_t flow;
    uint32_t parent;
    struct ft_path path;
};

struct ft_placement {
    const struct ft_topology *t;
    const bool *dead;
    const struct ft_demand *demands;
    const double *weight;
    const double *limit;
    struct ft_path *paths;
    uint32_t count;
    bool *chosen;
    double *load;
    uint32_t *head; /* by link: the first item */
    struct item *items;
    uint32_t *visits; /* by flow: how often this search came by it */
    uint32_t *seen;   /* by flow: the search that came by it last */
    uint32_t search;
    uint64_t looked; /* seekers that looked for a path */
    uint32_t most_visits;
    struct seeker *seekers;
    size_t seeker_size, old_size;
    struct ft_path *found; /* of PATHS_MAX and one */
    bool *cut;             /* by flow: of its paths those beyond PATHS_MAX were not compared */
    uint32_t cut_count;
    struct ft_path *old; /* of the flows of a chain */
};

/* Of a walk: how many links of the path so far have no room. */
struct look {
    const struct ft_placement *p;
    double weight;
    uint32_t most;
    uint32_t full[FT_PATH_HOPS_MAX + 1];
};

static bool is_full(const struct ft_placement *p, uint32_t link, double weight)
{
    return p->chosen[link] && p->load[link] + weight > p->limit[link] * (1 + SLACK);
}

static bool is_alive(const struct ft_placement *p, const struct ft_hop *hop)
{
    const struct ft_port *out = ft_topology_port(p->t, hop->out);

    return !p->dead || (!p->dead[hop->in] && !p->dead[hop->out] &&
                        (out->peer == FT_NONE || !p->dead[out->peer]));
}

static bool accept_hop(void *arg, uint32_t stage, const struct ft_hop *hop)
{
    struct look *look = arg;
    const struct ft_placement *p = look->p;

    if (!is_alive(p, hop))
        return false;
    if (stage == 0)
        look->full[0] = is_full(p, ft_topology_ports(p->t) + hop->in, look->weight);
    look->full[stage + 1] = look->full[stage] + is_full(p, hop->out, look->weight);
    return look->full[stage + 1] <= look->most;
}

/* The paths of a flow on which at most so many links are full. */
static uint32_t list_paths(struct ft_placement *p, uint32_t flow, uint32_t full, uint32_t max)
{
    struct look look = {.p = p, .weight = p->weight[flow], .most = full};
    const struct ft_demand *d = &p->demands[flow];

    return (uint32_t)ft_paths_walk(p->t, d->src_nic, d->dst_nic, accept_hop, &look, p->found, max,
                                   max);
}

/* The same, of those that are compared. */
static uint32_t compared_paths(struct ft_placement *p, uint32_t flow, uint32_t full)
{
    uint32_t n = list_paths(p, flow, full, PATHS_MAX + 1);

    if (n <= PATHS_MAX)
        return n;
    p->cut_count += !p->cut[flow];
    p->cut[flow] = true;
    return PATHS_MAX;
}

static void take_off(struct ft_placement *p, uint32_t flow)
{
    uint32_t links[FT_PATH_LINKS_MAX], n = ft_path_links(p->t, &p->paths[flow], links);

    for (uint32_t i = 0; i < n; i++) {
        struct item *item = &p->items[flow * FT_PATH_LINKS_MAX + i];

        p->load[links[i]] -= p->weight[flow];
        if (item->previous == NO_ITEM)
            p->head[links[i]] = item->next;
        else
            p->items[item->previous].next = item->next;
        if (item->next != NO_ITEM)
            p->items[item->next].previous = item->previous;
    }
    p->paths[flow].hop_count = 0;
}

static void put_on(struct ft_placement *p, uint32_t flow, const struct ft_path *path)
{
    uint32_t links[FT_PATH_LINKS_MAX], n = ft_path_links(p->t, path, links);

    p->paths[flow] = *path;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = flow * FT_PATH_LINKS_MAX + i, first = p->head[links[i]];

        p->items[at] = (struct item){first, NO_ITEM};
        if (first != NO_ITEM)
            p->items[first].previous = at;
        p->head[links[i]] = at;
        p->load[links[i]] += p->weight[flow];
        /* Nothing is on an empty link, whatever rounding left there. */
        if (first == NO_ITEM)
            p->load[links[i]] = p->weight[flow];
    }
}

struct ft_placement *ft_placement_new(const struct ft_topology *t, const bool *dead,
                                      const struct ft_demand *demands, const double *weight,
                                      uint32_t count, const double *limit, struct ft_path *paths)
{
    struct ft_placement *p = calloc(1, sizeof(*p));
    size_t links = (size_t)ft_links_of(t) + 1;

    if (!p)
        return NULL;
    *p = (struct ft_placement){.t = t,
                               .dead = dead,
                               .demands = demands,
                               .weight = weight,
                               .limit = limit,
                               .paths = paths,
                               .count = count,
                               .chosen = calloc(links, sizeof(*p->chosen)),
                               .load = calloc(links, sizeof(*p->load)),
                               .head = malloc(links * sizeof(*p->head)),
                               .items =
                                   calloc((size_t)count * FT_PATH_LINKS_MAX + 1, sizeof(*p->items)),
                               .seen = calloc((size_t)count + 1, sizeof(*p->seen)),
                               .visits = calloc((size_t)count + 1, sizeof(*p->visits)),
                               .most_visits = 1,
                               .found = calloc(PATHS_MAX + 1, sizeof(*p->found)),
                               .cut = calloc((size_t)count + 1, sizeof(*p->cut))};
    if (!p->chosen || !p->load || !p->head || !p->items || !p->seen || !p->visits || !p->found ||
        !p->cut) {
        ft_placement_free(p);
        return NULL;
    }
    memset(p->head, 0xff, links * sizeof(*p->head));
    for (uint32_t i = 0; i < ft_links_of(t); i++)
        p->chosen[i] = ft_link_chosen(t, i);
    for (uint32_t i = 0; i < count; i++) {
        struct ft_path path = paths[i];

        put_on(p, i, &path);
    }
    return p;
}

void ft_placement_free(struct ft_placement *p)
{
    if (!p)
        return;
    free(p->chosen);
    free(p->load);
    free(p->head);
    free(p->items);
    free(p->seen);
    free(p->visits);
    free(p->seekers);
    free(p->found);
    free(p->cut);
    free(p->old);
    free(p);
}

const double *ft_placement_load(const struct ft_placement *p)
{
    return p->load;
}

/* A walk along one path. */
struct along {
    const struct ft_placement *p;
    const struct ft_path *path;
};

static bool is_along(void *arg, uint32_t stage, const struct ft_hop *hop)
{
    const struct along *along = arg;
    const struct ft_hop *own = &along->path->hops[stage];

    return stage < along->path->hop_count && hop->in == own->in && hop->out == own->out &&
           is_alive(along->p, hop);
}

bool ft_placement_valid(const struct ft_placement *p, uint32_t flow, const struct ft_path *path)
{
    const struct ft_demand *d = &p->demands[flow];
    struct along along = {p, path};
    struct ft_path found;

    return ft_paths_walk(p->t, d->src_nic, d->dst_nic, is_along, &along, &found, 1, 1) > 0 &&
           found.hop_count == path->hop_count;
}

static bool add_seeker(struct ft_placement *p, uint32_t at, uint32_t flow, uint32_t parent,
                       const struct ft_path *path)
{
    struct seeker *seekers = ft_grow(p->seekers, at, &p->seeker_size, sizeof(*seekers));
    struct ft_path *old = ft_grow(p->old, at, &p->old_size, sizeof(*old));

    p->seekers = seekers ? seekers : p->seekers;
    p->old = old ? old : p->old;
    if (!seekers || !old)
        return false;
    p->seekers[at] = (struct seeker){.flow = flow, .parent = parent};
    if (path)
        p->seekers[at].path = *path;
    p->visits[flow] = p->seen[flow] == p->search ? p->visits[flow] + 1 : 1;
    p->seen[flow] = p->search;
    return true;
}

/* Carries a chain out: the last flow of it leaves its path, each before it takes what the next one
 * leaves. */
static void carry_out(struct ft_placement *p, uint32_t last)
{
    const struct ft_path *path = NULL;

    for (uint32_t at = last; at != NO_ITEM; at = p->seekers[at].parent) {
        p->old[at] = p->paths[p->seekers[at].flow];
        take_off(p, p->seekers[at].flow);
    }
    for (uint32_t at = last; at != NO_ITEM; at = p->seekers[at].parent) {
        if (path)
            put_on(p, p->seekers[at].flow, path);
        path = &p->seekers[at].path;
    }
}

static void take_back(struct ft_placement *p, uint32_t last)
{
    for (uint32_t at = last; at != NO_ITEM; at = p->seekers[at].parent)
        take_off(p, p->seekers[at].flow);
    for (uint32_t at = last; at != NO_ITEM; at = p->seekers[at].parent)
        put_on(p, p->seekers[at].flow, &p->old[at]);
}

static uint32_t full_link(const struct ft_placement *p, const struct ft_path *path, double weight)
{
    uint32_t links[FT_PATH_LINKS_MAX], n = ft_path_links(p->t, path, links);

    for (uint32_t i = 0; i < n; i++)
        if (is_full(p, links[i], weight))
            return links[i];
    return NO_ITEM;
}

/* Not too often in a search, and not twice in a chain. */
static bool may_seek(const struct ft_placement *p, uint32_t at, uint32_t flow)
{
    if (p->seen[flow] != p->search)
        return true;
    if (p->visits[flow] >= p->most_visits)
        return false;
    while (at != NO_ITEM && p->seekers[at].flow != flow)
        at = p->seekers[at].parent;
    return at == NO_ITEM;
}

/* Flows of a full link whose share would be enough for this one: they look next. */
static uint32_t add_seekers(struct ft_placement *p, uint32_t at, uint32_t count, uint32_t looks,
                            const struct ft_path *path)
{
    double weight = p->weight[p->seekers[at].flow];
    uint32_t link = full_link(p, path, weight);

    for (uint32_t item = p->head[link]; item != NO_ITEM && count < looks;
         item = p->items[item].next) {
        uint32_t other = item / FT_PATH_LINKS_MAX;

        if (may_seek(p, at, other) && !is_full(p, link, weight - p->weight[other]) &&
            add_seeker(p, count, other, at, path))
            count++;
    }
    return count;
}

bool ft_placement_within(struct ft_placement *p, uint32_t flow, uint32_t looks)
{
    uint32_t count = 0;

    p->search++;
    if (!add_seeker(p, count++, flow, NO_ITEM, NULL))
        return false;
    for (uint32_t at = 0; at < count; at++) {
        uint32_t seeker = p->seekers[at].flow, n;

        p->looked++;
        carry_out(p, at);
        if (list_paths(p, seeker, 0, 1) > 0) {
            put_on(p, seeker, &p->found[0]);
            return true;
        }
        n = count < looks ? compared_paths(p, seeker, 1) : 0;
        for (uint32_t i = 0; i < n && count < looks; i++)
            count = add_seekers(p, at, count, looks, &p->found[i]);
        take_back(p, at);
    }
    return false;
}

uint64_t ft_placement_looked(const struct ft_placement *p)
{
    return p->looked;
}

uint32_t ft_placement_cut(const struct ft_placement *p)
{
    return p->cut_count;
}

void ft_placement_visits(struct ft_placement *p, uint32_t most)
{
    p->most_visits = most;
}

/* Fullest link of a path with the flow on it, as a share of its limit, and the sum of the shares.
 */
static double fullness(const struct ft_placement *p, const struct ft_path *path, double weight,
                       double *sum)
{
    uint32_t links[FT_PATH_LINKS_MAX], n = ft_path_links(p->t, path, links);
    double most = 0;

    *sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        double share;

        if (!p->chosen[links[i]])
            continue;
        share = p->limit[links[i]] > 0 ? (p->load[links[i]] + weight) / p->limit[links[i]]
                                       : p->load[links[i]] + weight;
        *sum += share;
        most = share > most ? share : most;
    }
    return most;
}

bool ft_placement_least(struct ft_placement *p, uint32_t flow)
{
    double best = 0, best_sum = 0;
    uint32_t n, chosen = 0;

    take_off(p, flow);
    n = compared_paths(p, flow, FT_PATH_LINKS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        double sum, most = fullness(p, &p->found[i], p->weight[flow], &sum);

        if (i == 0 || most < best || (most == best && sum < best_sum)) {
            best = most;
            best_sum = sum;
            chosen = i;
        }
    }
    if (n > 0)
        put_on(p, flow, &p->found[chosen]);
    return n > 0;
}

uint32_t ft_placement_list(const struct ft_placement *p, uint32_t link, uint32_t *flows,
                           uint32_t max)
{
    uint32_t n = 0;

    for (uint32_t item = p->head[link]; item != NO_ITEM && n < max; item = p->items[item].next)
        flows[n++] = item / FT_PATH_LINKS_MAX;
    return n;
}
