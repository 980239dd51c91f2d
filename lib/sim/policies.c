// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/policies.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/mix.h"
#include "lib/base/task.h"
#include "lib/sim/loads.h"

/* Of more paths than this the first are chosen from. */
#define PATHS_MAX 16384

bool ft_policy_lives(const struct ft_policy_input *in, const struct ft_hop *hop)
{
    uint32_t peer = ft_topology_port(in->topology, hop->out)->peer;

    return !in->dead ||
           (!in->dead[hop->in] && !in->dead[hop->out] && (peer == FT_NONE || !in->dead[peer]));
}

static bool is_alive(void *arg, uint32_t stage, const struct ft_hop *hop)
{
    (void)stage;
    return ft_policy_lives(arg, hop);
}

uint32_t ft_policy_paths(const struct ft_policy_input *in, uint32_t flow, struct ft_path *paths,
                         uint32_t max)
{
    struct ft_policy_input copy = *in;
    const struct ft_demand *d = &in->demands[flow];

    return (uint32_t)ft_paths_walk(in->topology, d->src_nic, d->dst_nic, in->dead ? is_alive : NULL,
                                   &copy, paths, max, max);
}

/* Which of n paths a flow takes. */
typedef uint32_t (*choose_fn)(void *arg, uint32_t flow, const struct ft_path *paths, uint32_t n);

static int choose(const struct ft_policy_input *in, choose_fn fn, void *arg, struct ft_path *paths)
{
    struct ft_path *found = calloc(PATHS_MAX, sizeof(*found));
    int rc = found ? 0 : -ENOMEM;

    for (uint32_t i = 0; i < in->count && rc == 0; i++) {
        uint32_t n = ft_policy_paths(in, i, found, PATHS_MAX);

        if (n == 0)
            rc = -EHOSTUNREACH;
        else
            paths[i] = found[fn(arg, i, found, n)];
        ft_task_spend(in->task, 1 + n / 4);
    }
    free(found);
    return rc;
}

struct drawn {
    uint64_t seed;
    uint32_t left[PATHS_MAX]; /* paths, by their indices */
    uint32_t ports[PATHS_MAX];
};

/* By what paths differ: the port of their source, then by which each switch sends. */
static uint32_t port_of(const struct ft_path *path, uint32_t stage)
{
    if (stage == 0)
        return path->hops[0].in;
    return stage <= path->hop_count ? path->hops[stage - 1].out : FT_NONE;
}

/* The ports at a stage of the paths that are left. */
static uint32_t list_ports(struct drawn *d, const struct ft_path *paths, uint32_t n, uint32_t stage)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t port = port_of(&paths[d->left[i]], stage), k = count;

        while (k > 0 && d->ports[k - 1] != port)
            k--;
        if (k == 0)
            d->ports[count++] = port;
    }
    return count;
}

/* Each switch chooses among its links, however many paths there are behind each. */
static uint32_t by_hash(void *arg, uint32_t flow, const struct ft_path *paths, uint32_t n)
{
    struct drawn *d = arg;
    uint64_t part = ft_mix(ft_mix(d->seed) + flow) >> 32; /* of 2^32 */

    for (uint32_t i = 0; i < n; i++)
        d->left[i] = i;
    for (uint32_t stage = 0; n > 1 && stage <= FT_PATH_HOPS_MAX; stage++) {
        uint32_t count = list_ports(d, paths, n, stage), kept = 0;
        uint32_t port = d->ports[part * count >> 32];

        part = part * count & UINT32_MAX;
        for (uint32_t i = 0; i < n; i++)
            if (port_of(&paths[d->left[i]], stage) == port)
                d->left[kept++] = d->left[i];
        n = kept;
    }
    return d->left[0];
}

int ft_policy_ecmp(const struct ft_policy_input *in, uint64_t seed, struct ft_path *paths)
{
    struct drawn *d = calloc(1, sizeof(*d));
    int rc = -ENOMEM;

    if (d) {
        d->seed = seed;
        rc = choose(in, by_hash, d, paths);
    }
    free(d);
    return rc;
}

/* Paths that are the same up to a stage. */
struct stem {
    uint32_t parent, port, branches;
};

/* One stage further: stem[] by path, of the stems before it. */
static void branch(const struct ft_path *paths, uint32_t n, uint32_t stage, struct stem *before,
                   struct stem *after, uint32_t *stem, double *part)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t port = port_of(&paths[i], stage), k = count;

        while (k > 0 && (after[k - 1].parent != stem[i] || after[k - 1].port != port))
            k--;
        if (k == 0) {
            before[stem[i]].branches++;
            after[count++] = (struct stem){stem[i], port, 0};
            k = count;
        }
        stem[i] = k - 1;
    }
    for (uint32_t i = 0; i < n; i++)
        part[i] /= before[after[stem[i]].parent].branches;
}

int ft_policy_parts(const struct ft_path *paths, uint32_t n, double *part)
{
    struct stem *stems[2] = {calloc((size_t)n + 1, sizeof(*stems[0])),
                             calloc((size_t)n + 1, sizeof(*stems[1]))};
    uint32_t *stem = calloc((size_t)n + 1, sizeof(*stem));
    int rc = stems[0] && stems[1] && stem ? 0 : -ENOMEM;

    for (uint32_t i = 0; rc == 0 && i < n; i++)
        part[i] = 1;
    for (uint32_t stage = 0; rc == 0 && stage <= FT_PATH_HOPS_MAX; stage++)
        branch(paths, n, stage, stems[stage % 2], stems[1 - stage % 2], stem, part);
    free(stems[0]);
    free(stems[1]);
    free(stem);
    return rc;
}

static uint32_t by_destination(void *arg, uint32_t flow, const struct ft_path *paths, uint32_t n)
{
    const struct ft_policy_input *in = arg;

    (void)paths;
    return in->demands[flow].dst_nic % n;
}

int ft_policy_static(const struct ft_policy_input *in, struct ft_path *paths)
{
    struct ft_policy_input copy = *in;

    return choose(in, by_destination, &copy, paths);
}

/* A NIC, to be counted at its leaf. */
struct at_leaf {
    uint32_t leaf, rail, nic;
};

static int compare_positions(const void *a, const void *b)
{
    const struct at_leaf *x = a, *y = b;

    if (x->leaf != y->leaf)
        return x->leaf < y->leaf ? -1 : 1;
    if (x->rail != y->rail)
        return x->rail < y->rail ? -1 : 1;
    return (x->nic > y->nic) - (x->nic < y->nic);
}

/* By NIC: which of its leaf it is. NULL without memory. */
static uint32_t *count_positions(const struct ft_topology *t)
{
    uint32_t count = ft_topology_nics(t);
    struct at_leaf *nics = calloc((size_t)count + 1, sizeof(*nics));
    uint32_t *position = calloc((size_t)count + 1, sizeof(*position));

    if (!nics || !position) {
        free(nics);
        free(position);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct ft_nic *nic = ft_topology_nic(t, i);

        nics[i] = (struct at_leaf){
            nic->attach_count ? ft_topology_port(t, nic->attach[0])->switch_id : FT_NONE, nic->rail,
            i};
    }
    qsort(nics, count, sizeof(*nics), compare_positions);
    for (uint32_t i = 1; i < count; i++)
        position[nics[i].nic] =
            nics[i].leaf == nics[i - 1].leaf ? position[nics[i - 1].nic] + 1 : 0;
    free(nics);
    return position;
}

struct rail {
    const struct ft_policy_input *in;
    const uint32_t *position; /* by NIC */
};

static uint32_t by_position(void *arg, uint32_t flow, const struct ft_path *paths, uint32_t n)
{
    const struct rail *r = arg;

    (void)paths;
    return r->position[r->in->demands[flow].dst_nic] % n;
}

int ft_policy_rail(const struct ft_policy_input *in, struct ft_path *paths)
{
    uint32_t *position = count_positions(in->cabled ? in->cabled : in->topology);
    struct rail r = {in, position};
    int rc = position ? choose(in, by_position, &r, paths) : -ENOMEM;

    free(position);
    return rc;
}

struct greedy {
    const struct ft_topology *t;
    uint32_t *flows; /* by link */
};

static uint32_t by_load(void *arg, uint32_t flow, const struct ft_path *paths, uint32_t n)
{
    struct greedy *g = arg;
    uint32_t links[FT_PATH_LINKS_MAX], count, best = UINT32_MAX, chosen = 0;

    (void)flow;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t most = 0;

        count = ft_path_links(g->t, &paths[i], links);
        for (uint32_t k = 0; k < count; k++)
            if (ft_link_chosen(g->t, links[k]) && g->flows[links[k]] > most)
                most = g->flows[links[k]];
        if (most < best) {
            best = most;
            chosen = i;
        }
    }
    count = ft_path_links(g->t, &paths[chosen], links);
    for (uint32_t k = 0; k < count; k++)
        g->flows[links[k]]++;
    return chosen;
}

int ft_policy_greedy(const struct ft_policy_input *in, struct ft_path *paths)
{
    struct greedy g = {in->topology,
                       calloc((size_t)ft_links_of(in->topology) + 1, sizeof(uint32_t))};
    int rc = g.flows ? choose(in, by_load, &g, paths) : -ENOMEM;

    free(g.flows);
    return rc;
}
