// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/sim/clos.h"
#include "lib/sim/ends.h"
#include "lib/sim/loads.h"
#include "lib/sim/placement.h"

/* Flows that one search moves about at most. */
#define LOOKS_MAX    65536
#define RELIEF_LOOKS 256
/* Links that relieving looks at in all: a second or so. */
#define RELIEF_WORK 200000000u
/* Looks of all searches together: some seconds. Behind it a flow finds only what is free. */
#define LOOKS_ALL     2000000u
#define ROUNDS        4
#define PROGRESS_STEP 1024

struct work {
    const struct ft_plan_input *in;
    struct ft_plan *plan;
    uint32_t *order;
    struct ft_hop *ends;
    double *weight;
    double *limit;
    uint32_t *flows; /* of a link; of the searches */
    struct ft_bounds bounds;
    struct ft_placement *placement;
    bool speeds; /* every link has one */
};

static bool same_path(const struct ft_path *a, const struct ft_path *b)
{
    return a->hop_count == b->hop_count &&
           memcmp(a->hops, b->hops, a->hop_count * sizeof(a->hops[0])) == 0;
}

struct ranked {
    uint64_t rate;
    uint32_t flow;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->rate != y->rate)
        return x->rate > y->rate ? -1 : 1;
    return x->flow < y->flow ? -1 : x->flow > y->flow;
}

static int rank_flows(struct work *w)
{
    uint32_t count = w->in->count;
    struct ranked *ranked = calloc((size_t)count + 1, sizeof(*ranked));

    if (!ranked)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        ranked[i] = (struct ranked){w->in->demands[i].rate_bps, i};
    qsort(ranked, count, sizeof(*ranked), compare_ranked);
    for (uint32_t i = 0; i < count; i++)
        w->order[i] = ranked[i].flow;
    w->plan->equal = count == 0 || ranked[0].rate == ranked[count - 1].rate;
    free(ranked);
    return 0;
}

/* Whether speeds are known, and the same between switches. */
static void look_at_speeds(struct work *w)
{
    const struct ft_topology *t = w->in->topology;
    uint64_t speed = 0;
    bool some = false;

    w->speeds = true;
    for (uint32_t i = 0; i < ft_topology_ports(t); i++) {
        const struct ft_port *p = ft_topology_port(t, i);

        if (p->peer == FT_NONE && p->nic == FT_NONE)
            continue;
        if (p->speed_bps == 0)
            w->speeds = false;
        if (p->peer == FT_NONE)
            continue;
        if (some && p->speed_bps != speed)
            w->plan->equal = false;
        speed = p->speed_bps;
        some = true;
    }
}

static double speed_of(const struct work *w, uint32_t link)
{
    return w->speeds ? (double)ft_link_speed(w->in->topology, link) : 1;
}

static bool is_alive(void *arg, uint32_t stage, const struct ft_hop *hop)
{
    const struct ft_plan_input *in = arg;
    uint32_t peer = ft_topology_port(in->topology, hop->out)->peer;

    (void)stage;
    return !in->dead ||
           (!in->dead[hop->in] && !in->dead[hop->out] && (peer == FT_NONE || !in->dead[peer]));
}

static int check_reachable(struct work *w)
{
    struct ft_plan_input in = *w->in;
    struct ft_path path;

    for (uint32_t i = 0; i < in.count; i++) {
        if (ft_paths_walk(in.topology, in.demands[i].src_nic, in.demands[i].dst_nic, is_alive, &in,
                          &path, 1, 1) == 0) {
            w->plan->unreachable = i;
            return -EHOSTUNREACH;
        }
        ft_task_spend(in.task, 1);
    }
    return 0;
}

/* What a set of links has to carry at least on one of them. */
static double bound_of(const struct work *w, uint32_t set)
{
    const struct ft_bounds *b = &w->bounds;
    double speed = w->speeds ? b->speed[set] : b->links[set], share, alone;

    if (b->flows[set] == 0 || b->links[set] == 0 || speed <= 0)
        return 0;
    share = b->bps[set] / speed;
    /* Which of them the largest flow takes is the plan's choice. */
    alone = b->most_bps[set] / (w->speeds ? b->fastest[set] : 1);
    return share > alone ? share : alone;
}

/* Of equal flows the bound of each leaf; `more` above it where that does not do. */
static void limit_equal(struct work *w, uint32_t more)
{
    const struct ft_topology *t = w->in->topology;

    for (uint32_t i = 0; i < ft_links_of(t); i++) {
        uint32_t set = w->bounds.set[i];

        w->limit[i] = set == FT_NONE ? w->in->count : ft_bound_flows(&w->bounds, set) + more;
    }
}

static void limit_share(struct work *w, double share)
{
    for (uint32_t i = 0; i < ft_links_of(w->in->topology); i++)
        w->limit[i] = share * speed_of(w, i);
}

static void report(const struct work *w, uint32_t done)
{
    if (w->in->progress && (done % PROGRESS_STEP == 0 || done == w->in->count))
        w->in->progress(w->in->arg, done, w->in->count);
}

/* A search for flow to go within its bounds, whose looks count as work. */
static bool search(struct work *w, uint32_t flow, uint32_t looks)
{
    uint64_t before = ft_placement_looked(w->placement);
    bool found = ft_placement_within(w->placement, flow, looks);

    ft_task_spend(w->in->task, 1 + (ft_placement_looked(w->placement) - before));
    return found;
}

static uint32_t looks_left(const struct work *w)
{
    return ft_placement_looked(w->placement) < LOOKS_ALL ? LOOKS_MAX : 1;
}

/* Of equal flows: the ports of each NIC that has several take its flows evenly, or any number. */
static int limit_nics(struct work *w, bool evenly)
{
    const struct ft_topology *t = w->in->topology;
    uint32_t ports = ft_topology_ports(t), nics = ft_topology_nics(t);
    uint32_t *sent = calloc((size_t)nics + 1, sizeof(*sent));
    uint32_t *received = calloc((size_t)nics + 1, sizeof(*received));
    int rc = sent && received ? 0 : -ENOMEM;

    for (uint32_t i = 0; rc == 0 && i < w->in->count; i++) {
        sent[w->in->demands[i].src_nic]++;
        received[w->in->demands[i].dst_nic]++;
    }
    for (uint32_t i = 0; rc == 0 && i < nics; i++) {
        const struct ft_nic *n = ft_topology_nic(t, i);
        uint32_t alive = 0;

        for (uint32_t k = 0; k < n->attach_count; k++)
            alive += !w->in->dead || !w->in->dead[n->attach[k]];
        for (uint32_t k = 0; alive > 1 && k < n->attach_count; k++) {
            w->limit[n->attach[k]] = evenly ? (received[i] + alive - 1) / alive : w->in->count;
            w->limit[ports + n->attach[k]] = evenly ? (sent[i] + alive - 1) / alive : w->in->count;
        }
    }
    free(received);
    free(sent);
    return rc;
}

/* Flows without a path that have one within the bounds and evenly over the ports of their NICs: a
 * flow does not leave a plane because one of its links is missing. */
static int assign_evenly(struct work *w)
{
    int rc = limit_nics(w, true);

    for (uint32_t i = 0; rc == 0 && i < w->in->count; i++)
        if (w->plan->paths[w->order[i]].hop_count == 0)
            search(w, w->order[i], looks_left(w));
    return rc ? rc : limit_nics(w, false);
}

/* Flows without a path: within the bound where a chain of moves is found, else where least is. */
static int assign_rest(struct work *w)
{
    struct ft_plan *plan = w->plan;
    uint32_t done = 0;

    for (uint32_t i = 0; i < w->in->count; i++) {
        uint32_t flow = w->order[i];

        report(w, ++done);
        if (plan->paths[flow].hop_count > 0)
            continue;
        if (plan->equal && search(w, flow, looks_left(w)))
            continue;
        if (!ft_placement_least(w->placement, flow))
            return -EHOSTUNREACH;
    }
    return 0;
}

/* Takes flows off links that carry more than their limit, where they can go elsewhere within it:
 * off those between switches, or off those of NICs. Returns how many links are left. */
static uint32_t relieve_links(struct work *w, bool between)
{
    const double *load = ft_placement_load(w->placement);
    uint32_t left = 0;

    for (uint32_t link = 0; link < ft_links_of(w->in->topology); link++) {
        uint32_t n;

        if ((w->bounds.set[link] != FT_NONE) != between || load[link] <= w->limit[link] ||
            !ft_link_chosen(w->in->topology, link))
            continue;
        n = ft_placement_list(w->placement, link, w->flows, w->in->count);
        for (uint32_t i = 0; i < n && load[link] > w->limit[link]; i++)
            search(w, w->flows[i], looks_left(w));
        left += load[link] > w->limit[link];
    }
    return left;
}

static void relieve_equal(struct work *w)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        ft_placement_visits(w->placement, 1u << 2 * round);
        if (relieve_links(w, true) == 0)
            return;
    }
}

/* The most flows on a link between switches. */
static double most_flows(const struct work *w)
{
    const double *load = ft_placement_load(w->placement);
    double most = 0;

    for (uint32_t i = 0; i < ft_topology_ports(w->in->topology); i++)
        if (w->bounds.set[i] != FT_NONE && load[i] > most)
            most = load[i];
    return most;
}

/* A leaf that is held to its own bound leaves no room to others that have fewer links, or another
 * plane: as long as every link can have one flow less than the fullest, it is so. */
static void lower_equal(struct work *w)
{
    for (double most = most_flows(w); most > 1; most--) {
        for (uint32_t i = 0; i < ft_links_of(w->in->topology); i++)
            w->limit[i] = w->bounds.set[i] == FT_NONE ? w->in->count : most - 1;
        for (uint32_t round = 0; round < ROUNDS && relieve_links(w, true) > 0; round++)
            ft_placement_visits(w->placement, 1u << 2 * (round + 1));
        if (most_flows(w) >= most)
            return;
    }
}

/* Whatever the search for links has cost the ports of NICs: as evenly as links between switches
 * allow, of which none gets more than the fullest has, nor more than its share if it has not. */
static int relieve_nics(struct work *w)
{
    const double *load = ft_placement_load(w->placement);
    double most = most_flows(w);
    int rc;

    for (uint32_t i = 0; i < ft_links_of(w->in->topology); i++) {
        uint32_t set = w->bounds.set[i];

        w->limit[i] = set == FT_NONE ? w->in->count
                                     : fmin(most, fmax(load[i], ft_bound_flows(&w->bounds, set)));
    }
    rc = limit_nics(w, true);
    ft_placement_visits(w->placement, 1);
    for (uint32_t round = 0; rc == 0 && round < ROUNDS && relieve_links(w, false) > 0; round++)
        ft_placement_visits(w->placement, 1u << 2 * (round + 1));
    return rc;
}

static uint32_t fullest(const struct work *w, double *share)
{
    const double *load = ft_placement_load(w->placement);
    uint32_t worst = FT_NONE;

    *share = 0;
    for (uint32_t i = 0; i < ft_links_of(w->in->topology); i++) {
        double speed = speed_of(w, i);

        if (load[i] > *share * speed && speed > 0 && ft_link_chosen(w->in->topology, i)) {
            *share = load[i] / speed;
            worst = i;
        }
    }
    return worst;
}

/* Unequal flows: as long as a flow of the fullest link can go where all stays below it. */
static void relieve_fullest(struct work *w)
{
    uint64_t work = 0;

    while (work < RELIEF_WORK) {
        double share;
        uint32_t link = fullest(w, &share), n;
        bool relieved = false;

        if (link == FT_NONE || share <= w->plan->share_bound * (1 + 1e-9))
            return;
        limit_share(w, share * (1 - 1e-6));
        n = ft_placement_list(w->placement, link, w->flows, w->in->count);
        for (uint32_t i = 0; i < n && !relieved && work < RELIEF_WORK; i++) {
            relieved = search(w, w->flows[i], RELIEF_LOOKS);
            work += RELIEF_LOOKS * 16;
        }
        if (!relieved)
            return;
        work += ft_links_of(w->in->topology);
        ft_task_spend(w->in->task, ft_links_of(w->in->topology) / 256);
    }
}

static int assign_flows(struct work *w)
{
    const struct ft_plan_input *in = w->in;
    int rc;

    w->placement = ft_placement_new(in->topology, in->dead, in->demands, w->weight, in->count,
                                    w->limit, w->plan->paths);
    if (!w->placement)
        return -ENOMEM;
    rc = w->plan->equal ? assign_evenly(w) : 0;
    if (rc == 0)
        rc = assign_rest(w);
    if (rc)
        return rc;
    if (w->plan->equal)
        relieve_equal(w);
    if (in->previous)
        return 0;
    if (!w->plan->equal) {
        relieve_fullest(w);
        return 0;
    }
    lower_equal(w);
    return relieve_nics(w);
}

/* The plan before, as far as it is alive; flows of which nothing is left are lost. */
static int keep_previous(struct work *w)
{
    const struct ft_plan_input *in = w->in;
    struct ft_placement *placement = ft_placement_new(
        in->topology, in->dead, in->demands, w->weight, in->count, w->limit, w->plan->paths);

    if (!placement)
        return -ENOMEM;
    for (uint32_t i = 0; i < in->count; i++) {
        if (in->previous[i].hop_count > 0 && ft_placement_valid(placement, i, &in->previous[i])) {
            w->plan->paths[i] = in->previous[i];
            w->ends[i].in = in->previous[i].hops[0].in;
            w->ends[i].out = in->previous[i].hops[in->previous[i].hop_count - 1].out;
        } else {
            w->plan->lost++;
        }
    }
    ft_placement_free(placement);
    return 0;
}

static int colour_flows(struct work *w)
{
    struct ft_clos *slots = ft_clos_new(w->in->topology, w->in->dead);
    int rc =
        slots ? ft_clos_colour(slots, w->ends, w->order, w->in->count, w->plan->paths) : -ENOMEM;

    ft_clos_free(slots);
    return rc;
}

static void drop_dead(struct work *w)
{
    struct ft_plan_input in = *w->in;

    for (uint32_t i = 0; i < in.count; i++) {
        struct ft_path *path = &w->plan->paths[i];
        bool fine = true;

        for (uint32_t k = 0; k < path->hop_count; k++)
            fine = fine && is_alive(&in, k, &path->hops[k]);
        if (!fine)
            path->hop_count = 0;
        w->plan->coloured += path->hop_count > 0;
    }
}

static void measure(struct work *w)
{
    struct ft_plan *plan = w->plan;
    const struct ft_plan_input *in = w->in;
    const double *load = ft_placement_load(w->placement);

    ft_task_spend(in->task, in->count / 64);
    for (uint32_t i = 0; i < in->count; i++)
        plan->moved += in->previous && !same_path(&plan->paths[i], &in->previous[i]);
    for (uint32_t i = 0; i < ft_topology_ports(in->topology); i++) {
        uint32_t set = w->bounds.set[i], flows;

        if (set == FT_NONE)
            continue;
        flows = ft_placement_list(w->placement, i, w->flows, in->count);
        plan->flows_most = flows > plan->flows_most ? flows : plan->flows_most;
        plan->crowded += flows > ft_bound_flows(&w->bounds, set);
        ft_task_spend(in->task, 1);
    }
    for (uint32_t i = 0; plan->equal && i < ft_links_of(in->topology); i++)
        if (w->bounds.set[i] != FT_NONE && in->count > 0 && speed_of(w, i) > 0 &&
            load[i] * (double)in->demands[0].rate_bps / speed_of(w, i) > plan->share_most)
            plan->share_most = load[i] * (double)in->demands[0].rate_bps / speed_of(w, i);
    if (!plan->equal)
        fullest(w, &plan->share_most);
}

static bool has_choice(const struct work *w, uint32_t flow)
{
    const struct ft_topology *t = w->in->topology;

    return ft_topology_nic(t, w->in->demands[flow].src_nic)->attach_count > 1 ||
           ft_topology_nic(t, w->in->demands[flow].dst_nic)->attach_count > 1;
}

/* The bounds that hold whatever leaves flows are given: of those that have no choice. */
static int find_bounds(struct work *w)
{
    const struct ft_plan_input *in = w->in;
    struct ft_demand *demands = calloc((size_t)in->count + 1, sizeof(*demands));
    struct ft_hop *ends = calloc((size_t)in->count + 1, sizeof(*ends));
    struct ft_bounds all = w->bounds;
    uint32_t count = 0;
    int rc = demands && ends ? 0 : -ENOMEM;

    for (uint32_t i = 0; rc == 0 && i < in->count; i++) {
        if (has_choice(w, i))
            continue;
        demands[count] = in->demands[i];
        ends[count++] = w->ends[i];
    }
    if (rc == 0)
        rc = ft_bounds_init(&w->bounds, in->topology, in->dead, demands, ends, count);
    for (uint32_t set = 0; rc == 0 && set < w->bounds.sets; set++) {
        uint32_t flows = ft_bound_flows(&w->bounds, set);
        double share = bound_of(w, set);

        w->plan->flows_bound = flows > w->plan->flows_bound ? flows : w->plan->flows_bound;
        w->plan->share_bound = share > w->plan->share_bound ? share : w->plan->share_bound;
    }
    if (rc == 0)
        ft_bounds_free(&w->bounds);
    w->bounds = all;
    free(demands);
    free(ends);
    return rc;
}

static int make(struct work *w)
{
    const struct ft_plan_input *in = w->in;
    int rc = rank_flows(w);

    if (rc == 0)
        rc = check_reachable(w);
    if (rc == 0)
        rc = ft_ends_choose(in->topology, in->dead, in->demands, w->order, in->count, w->ends);
    if (rc)
        return rc;
    ft_task_spend(in->task, in->count);
    look_at_speeds(w);
    for (uint32_t i = 0; i < in->count; i++)
        w->weight[i] = w->plan->equal ? 1 : (double)in->demands[i].rate_bps;
    rc = in->previous ? keep_previous(w) : colour_flows(w);
    ft_task_spend(in->task, in->count);
    if (rc == 0 && !in->previous)
        drop_dead(w);
    if (rc == 0)
        rc = ft_bounds_init(&w->bounds, in->topology, in->dead, in->demands, w->ends, in->count);
    if (rc == 0)
        rc = find_bounds(w);
    if (rc)
        return rc;
    if (w->plan->equal)
        limit_equal(w, 0);
    else
        limit_share(w, 1);
    rc = assign_flows(w);
    if (rc == 0)
        measure(w);
    return rc;
}

int ft_plan_make(const struct ft_plan_input *in, struct ft_plan *plan)
{
    size_t count = (size_t)in->count + 1;
    struct work w = {.in = in, .plan = plan};
    int rc = -ENOMEM;

    memset(plan, 0, sizeof(*plan));
    plan->paths = calloc(count, sizeof(*plan->paths));
    w.order = calloc(count, sizeof(*w.order));
    w.ends = calloc(count, sizeof(*w.ends));
    w.weight = calloc(count, sizeof(*w.weight));
    w.flows = calloc(count, sizeof(*w.flows));
    w.limit = calloc((size_t)ft_links_of(in->topology) + 1, sizeof(*w.limit));
    if (plan->paths && w.order && w.ends && w.weight && w.flows && w.limit)
        rc = make(&w);
    plan->cut = w.placement ? ft_placement_cut(w.placement) : 0;
    ft_placement_free(w.placement);
    ft_bounds_free(&w.bounds);
    free(w.order);
    free(w.ends);
    free(w.weight);
    free(w.flows);
    free(w.limit);
    if (rc)
        ft_plan_free(plan);
    return rc;
}

void ft_plan_free(struct ft_plan *plan)
{
    free(plan->paths);
    plan->paths = NULL;
}
