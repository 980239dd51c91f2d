// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/whatif/draw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mix.h"
#include "lib/base/task.h"
#include "lib/sim/plan.h"

/* Paths that a sprayed flow uses at most; where there are more, so many of them, evenly. */
#define SPRAY_MAX 1024
/* Of more paths than this the first are chosen from. */
#define FOUND_MAX 16384

const char *ft_whatif_name(enum ft_whatif_policy policy)
{
    static const char *const names[FT_WHATIF_POLICIES] = {"observed", "ecmp", "learnt", "crc16",
                                                          "crc32",    "xor",  "static", "rail",
                                                          "greedy",   "plan", "spray",  "flowlet"};

    return names[policy];
}

bool ft_whatif_is_hashed(enum ft_whatif_policy policy)
{
    return policy >= FT_WHATIF_LEARNT && policy <= FT_WHATIF_XOR;
}

static bool draws_seeds(enum ft_whatif_policy policy)
{
    return policy == FT_WHATIF_ECMP || policy == FT_WHATIF_FLOWLET || ft_whatif_is_hashed(policy);
}

static void add_to(struct ft_range *r, double value, uint32_t draws)
{
    r->sum += value;
    r->min = draws == 0 || value < r->min ? value : r->min;
    r->max = draws == 0 || value > r->max ? value : r->max;
}

static void add_draw(struct ft_outcome *o, const struct ft_measured *m)
{
    for (uint32_t i = 0; i < FT_LAYERS; i++) {
        add_to(&o->fim[i], m->layers[i].fim, o->draws);
        add_to(&o->layer_most[i], m->layers[i].most, o->draws);
    }
    add_to(&o->most, m->most, o->draws);
    add_to(&o->load, m->hottest_load, o->draws);
    add_to(&o->collisions, m->collisions, o->draws);
    add_to(&o->share, m->slowest_share, o->draws);
    if (o->draws == 0 || m->slowest_share < o->worst.slowest_share)
        o->worst = *m;
}

/* As struct ft_placed, while they are made. */
struct placed {
    struct ft_path *paths;
    uint32_t *first;
    double *part; /* NULL: the paths of a flow have the same */
};

static void placed_free(struct placed *p)
{
    free(p->paths);
    free(p->first);
    free(p->part);
}

static int placed_init(struct placed *p, uint32_t count, uint32_t each)
{
    p->paths = calloc((size_t)count * each + 1, sizeof(*p->paths));
    p->first = calloc((size_t)count + 1, sizeof(*p->first));
    if (!p->paths || !p->first)
        return -ENOMEM;
    for (uint32_t i = 0; i <= count; i++)
        p->first[i] = i * each;
    return 0;
}

static int plan_paths(const struct ft_policy_input *in, struct ft_path *paths)
{
    struct ft_plan_input input = {.topology = in->topology,
                                  .demands = in->demands,
                                  .count = in->count,
                                  .dead = in->dead,
                                  .task = in->task};
    struct ft_plan plan;
    int rc = ft_plan_make(&input, &plan);

    if (rc == 0) {
        memcpy(paths, plan.paths, in->count * sizeof(*paths));
        ft_plan_free(&plan);
    }
    return rc;
}

/* How switches choose in one draw. */
struct hashing {
    const struct ft_whatif *w;
    enum ft_whatif_policy policy;
    uint64_t random;
    bool guessed;
};

static uint32_t choose(void *arg, const struct ft_choice *choice, uint32_t in,
                       const struct ft_tuple *tuple)
{
    struct hashing *h = arg;
    uint32_t link;

    if (h->policy != FT_WHATIF_LEARNT)
        return ft_named_hash((enum ft_named_hash)(h->policy - FT_WHATIF_CRC16), tuple) %
               choice->count;
    link = ft_hashes_choose(h->w->hashes, choice, in, tuple);
    if (link != FT_NONE)
        return link;
    h->guessed = true;
    h->random = ft_mix(h->random);
    return (uint32_t)(h->random % choice->count);
}

static int hash_path(struct hashing *h, uint32_t flow, const struct ft_tuple *tuple, uint32_t from,
                     struct ft_path *path)
{
    const struct ft_policy_input *in = &h->w->in;

    return ft_hashed_path(in->topology, in->dead, tuple, from, in->demands[flow].dst_nic, true,
                          choose, h, path);
}

/* The ports of a NIC that are not down. */
static void list_ports(const struct ft_policy_input *in, uint32_t nic, struct ft_choice *choice)
{
    const struct ft_nic *n = ft_topology_nic(in->topology, nic);
    bool ordered = ft_choice_of_nic(choice, in->topology, nic);
    uint32_t count = 0;

    for (uint32_t i = 0; i < n->attach_count && i < FT_HASH_MEMBERS_MAX; i++) {
        uint32_t port = ordered ? choice->links[i] : n->attach[i];

        if (!in->dead || !in->dead[port])
            choice->links[count++] = port;
    }
    choice->count = count;
}

/* From another port of its NIC, where that by which it was observed leads nowhere any more: bonds
 * choose anew among those that are left. */
static int hash_other(struct hashing *h, uint32_t flow, const struct ft_tuple *tuple,
                      struct ft_path *path)
{
    struct ft_choice choice;
    int rc = -EHOSTUNREACH;

    list_ports(&h->w->in, h->w->in.demands[flow].src_nic, &choice);
    while (rc == -EHOSTUNREACH && choice.count > 0) {
        uint32_t k = choice.count > 1 ? choose(h, &choice, FT_NONE, tuple) : 0;

        rc = hash_path(h, flow, tuple, choice.links[k], path);
        choice.count--;
        for (; k < choice.count; k++)
            choice.links[k] = choice.links[k + 1];
    }
    return rc;
}

/* Where a flow enters the fabric: by the port that it was observed on, but with another source port
 * by that which its host's bond chooses, where this was learnt. */
static uint32_t enter(const struct hashing *h, uint32_t flow, const struct ft_tuple *tuple)
{
    const struct ft_policy_input *in = &h->w->in;
    uint32_t port = h->w->captured->paths[flow].hops[0].in;

    if (h->policy == FT_WHATIF_LEARNT && tuple->sport != h->w->captured->flows[flow].tuple.sport)
        ft_hashes_enter(h->w->hashes, in->topology, in->dead, in->demands[flow].src_nic, tuple,
                        &port);
    return port;
}

/* Flows by their headers, whose source ports are drawn but for the first of all. */
static int assign_hashed(const struct ft_whatif *w, struct ft_outcome *o, uint64_t seed,
                         struct ft_path *paths)
{
    uint32_t guessed = 0;
    int rc = 0;

    for (uint32_t i = 0; i < w->in.count * w->pairs && rc == 0; i++) {
        uint32_t flow = i / w->pairs;
        struct ft_tuple tuple = w->captured->flows[flow].tuple;
        struct hashing h = {w, o->policy, ft_mix(ft_mix(seed) ^ i), false};

        if (seed > 0 || i % w->pairs > 0)
            tuple.sport = (uint16_t)(0xc000 | (h.random & 0x3fff));
        rc = hash_path(&h, flow, &tuple, enter(&h, flow, &tuple), &paths[i]);
        if (rc == -EHOSTUNREACH)
            rc = hash_other(&h, flow, &tuple, &paths[i]);
        guessed += h.guessed;
        ft_task_spend(w->task, 2);
    }
    o->guessed = guessed > o->guessed ? guessed : o->guessed;
    return rc;
}

/* A path for each queue pair of each flow: they are flows of their own to the fabric. */
static int assign(const struct ft_whatif *w, enum ft_whatif_policy policy, uint64_t seed,
                  struct ft_path *paths)
{
    struct ft_policy_input in = w->in;
    struct ft_demand *demands = calloc((size_t)in.count * w->pairs + 1, sizeof(*demands));
    int rc;

    if (!demands)
        return -ENOMEM;
    for (uint32_t i = 0; i < in.count * w->pairs; i++) {
        demands[i] = in.demands[i / w->pairs];
        demands[i].rate_bps /= w->pairs;
    }
    in.demands = demands;
    in.count *= w->pairs;
    if (policy == FT_WHATIF_ECMP)
        rc = ft_policy_ecmp(&in, seed, paths);
    else if (policy == FT_WHATIF_STATIC)
        rc = ft_policy_static(&in, paths);
    else if (policy == FT_WHATIF_RAIL)
        rc = ft_policy_rail(&in, paths);
    else if (policy == FT_WHATIF_GREEDY)
        rc = ft_policy_greedy(&in, paths);
    else
        rc = plan_paths(&in, paths);
    free(demands);
    return rc;
}

/* The paths of one flow after another, with the part that spraying sends over each. */
struct found {
    struct ft_path *paths;
    double *part;
    uint32_t count;
    uint32_t n; /* of these, as many as are to be used */
};

static void found_free(struct found *f)
{
    free(f->paths);
    free(f->part);
}

static int found_init(struct found *f)
{
    *f = (struct found){.paths = calloc(FOUND_MAX, sizeof(*f->paths)),
                        .part = calloc(FOUND_MAX, sizeof(*f->part))};
    return f->paths && f->part ? 0 : -ENOMEM;
}

static int find_paths(struct found *f, const struct ft_whatif *w, uint32_t flow)
{
    f->count = ft_policy_paths(&w->in, flow, f->paths, FOUND_MAX);
    f->n = w->spray && w->spray < f->count ? w->spray : f->count;
    ft_task_spend(w->task, 1 + f->count / 2);
    return f->count ? ft_policy_parts(f->paths, f->count, f->part) : -EHOSTUNREACH;
}

/* The path at a position between 0 and 1, of which each takes its part. */
static const struct ft_path *path_at(const struct found *f, double position)
{
    uint32_t i = 0;

    while (i + 1 < f->count && position >= f->part[i])
        position -= f->part[i++];
    return &f->paths[i];
}

/* That at the i-th of n positions that divide them evenly, and not the same of every flow. */
static const struct ft_path *path_of(const struct found *f, uint32_t n, uint32_t flow, uint32_t i)
{
    return path_at(f, ((flow + (uint64_t)i * f->count / n) % f->count + 0.5) / f->count);
}

static int grow_placed(struct placed *p, uint32_t count)
{
    void *paths = realloc(p->paths, count * sizeof(*p->paths));
    void *part = paths ? realloc(p->part, count * sizeof(*p->part)) : NULL;

    p->paths = paths ? paths : p->paths;
    p->part = part ? part : p->part;
    return paths && part ? 0 : -ENOMEM;
}

/* All paths of each flow, or so many of them. */
static int spray(const struct ft_whatif *w, struct placed *p)
{
    struct found f;
    int rc = found_init(&f);

    rc = rc ? rc : placed_init(p, w->in.count, 0);
    for (uint32_t i = 0; rc == 0 && i < w->in.count; i++) {
        uint32_t at = p->first[i], n;
        bool all;

        rc = find_paths(&f, w, i);
        n = f.n < SPRAY_MAX ? f.n : SPRAY_MAX;
        all = n == f.count;
        rc = rc ? rc : grow_placed(p, at + n);
        for (uint32_t k = 0; rc == 0 && k < n; k++) {
            p->paths[at + k] = all ? f.paths[k] : *path_of(&f, n, i, k);
            p->part[at + k] = all ? f.part[k] : 1.0 / n;
        }
        p->first[i + 1] = at + n;
    }
    found_free(&f);
    return rc;
}

/* Each flowlet of each flow one of its paths, or of so many of them, at random; a path counts as
 * often as it was taken. */
static int cut(const struct ft_whatif *w, struct ft_outcome *o, uint64_t seed, struct placed *p)
{
    struct found f;
    int rc = found_init(&f);

    rc = rc ? rc : placed_init(p, w->in.count, w->flowlets);
    for (uint32_t i = 0; rc == 0 && i < w->in.count; i++) {
        uint64_t random = ft_mix(ft_mix(seed) ^ i);

        rc = find_paths(&f, w, i);
        for (uint32_t k = 0; rc == 0 && k < w->flowlets; k++) {
            double position;

            random = ft_mix(random);
            position = (double)(random >> 32) / 4294967296.0 + (double)(i % f.count) / f.count;
            p->paths[p->first[i] + k] =
                f.n < f.count ? *path_of(&f, f.n, i, (uint32_t)((random >> 32) * f.n >> 32))
                              : *path_at(&f, position < 1 ? position : position - 1);
        }
        ft_task_spend(w->task, w->flowlets / 4);
        f.n = f.n < w->flowlets ? f.n : w->flowlets;
        o->paths = f.n > o->paths ? f.n : o->paths;
    }
    found_free(&f);
    return rc;
}

static int assign_all(const struct ft_whatif *w, struct ft_outcome *o, uint64_t seed,
                      struct placed *p)
{
    enum ft_whatif_policy policy = o->policy;
    int rc;

    if (policy == FT_WHATIF_SPRAY)
        return spray(w, p);
    if (policy == FT_WHATIF_FLOWLET)
        return cut(w, o, seed, p);
    rc = placed_init(p, w->in.count, policy == FT_WHATIF_OBSERVED ? 1 : w->pairs);
    if (rc == 0 && policy == FT_WHATIF_OBSERVED)
        memcpy(p->paths, w->captured->paths, w->in.count * sizeof(*p->paths));
    else if (rc == 0 && ft_whatif_is_hashed(policy))
        rc = assign_hashed(w, o, seed, p->paths);
    else if (rc == 0)
        rc = assign(w, policy, seed, p->paths);
    return rc;
}

static bool has_moves(const struct ft_whatif *w, enum ft_whatif_policy policy)
{
    return w->captured && w->pairs == 1 && !w->rebuilt && policy != FT_WHATIF_SPRAY &&
           policy != FT_WHATIF_FLOWLET;
}

static uint32_t count_moves(const struct ft_whatif *w, const struct ft_path *paths,
                            struct ft_outcome *o)
{
    uint32_t moves = 0;

    for (uint32_t i = 0; i < w->in.count; i++) {
        const struct ft_path *was = &w->captured->paths[i], *is = &paths[i];

        if (was->hop_count == is->hop_count &&
            memcmp(was->hops, is->hops, was->hop_count * sizeof(was->hops[0])) == 0)
            continue;
        moves++;
        if (o->moved && o->moved_count < FT_WHATIF_MOVED)
            o->moved[o->moved_count++] = (struct ft_whatif_moved){i, *is};
    }
    return moves;
}

static int draw(const struct ft_whatif *w, const struct ft_policy_input *in, uint64_t seed,
                struct ft_outcome *o)
{
    struct placed p = {0};
    struct ft_placed placed;
    struct ft_measured m;
    double step_s, *rate_bps = NULL;
    double *times_s = w->times ? calloc(w->times->count + 1, sizeof(*times_s)) : NULL;
    int rc = w->times && !times_s ? -ENOMEM : assign_all(w, o, seed, &p);

    placed = (struct ft_placed){p.paths, p.first, p.part, o->policy == FT_WHATIF_SPRAY};
    for (uint32_t i = 0; rc == 0 && o->policy != FT_WHATIF_FLOWLET && i < in->count; i++)
        if (p.first[i + 1] - p.first[i] > o->paths)
            o->paths = p.first[i + 1] - p.first[i];
    if (rc == 0 && w->times) {
        rate_bps = calloc((size_t)p.first[in->count] + 1, sizeof(*rate_bps));
        rc = rate_bps ? 0 : -ENOMEM;
    }
    if (rc == 0)
        rc = ft_measure(in, &placed, rate_bps, &m);
    if (rc == 0 && w->times)
        rc = ft_times_play(w->times, in, &placed, rate_bps, times_s, &step_s);
    if (rc == 0) {
        add_draw(o, &m);
        if (o->has_moves)
            add_to(&o->moves, count_moves(w, p.paths, o), o->draws);
        for (uint32_t i = 0; w->times && i < w->times->count; i++)
            add_to(&o->times_s[i], times_s[i], o->draws);
        if (w->times)
            add_to(&o->step_s, step_s, o->draws);
        o->draws++;
    }
    free(rate_bps);
    free(times_s);
    placed_free(&p);
    return rc;
}

int ft_outcome_try(const struct ft_whatif *w, enum ft_whatif_policy policy, struct ft_outcome *o)
{
    const struct ft_policy_input *in = policy == FT_WHATIF_OBSERVED ? &w->as_is : &w->in;
    int rc = 0;

    memset(o, 0, sizeof(*o));
    o->policy = policy;
    o->has_moves = has_moves(w, policy);
    if (w->times) {
        o->times_s = calloc(w->times->count + 1, sizeof(*o->times_s));
        rc = o->times_s ? 0 : -ENOMEM;
    }
    if (o->has_moves && policy == FT_WHATIF_PLAN) {
        o->moved = calloc(FT_WHATIF_MOVED, sizeof(*o->moved));
        rc = o->moved ? rc : -ENOMEM;
    }
    for (uint32_t i = 0; i < (draws_seeds(policy) ? w->draws : 1) && rc == 0; i++) {
        if (w->progress)
            w->progress(policy, i + 1);
        rc = w->vain && *w->vain ? -ECANCELED : draw(w, in, i, o);
    }
    if (w->progress)
        w->progress(policy, 0);
    return rc;
}

void ft_outcome_free(struct ft_outcome *o)
{
    free(o->times_s);
    free(o->moved);
}
