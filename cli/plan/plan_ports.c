// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/plan/plan_ports.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/sim/policies.h"

/* Source ports of RoCEv2 that the kernel and NICs use: 0xc000 and 14 bits. */
#define PORTS     0x4000u
#define PORT_BASE 0xc000u
/* Ports that are looked at for a flow: enough for 128 paths with 99 % (coupon collector). */
#define TRIES_MAX 4096u
/* Steps through all ports, by an odd number, so that each comes by once. */
#define PORT_STEP 5923u
#define PATHS_MAX 256u
/* Likewise where switches are asked: enough for every path with 99 %; and how many questions about
 * a flow are put at once. */
#define ASKED_TRIES(paths) (12 * (paths) + 8)
#define ASKED_AHEAD(paths) (2 * (paths))
#define NIC_TROUBLES       3 /* reasons of ft_plan_nic_trouble() */

/* Each once. */
void ft_plan_text(struct ft_plan_texts *t, const char *format, ...)
{
    char *to = t->text[t->count < FT_PLAN_REASONS_MAX ? t->count : FT_PLAN_REASONS_MAX - 1];
    va_list args;

    if (t->count == FT_PLAN_REASONS_MAX)
        return;
    va_start(args, format);
    vsnprintf(to, FT_PLAN_REASON, format, args);
    va_end(args);
    for (uint32_t i = 0; i < t->count; i++)
        if (strcmp(t->text[i], to) == 0)
            return;
    t->count++;
}

bool ft_plan_is_of_job(const struct ft_plan_job *p, const Fabrictrace__Path *record)
{
    return record->job && strcmp(record->job, p->job) == 0;
}

bool ft_plan_hash_takes_sport(const Fabrictrace__Hash *r)
{
    for (size_t i = 0; i < r->n_inputs; i++)
        if (strcmp(r->inputs[i], "sport") == 0)
            return true;
    return false;
}

const char *ft_plan_nic_trouble(const struct ft_plan_job *p, uint32_t flow)
{
    const struct ft_topology *t = p->captured.inputs.topology;
    uint32_t nic = p->captured.inputs.flows.demands[flow].src_nic;
    const struct ft_hashes_set *s;

    if (ft_topology_nic(t, nic)->attach_count < 2)
        return NULL;
    s = ft_hashes_of_nic(&p->hashes, t, nic);
    if (!s || s->record->model == FABRICTRACE__HASH_MODEL__HASH_MODEL_UNKNOWN)
        return "too few flows were seen";
    if (s->model.kind != FT_HASH_LINEAR)
        return "the choice does not follow from addresses and ports, as where NICs bind queue "
               "pairs to ports";
    if (!s->record->has_accuracy || s->record->accuracy < FT_PLAN_ACCURACY_LEAST)
        return "the hash is predicted rightly for too few flows";
    return NULL;
}

bool ft_plan_same(const struct ft_path *a, const struct ft_path *b)
{
    return a->hop_count == b->hop_count &&
           memcmp(a->hops, b->hops, a->hop_count * sizeof(a->hops[0])) == 0;
}

/* By what a switch says where it is asked, else by what was learnt of it. */
static uint32_t choose(void *arg, const struct ft_choice *choice, uint32_t in,
                       const struct ft_tuple *tuple)
{
    const struct ft_plan_job *p = arg;

    if (ft_asked_has(p->asked, choice->at->name))
        return ft_asked_choose(p->asked, choice, in, tuple);
    return ft_hashes_choose((void *)(uintptr_t)&p->hashes, choice, in, tuple);
}

static bool is_dual(const struct ft_plan_job *p, uint32_t flow)
{
    const struct ft_inputs *in = &p->captured.inputs;

    return ft_topology_nic(in->topology, in->flows.demands[flow].src_nic)->attach_count > 1;
}

/* By which of its ports a NIC with several sends is the choice of its host, by a hash of its own;
 * where that is not known the flow is known to be where it is. */
static int find_entry(const struct ft_plan_job *p, uint32_t flow, const bool *dead,
                      const struct ft_tuple *tuple, uint32_t *port)
{
    const struct ft_captured *c = &p->captured;

    *port = c->paths[flow].hops[0].in;
    if (!is_dual(p, flow))
        return 0;
    if (ft_plan_nic_trouble(p, flow))
        return tuple->sport == c->flows[flow].tuple.sport ? 0 : -ENODATA;
    return ft_hashes_enter(&p->hashes, c->inputs.topology, dead,
                           c->inputs.flows.demands[flow].src_nic, tuple, port);
}

int ft_plan_predict(const struct ft_plan_job *p, uint32_t flow, const bool *dead, uint16_t sport,
                    struct ft_path *path)
{
    const struct ft_captured *c = &p->captured;
    struct ft_tuple tuple = c->flows[flow].tuple;
    uint32_t from;
    int rc;

    tuple.sport = sport;
    rc = find_entry(p, flow, dead, &tuple, &from);
    if (rc)
        return rc;
    return ft_hashed_path(c->inputs.topology, dead, &tuple, from,
                          c->inputs.flows.demands[flow].dst_nic, false, choose,
                          (void *)(uintptr_t)p, path);
}

/* The paths that some source port gives the flow, until so many ports lead nobody knows where. cut:
 * whether there are more than are looked for. found: of PATHS_MAX and one. */
static uint32_t find_paths(const struct ft_plan_job *p, uint32_t flow, bool asking,
                           struct ft_path *found, bool *cut)
{
    struct ft_policy_input in = {.topology = p->captured.inputs.topology,
                                 .demands = p->captured.inputs.flows.demands,
                                 .count = p->captured.inputs.flows.count};
    uint32_t most = ft_policy_paths(&in, flow, found, PATHS_MAX), all, count = 0, unknown = 0;
    uint32_t tries = p->asked && ASKED_TRIES(most) < TRIES_MAX ? ASKED_TRIES(most) : TRIES_MAX;

    in.dead = p->dead;
    all = ft_policy_paths(&in, flow, found, PATHS_MAX + 1);
    *cut = all > PATHS_MAX;
    all = *cut ? PATHS_MAX : all;
    for (uint32_t i = 0; i < tries && count < all; i++) {
        uint16_t sport = (uint16_t)(PORT_BASE + (flow + i * PORT_STEP) % PORTS);
        struct ft_path path;
        int rc = ft_plan_predict(p, flow, p->dead, sport, &path);
        uint32_t k = 0;

        unknown += rc == -ENODATA;
        if (asking && unknown > ASKED_AHEAD(all))
            break;
        if (rc)
            continue;
        while (k < count && !ft_plan_same(&found[k], &path))
            k++;
        if (k == count)
            found[count++] = path;
    }
    return count;
}

/* A flow of the job whose queue pair is known, and of which it is known by which port a source port
 * enters the fabric. */
static bool is_known(const struct ft_plan_job *p, uint32_t flow)
{
    const Fabrictrace__Path *r = p->captured.flows[flow].record;

    return ft_plan_is_of_job(p, r) && r->qp && r->qp->has_local && !ft_plan_nic_trouble(p, flow);
}

/* Why flows of NICs with several ports stay: a sentence for each of the few reasons. */
static void report_dual(struct ft_plan_job *p)
{
    const struct ft_captured *c = &p->captured;
    const char *reasons[NIC_TROUBLES];
    uint32_t counts[NIC_TROUBLES] = {0}, known = 0;

    for (uint32_t i = 0; i < c->inputs.flows.count; i++) {
        const char *why =
            ft_plan_is_of_job(p, c->flows[i].record) ? ft_plan_nic_trouble(p, i) : NULL;
        uint32_t k = 0;

        while (k < known && reasons[k] != why)
            k++;
        if (!why || k == NIC_TROUBLES)
            continue;
        if (k == known)
            reasons[known++] = why;
        counts[k]++;
    }
    for (uint32_t k = 0; k < known; k++)
        ft_plan_text(&p->unknown,
                     "%u flows of the job leave by NICs with several ports: by which of them a "
                     "source port leaves is not known (%s), and they stay",
                     counts[k], reasons[k]);
}

int ft_plan_ask_ports(struct ft_plan_job *p)
{
    struct ft_path *found = calloc(PATHS_MAX + 1, sizeof(*found));
    bool stopped = false, cut;

    if (!found)
        return -ENOMEM;
    do {
        for (uint32_t i = 0; i < p->captured.inputs.flows.count; i++)
            if (is_known(p, i))
                find_paths(p, i, true, found, &cut);
    } while (ft_asked_run(p->asked, &stopped) && !stopped);
    free(found);
    return stopped ? -EINTR : 0;
}

int ft_plan_candidates(struct ft_plan_job *p)
{
    const struct ft_captured *c = &p->captured;
    struct ft_path *found = calloc(PATHS_MAX + 1, sizeof(*found));
    uint32_t nameless = 0, blind = 0, wide = 0;
    int rc = found ? 0 : -ENOMEM;

    p->first = calloc((size_t)c->inputs.flows.count + 2, sizeof(*p->first));
    if (!p->first)
        rc = -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < c->inputs.flows.count; i++) {
        bool own = ft_plan_is_of_job(p, c->flows[i].record), known = is_known(p, i);
        bool cut = false;
        uint32_t n = known && p->refused.count == 0 ? find_paths(p, i, false, found, &cut) : 0;
        void *more = realloc(p->candidates, ((size_t)p->first[i] + n + 1) * sizeof(*found));

        p->first[i + 1] = p->first[i] + n;
        nameless += own && !known && !ft_plan_nic_trouble(p, i);
        p->movable += n > 0;
        wide += cut;
        blind += known && n == 0 && p->refused.count == 0;
        if (!more) {
            rc = -ENOMEM;
            break;
        }
        p->candidates = more;
        memcpy(p->candidates + p->first[i], found, n * sizeof(*found));
    }
    if (nameless)
        ft_plan_text(&p->unknown, "%u flows of the job have no known queue pair, and stay",
                     nameless);
    report_dual(p);
    if (wide)
        ft_plan_text(&p->unknown, "%u flows have more than %u paths: so many alone were looked for",
                     wide, PATHS_MAX);
    if (blind && p->dead)
        ft_plan_text(
            &p->refused,
            "how switches choose among the links that are left was not seen: for %u flows of "
            "the job no port is known to lead anywhere",
            blind);
    else if (blind)
        ft_plan_text(&p->unknown, "for %u flows of the job no port is known to lead anywhere",
                     blind);
    if (p->refused.count && p->first)
        memset(p->first, 0, ((size_t)c->inputs.flows.count + 2) * sizeof(*p->first));
    free(found);
    return rc;
}

/* Whether another flow between the same NICs has that port, or is to have it. */
static bool is_taken(const struct ft_plan_job *p, uint32_t flow, uint16_t sport)
{
    const struct ft_tuple *own = &p->captured.flows[flow].tuple;

    for (uint32_t i = 0; i < p->captured.inputs.flows.count; i++) {
        const struct ft_tuple *other = &p->captured.flows[i].tuple;

        if (i != flow && ft_ip_equal(&own->src, &other->src) &&
            ft_ip_equal(&own->dst, &other->dst) && (other->sport == sport || p->sport[i] == sport))
            return true;
    }
    return false;
}

/* One that gives a flow this path, and that no other flow has; 0: there is none. */
static uint16_t find_port(const struct ft_plan_job *p, uint32_t flow, const struct ft_path *to)
{
    for (uint32_t k = 0; k < PORTS; k++) {
        uint16_t sport = (uint16_t)(PORT_BASE + (flow + k * PORT_STEP) % PORTS);
        struct ft_path path;

        if (ft_plan_predict(p, flow, p->dead, sport, &path) == 0 && ft_plan_same(&path, to) &&
            !is_taken(p, flow, sport))
            return sport;
    }
    return 0;
}

/* The flow can have that candidate no more. */
static void drop_candidate(struct ft_plan_job *p, uint32_t flow, uint32_t candidate)
{
    uint32_t count = p->captured.inputs.flows.count;

    memmove(p->candidates + candidate, p->candidates + candidate + 1,
            (p->first[count] - candidate - 1) * sizeof(*p->candidates));
    for (uint32_t i = flow + 1; i <= count; i++)
        p->first[i]--;
}

int ft_plan_ports(struct ft_plan_job *p, uint32_t *dropped)
{
    uint32_t count = p->captured.inputs.flows.count;

    free(p->sport);
    free(p->paths);
    p->sport = calloc((size_t)count + 1, sizeof(*p->sport));
    p->paths = calloc((size_t)count + 1, sizeof(*p->paths));
    if (!p->sport || !p->paths)
        return -ENOMEM;
    *dropped = 0;
    memcpy(p->paths, p->captured.paths, count * sizeof(*p->paths));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t choice = p->result.choice[i];

        if (choice == FT_NONE)
            continue;
        choice -= *dropped;
        p->sport[i] = find_port(p, i, &p->candidates[choice]);
        if (p->sport[i]) {
            p->paths[i] = p->candidates[choice];
            continue;
        }
        drop_candidate(p, i, choice);
        ++*dropped;
    }
    return 0;
}
