// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/reassign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/sim/loads.h"
#include "lib/sim/plan.h"

/* Moves at most for each flow: the sum falls with each, and this ends long tails. */
#define MOVES_A_FLOW 16
/* Pairs are tried between flows of the fullest link, so many at most, and all others. */
#define PAIRS_MOST 32
/* A fall of less than this part is none. */
#define LEAST_FALL 1e-9

struct search {
    const struct ft_reassign_input *in;
    double *share;    /* by link: of its speed */
    bool *watched;    /* by link: some flow that can move can take it */
    double sum;       /* of the sixth powers of the watched ones */
    uint32_t *at;     /* by flow: candidate; FT_NONE: where it is now */
    uint32_t *moving; /* flows with candidates */
    uint32_t moving_count;
};

static bool is_alive(const struct ft_reassign_input *in, const struct ft_path *path)
{
    for (uint32_t i = 0; in->dead && i < path->hop_count; i++)
        if (in->dead[path->hops[i].in] || in->dead[path->hops[i].out])
            return false;
    return path->hop_count > 0;
}

static const struct ft_path *path_at(const struct search *s, uint32_t flow, uint32_t at)
{
    return at == FT_NONE ? &s->in->now[flow] : &s->in->candidates[at];
}

static bool is_same(const struct ft_path *a, const struct ft_path *b)
{
    return a->hop_count == b->hop_count &&
           memcmp(a->hops, b->hops, a->hop_count * sizeof(a->hops[0])) == 0;
}

static double sixth(double x)
{
    double square = x * x;

    return square * square * square;
}

/* Puts a flow on a path, or takes it off. */
static void load(struct search *s, uint32_t flow, uint32_t at, double sign)
{
    const struct ft_topology *t = s->in->topology;
    const struct ft_path *path = path_at(s, flow, at);
    uint32_t links[FT_PATH_LINKS_MAX], n;

    if (!is_alive(s->in, path))
        return;
    n = ft_path_links(t, path, links);
    for (uint32_t i = 0; i < n; i++) {
        double speed = (double)ft_link_speed(t, links[i]), *share = &s->share[links[i]];

        if (s->watched[links[i]])
            s->sum -= sixth(*share);
        *share += sign * (double)s->in->demands[flow].rate_bps / (speed > 0 ? speed : 1);
        if (s->watched[links[i]])
            s->sum += sixth(*share);
    }
}

static void move(struct search *s, uint32_t flow, uint32_t to)
{
    load(s, flow, s->at[flow], -1);
    s->at[flow] = to;
    load(s, flow, to, 1);
}

/* The fullest watched link. */
static double fullest(const struct search *s, uint32_t *link)
{
    double most = 0;

    *link = FT_NONE;
    for (uint32_t l = 0; l < ft_links_of(s->in->topology); l++) {
        if (s->watched[l] && s->share[l] > most) {
            most = s->share[l];
            *link = l;
        }
    }
    return most;
}

static bool takes(const struct search *s, uint32_t flow, uint32_t link)
{
    uint32_t links[FT_PATH_LINKS_MAX];
    uint32_t n = ft_path_links(s->in->topology, path_at(s, flow, s->at[flow]), links);

    for (uint32_t i = 0; i < n; i++)
        if (links[i] == link)
            return true;
    return false;
}

/* The candidate with the least sum; false where that is the present one. */
static bool move_best(struct search *s, uint32_t flow)
{
    uint32_t from = s->at[flow], best = from;
    double least = s->sum * (1 - LEAST_FALL);

    if (!is_alive(s->in, path_at(s, flow, from)))
        least = 1e300;
    for (uint32_t i = s->in->first[flow]; i < s->in->first[flow + 1]; i++) {
        move(s, flow, i);
        if (s->sum < least) {
            least = s->sum;
            best = i;
        }
    }
    move(s, flow, best);
    return best != from;
}

/* Moves a flow, and another that the first one's new path sends elsewhere. */
static bool move_pair(struct search *s, uint32_t flow, uint32_t other)
{
    uint32_t from = s->at[flow], other_from = s->at[other];
    double before = s->sum;

    for (uint32_t i = s->in->first[flow]; i < s->in->first[flow + 1]; i++) {
        if (i == from)
            continue;
        move(s, flow, i);
        if (move_best(s, other) && s->sum < before * (1 - LEAST_FALL))
            return true;
        move(s, other, other_from);
        move(s, flow, from);
    }
    return false;
}

/* One step down; false where there is none. */
static bool improve(struct search *s)
{
    uint32_t link, tried = 0;

    fullest(s, &link);
    for (uint32_t i = 0; i < s->moving_count; i++)
        if (takes(s, s->moving[i], link) && move_best(s, s->moving[i]))
            return true;
    for (uint32_t i = 0; i < s->moving_count && tried < PAIRS_MOST; i++) {
        if (!takes(s, s->moving[i], link))
            continue;
        tried++;
        for (uint32_t k = 0; k < s->moving_count; k++)
            if (k != i && move_pair(s, s->moving[i], s->moving[k]))
                return true;
    }
    return false;
}

/* Whether a plan of the flows that can move puts each on a candidate; if so it is made. */
static int colour(struct search *s)
{
    const struct ft_reassign_input *in = s->in;
    struct ft_demand *demands = calloc((size_t)s->moving_count + 1, sizeof(*demands));
    struct ft_plan_input input = {.topology = in->topology, .dead = in->dead};
    struct ft_plan plan;
    int rc = demands ? 0 : -ENOMEM;

    for (uint32_t i = 0; rc == 0 && i < s->moving_count; i++)
        demands[i] = in->demands[s->moving[i]];
    input.demands = demands;
    input.count = s->moving_count;
    if (rc == 0)
        rc = ft_plan_make(&input, &plan);
    free(demands);
    if (rc)
        return rc == -EHOSTUNREACH ? 0 : rc;
    for (uint32_t i = 0; i < s->moving_count; i++) {
        uint32_t flow = s->moving[i], k = in->first[flow];

        while (k < in->first[flow + 1] && !is_same(&in->candidates[k], &plan.paths[i]))
            k++;
        if (k < in->first[flow + 1])
            move(s, flow, k);
    }
    ft_plan_free(&plan);
    return 0;
}

/* Flows go back where the fullest link stays as it is. */
static void go_back(struct search *s)
{
    uint32_t link;
    double most = fullest(s, &link) * (1 + LEAST_FALL);

    for (uint32_t i = 0; i < s->moving_count; i++) {
        uint32_t flow = s->moving[i], at = s->at[flow];

        if (at == FT_NONE || !is_alive(s->in, &s->in->now[flow]))
            continue;
        move(s, flow, FT_NONE);
        if (fullest(s, &link) > most)
            move(s, flow, at);
    }
}

/* Downwards from where it is. The sum is worked out anew against rounding. */
static void descend(struct search *s)
{
    for (uint32_t left = s->moving_count * MOVES_A_FLOW; left > 0 && improve(s); left--)
        ;
}

static int search(struct search *s)
{
    uint32_t *kept = calloc((size_t)s->in->count + 1, sizeof(*kept)), link;
    double least;
    int rc;

    if (!kept)
        return -ENOMEM;
    descend(s);
    least = fullest(s, &link);
    memcpy(kept, s->at, s->in->count * sizeof(*kept));
    rc = colour(s);
    if (rc == 0)
        descend(s);
    if (rc || fullest(s, &link) >= least * (1 - LEAST_FALL))
        for (uint32_t i = 0; i < s->in->count; i++)
            if (s->at[i] != kept[i])
                move(s, i, kept[i]);
    free(kept);
    if (rc == 0)
        go_back(s);
    return rc;
}

static void watch(struct search *s, const struct ft_path *path)
{
    uint32_t links[FT_PATH_LINKS_MAX], n = ft_path_links(s->in->topology, path, links);

    for (uint32_t i = 0; i < n; i++)
        s->watched[links[i]] |= ft_link_chosen(s->in->topology, links[i]);
}

static int search_init(struct search *s, const struct ft_reassign_input *in)
{
    size_t links = (size_t)ft_links_of(in->topology) + 1;

    s->in = in;
    s->share = calloc(links, sizeof(*s->share));
    s->watched = calloc(links, sizeof(*s->watched));
    s->at = calloc((size_t)in->count + 1, sizeof(*s->at));
    s->moving = calloc((size_t)in->count + 1, sizeof(*s->moving));
    if (!s->share || !s->watched || !s->at || !s->moving)
        return -ENOMEM;
    for (uint32_t i = 0; i < in->count; i++) {
        s->at[i] = FT_NONE;
        if (in->first[i] == in->first[i + 1])
            continue;
        s->moving[s->moving_count++] = i;
        watch(s, &in->now[i]);
        for (uint32_t k = in->first[i]; k < in->first[i + 1]; k++)
            watch(s, &in->candidates[k]);
    }
    for (uint32_t i = 0; i < in->count; i++)
        load(s, i, FT_NONE, 1);
    return 0;
}

static void search_free(struct search *s)
{
    free(s->share);
    free(s->watched);
    free(s->at);
    free(s->moving);
}

/* A candidate may be the path that a flow has. */
static bool has_moved(const struct search *s, uint32_t flow)
{
    return s->at[flow] != FT_NONE && !is_same(&s->in->candidates[s->at[flow]], &s->in->now[flow]);
}

static bool any_dead(const struct search *s)
{
    for (uint32_t i = 0; i < s->moving_count; i++)
        if (!is_alive(s->in, &s->in->now[s->moving[i]]))
            return true;
    return false;
}

static void sum_up(struct search *s, struct ft_reassign *out)
{
    for (uint32_t i = 0; i < s->in->count; i++) {
        bool can = s->in->first[i] < s->in->first[i + 1];
        bool lost = can && !is_alive(s->in, &s->in->now[i]);

        if (!has_moved(s, i))
            s->at[i] = FT_NONE;
        out->moved += s->at[i] != FT_NONE;
        out->lost += s->at[i] != FT_NONE && lost;
        out->stuck += s->at[i] == FT_NONE && lost;
    }
    out->after = fullest(s, &out->worst_after);
}

/* Of the flows of a set of links; of equal ones as a number of flows. */
static double bound_of(const struct ft_bounds *b, uint32_t set)
{
    double mean = b->links[set] ? b->speed[set] / b->links[set] : 0;
    bool equal = b->flows[set] * b->most_bps[set] <= b->bps[set] * (1 + LEAST_FALL);

    if (b->flows[set] == 0 || mean <= 0)
        return 0;
    return equal ? ft_bound_flows(b, set) * b->most_bps[set] / mean : b->bps[set] / b->speed[set];
}

/* The sets that a flow chooses between by its ends, as one of a NIC with several ports does, are
 * one set to the bound: by one of all these links it goes in any case. parent[] is a forest. */
static uint32_t root_of(uint32_t *parent, uint32_t set)
{
    for (; parent[set] != set; set = parent[set])
        parent[set] = parent[parent[set]];
    return set;
}

static void join_sets(const struct ft_bounds *b, uint32_t *parent, bool *closed,
                      const struct ft_path *from, const struct ft_path *to)
{
    for (uint32_t k = 0; k < from->hop_count || k < to->hop_count; k++) {
        uint32_t x = k < from->hop_count ? b->set[from->hops[k].out] : FT_NONE;
        uint32_t y = k < to->hop_count ? b->set[to->hops[k].out] : FT_NONE;

        if (x != FT_NONE && y != FT_NONE)
            parent[root_of(parent, x)] = root_of(parent, y);
        /* A way round it: nothing has to go by that set. */
        else if (x != FT_NONE || y != FT_NONE)
            closed[x != FT_NONE ? x : y] = true;
    }
}

/* Adds up the sets that are one, in the numbers of their roots; links keep their sets. NULL without
 * memory. */
static uint32_t *merge_sets(const struct search *s, struct ft_bounds *b)
{
    uint32_t *parent = calloc((size_t)b->sets + 1, sizeof(*parent));
    bool *closed = calloc((size_t)b->sets + 1, sizeof(*closed));

    for (uint32_t set = 0; parent && closed && set < b->sets; set++)
        parent[set] = set;
    for (uint32_t i = 0; parent && closed && i < s->moving_count; i++) {
        uint32_t flow = s->moving[i];

        for (uint32_t k = s->in->first[flow]; k < s->in->first[flow + 1]; k++)
            join_sets(b, parent, closed, &s->in->now[flow], &s->in->candidates[k]);
    }
    for (uint32_t set = 0; parent && closed && set < b->sets; set++) {
        uint32_t root = root_of(parent, set);

        if (root == set)
            continue;
        b->flows[root] += b->flows[set];
        b->bps[root] += b->bps[set];
        if (b->most_bps[set] > b->most_bps[root])
            b->most_bps[root] = b->most_bps[set];
        b->speed[root] =
            b->speed[root] > 0 && b->speed[set] > 0 ? b->speed[root] + b->speed[set] : 0;
        b->links[root] += b->links[set];
    }
    for (uint32_t set = 0; parent && closed && set < b->sets; set++)
        if (closed[set])
            b->flows[root_of(parent, set)] = 0;
    free(closed);
    return parent;
}

/* Where flows can take every link of a set, one of them carries at least that: links of a set that
 * differ in speed have a bound as if they did not, so those are left out. */
static int find_bound(const struct search *s, double *bound)
{
    const struct ft_topology *t = s->in->topology;
    struct ft_hop *ends = calloc((size_t)s->in->count + 1, sizeof(*ends));
    struct ft_bounds b = {0};
    uint32_t *open = NULL, *root = NULL;
    int rc = ends ? 0 : -ENOMEM;

    for (uint32_t i = 0; rc == 0 && i < s->in->count; i++) {
        const struct ft_path *now = &s->in->now[i];

        ends[i] = (struct ft_hop){now->hops[0].in, now->hops[now->hop_count - 1].out};
    }
    if (rc == 0)
        rc = ft_bounds_init(&b, t, s->in->dead, s->in->demands, ends, s->in->count);
    root = rc ? NULL : merge_sets(s, &b);
    open = rc ? NULL : calloc((size_t)b.sets + 1, sizeof(*open));
    if (!open || !root)
        rc = -ENOMEM;
    for (uint32_t l = 0; rc == 0 && l < ft_topology_ports(t); l++) {
        uint32_t set = b.set[l] == FT_NONE ? FT_NONE : root_of(root, b.set[l]);

        if (set != FT_NONE && s->watched[l] && !(s->in->dead && s->in->dead[l]) &&
            (double)ft_link_speed(t, l) * b.links[set] == b.speed[set])
            open[set]++;
    }
    for (uint32_t set = 0; rc == 0 && set < b.sets; set++)
        if (root[set] == set && open[set] == b.links[set] && bound_of(&b, set) > *bound)
            *bound = bound_of(&b, set);
    ft_bounds_free(&b);
    free(root);
    free(open);
    free(ends);
    return rc;
}

int ft_reassign(const struct ft_reassign_input *in, struct ft_reassign *out)
{
    struct search s = {0};
    uint32_t link;
    int rc = search_init(&s, in);

    memset(out, 0, sizeof(*out));
    if (rc == 0) {
        out->before = fullest(&s, &out->worst_before);
        for (uint32_t i = 0; i < s.moving_count; i++)
            if (!is_alive(in, &in->now[s.moving[i]]))
                move_best(&s, s.moving[i]);
        rc = search(&s);
    }
    if (rc == 0 && !any_dead(&s) && fullest(&s, &link) > out->before * (1 + LEAST_FALL))
        for (uint32_t i = 0; i < s.moving_count; i++)
            move(&s, s.moving[i], FT_NONE);
    if (rc == 0) {
        sum_up(&s, out);
        rc = find_bound(&s, &out->bound);
    }
    if (rc == 0) {
        out->choice = s.at;
        s.at = NULL;
    }
    search_free(&s);
    return rc;
}

void ft_reassign_free(struct ft_reassign *r)
{
    free(r->choice);
    memset(r, 0, sizeof(*r));
}
