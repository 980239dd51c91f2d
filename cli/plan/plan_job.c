// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/plan/plan_job.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/fetch/fetch.h"
#include "cli/plan/plan_files.h"
#include "lib/sim/loads.h"

/* Source ports of RoCEv2 that the kernel and NICs use: 0xc000 and 14 bits. */
#define PORTS     0x4000u
#define PORT_BASE 0xc000u
/* Ports that are looked at for a flow: enough for 128 paths with 99 % (coupon collector). */
#define TRIES_MAX 4096u
/* Steps through all ports, by an odd number, so that each comes by once. */
#define PORT_STEP 5923u
#define PATHS_MAX 256u
/* A hash that errs more often is not planned with. */
#define ACCURACY_LEAST 0.99

static void add_text(struct ft_plan_texts *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Each once. */
static void add_text(struct ft_plan_texts *t, const char *format, ...)
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

static bool is_of_job(const struct ft_plan_job *p, const Fabrictrace__Path *record)
{
    return record->job && strcmp(record->job, p->job) == 0;
}

static bool takes_sport(const Fabrictrace__Hash *r)
{
    for (size_t i = 0; i < r->n_inputs; i++)
        if (strcmp(r->inputs[i], "sport") == 0)
            return true;
    return false;
}

/* One choice of a switch. */
static void judge_choice(struct ft_plan_job *p, const struct ft_choice *choice)
{
    const struct ft_hashes_set *s = ft_hashes_find(&p->hashes, choice);
    const char *name = choice->at->name;

    if (!s || s->record->model == FABRICTRACE__HASH_MODEL__HASH_MODEL_UNKNOWN)
        add_text(&p->refused,
                 "switch '%s': too few flows were seen to know how it chooses among its %u links",
                 name, choice->count);
    else if (s->model.kind != FT_HASH_LINEAR)
        add_text(&p->refused,
                 "switch '%s': its choice does not follow from addresses and ports alone: a keyed "
                 "hash, the destination queue pair or TTL in the hash, or adaptive routing",
                 name);
    else if (!takes_sport(s->record))
        add_text(&p->refused, "switch '%s': its hash does not take the source port", name);
    else if (!s->record->has_accuracy || s->record->accuracy < ACCURACY_LEAST)
        add_text(&p->refused,
                 "switch '%s': its hash is predicted rightly for %.1f %% of flows only", name,
                 100 * (s->record->has_accuracy ? s->record->accuracy : 0));
    else if (s->record->accuracy < p->accuracy)
        p->accuracy = s->record->accuracy;
}

static void judge_switches(struct ft_plan_job *p, uint32_t flow)
{
    const struct ft_topology *t = p->captured.inputs.topology;
    const struct ft_path *path = &p->captured.paths[flow];

    for (uint32_t i = 0; i + 1 < path->hop_count; i++) {
        uint32_t at = ft_topology_port(t, path->hops[i].in)->switch_id;
        uint32_t dst = p->captured.inputs.flows.demands[flow].dst_nic;
        uint32_t distance = ft_choice_distance(t, at, dst);
        struct ft_choice choice;

        if (distance != FT_NONE && distance > 0 &&
            ft_choice_find(&choice, t, at, dst, distance - 1) && choice.count > 1)
            judge_choice(p, &choice);
    }
}

static bool is_same(const struct ft_path *a, const struct ft_path *b)
{
    return a->hop_count == b->hop_count &&
           memcmp(a->hops, b->hops, a->hop_count * sizeof(a->hops[0])) == 0;
}

static int predict(const struct ft_plan_job *p, uint32_t flow, const bool *dead, uint16_t sport,
                   struct ft_path *path)
{
    const struct ft_captured *c = &p->captured;
    struct ft_tuple tuple = c->flows[flow].tuple;

    tuple.sport = sport;
    return ft_hashed_path(c->inputs.topology, dead, &tuple, c->paths[flow].hops[0].in,
                          c->inputs.flows.demands[flow].dst_nic, ft_hashes_choose,
                          (void *)(uintptr_t)&p->hashes, path);
}

/* Whether the job's flows are where the hashes say that they are. */
static void verify(struct ft_plan_job *p)
{
    uint32_t predicted = 0, wrong = 0;

    for (uint32_t i = 0; i < p->captured.inputs.flows.count; i++) {
        struct ft_path path;

        if (!is_of_job(p, p->captured.flows[i].record) ||
            predict(p, i, NULL, p->captured.flows[i].tuple.sport, &path))
            continue;
        predicted++;
        wrong += !is_same(&path, &p->captured.paths[i]);
    }
    if (wrong > predicted * (1 - ACCURACY_LEAST))
        add_text(&p->refused, "of %u flows of the job whose path is predicted %u take another one",
                 predicted, wrong);
}

/* Everything that speaks against a plan. */
static void judge(struct ft_plan_job *p)
{
    uint32_t sprayed = 0, tunnelled = 0;

    for (uint32_t i = 0; i < p->captured.record_count; i++) {
        const Fabrictrace__Path *r = p->captured.records[i]->path;

        if (p->captured.records[i]->kind_case != FABRICTRACE__RECORD__KIND_PATH || !is_of_job(p, r))
            continue;
        sprayed += r->has_state && r->state == FABRICTRACE__STATE__STATE_MULTIPATH;
        tunnelled += r->outer != NULL;
    }
    if (sprayed)
        add_text(&p->refused,
                 "%u flows take several paths at once: packets are sprayed, or "
                 "switches route adaptively",
                 sprayed);
    if (tunnelled)
        add_text(&p->refused, "%u flows run in tunnels, whose outer header is what switches hash",
                 tunnelled);
    for (uint32_t i = 0; i < p->captured.inputs.flows.count; i++) {
        if (!is_of_job(p, p->captured.flows[i].record))
            continue;
        p->flows++;
        judge_switches(p, i);
    }
    if (p->refused.count == 0)
        verify(p);
}

/* The paths that some source port gives the flow. */
static uint32_t find_paths(const struct ft_plan_job *p, uint32_t flow, struct ft_path *found)
{
    struct ft_policy_input in = {p->captured.inputs.topology, p->captured.inputs.flows.demands,
                                 p->captured.inputs.flows.count, p->dead};
    uint32_t all = ft_policy_paths(&in, flow, found, PATHS_MAX), count = 0;

    for (uint32_t i = 0; i < TRIES_MAX && count < all; i++) {
        uint16_t sport = (uint16_t)(PORT_BASE + (flow + i * PORT_STEP) % PORTS);
        struct ft_path path;
        uint32_t k = 0;

        if (predict(p, flow, p->dead, sport, &path))
            continue;
        while (k < count && !is_same(&found[k], &path))
            k++;
        if (k == count)
            found[count++] = path;
    }
    return count;
}

static int find_candidates(struct ft_plan_job *p)
{
    const struct ft_captured *c = &p->captured;
    struct ft_path *found = calloc(PATHS_MAX, sizeof(*found));
    uint32_t nameless = 0, blind = 0;
    int rc = found ? 0 : -ENOMEM;

    p->first = calloc((size_t)c->inputs.flows.count + 2, sizeof(*p->first));
    if (!p->first)
        rc = -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < c->inputs.flows.count; i++) {
        const Fabrictrace__Path *r = c->flows[i].record;
        bool own = is_of_job(p, r), known = r->qp && r->qp->has_local;
        uint32_t n = own && known && p->refused.count == 0 ? find_paths(p, i, found) : 0;
        void *more = realloc(p->candidates, ((size_t)p->first[i] + n + 1) * sizeof(*found));

        p->first[i + 1] = p->first[i] + n;
        nameless += own && !known;
        p->movable += n > 0;
        blind += own && known && n == 0 && p->refused.count == 0;
        if (!more) {
            rc = -ENOMEM;
            break;
        }
        p->candidates = more;
        memcpy(p->candidates + p->first[i], found, n * sizeof(*found));
    }
    if (nameless)
        add_text(&p->unknown, "%u flows of the job have no known queue pair, and stay", nameless);
    if (blind && p->dead)
        add_text(&p->refused,
                 "how switches choose among the links that are left was not seen: for %u flows of "
                 "the job no port is known to lead anywhere",
                 blind);
    else if (blind)
        add_text(&p->unknown, "for %u flows of the job no port is known to lead anywhere", blind);
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

/* A source port for each flow that moves; one that finds none stays. */
static int find_ports(struct ft_plan_job *p)
{
    uint32_t count = p->captured.inputs.flows.count;

    p->sport = calloc((size_t)count + 1, sizeof(*p->sport));
    p->paths = calloc((size_t)count + 1, sizeof(*p->paths));
    if (!p->sport || !p->paths)
        return -ENOMEM;
    memcpy(p->paths, p->captured.paths, count * sizeof(*p->paths));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t choice = p->result.choice[i];
        struct ft_path path;

        if (choice == FT_NONE)
            continue;
        for (uint32_t k = 0; k < PORTS && p->sport[i] == 0; k++) {
            uint16_t sport = (uint16_t)(PORT_BASE + (i + k * PORT_STEP) % PORTS);

            if (predict(p, i, p->dead, sport, &path) == 0 &&
                is_same(&path, &p->candidates[choice]) && !is_taken(p, i, sport))
                p->sport[i] = sport;
        }
        if (p->sport[i])
            p->paths[i] = p->candidates[choice];
        else
            p->result.choice[i] = FT_NONE;
    }
    return 0;
}

static int measure(const struct ft_plan_job *p, const struct ft_path *paths,
                   struct ft_plan_state *state)
{
    const struct ft_captured *c = &p->captured;
    struct ft_policy_input in = {c->inputs.topology, c->inputs.flows.demands, c->inputs.flows.count,
                                 NULL};
    uint32_t *first = calloc((size_t)in.count + 1, sizeof(*first));
    double *times_s = calloc((size_t)p->times.count + 1, sizeof(*times_s));
    int rc = first && times_s ? 0 : -ENOMEM;

    for (uint32_t i = 0; rc == 0 && i <= in.count; i++)
        first[i] = i;
    if (rc == 0)
        rc = ft_measure(&in, paths, first, &state->measured);
    state->step_s = -1;
    if (rc == 0 && p->times.count)
        rc = ft_times_play(&p->times, &in, paths, first, times_s, &state->step_s);
    free(first);
    free(times_s);
    return rc;
}

static void report_unknown(struct ft_plan_job *p)
{
    const struct ft_captured *c = &p->captured;
    uint32_t without = 0;

    for (uint32_t i = 0; i < p->times.count; i++)
        without += p->times.items[i].edges_without;
    if (c->left_out[FT_LEFT_UNRESOLVED])
        add_text(&p->unknown, "%u flows have no known path: what they carry is not in the figures",
                 c->left_out[FT_LEFT_UNRESOLVED]);
    if (c->left_out[FT_LEFT_HOST])
        add_text(&p->unknown, "%u flows are of hosts outside the topology, and not in the figures",
                 c->left_out[FT_LEFT_HOST]);
    if (p->times.count == 0)
        add_text(&p->unknown,
                 "no collective was captured with its flows: no step time is predicted");
    if (without)
        add_text(&p->unknown, "%u pairs of ranks send by flows that are not known", without);
    if (p->error.limited.count == 0)
        add_text(&p->unknown,
                 "no link is full: the plan spreads flows, and no rate is predicted to "
                 "change");
}

static int make(struct ft_plan_job *p)
{
    const struct ft_captured *c = &p->captured;
    struct ft_reassign_input in = {.topology = c->inputs.topology,
                                   .dead = p->dead,
                                   .demands = c->inputs.flows.demands,
                                   .now = c->paths,
                                   .count = c->inputs.flows.count};
    int rc = ft_times_init(&p->times, c);

    if (rc == 0)
        rc = ft_model_error(c, &p->error);
    if (rc == 0)
        rc = find_candidates(p);
    in.first = p->first;
    in.candidates = p->candidates;
    if (rc == 0)
        rc = ft_reassign(&in, &p->result);
    if (rc == 0)
        rc = find_ports(p);
    if (rc == 0)
        rc = measure(p, c->paths, &p->before);
    if (rc == 0)
        rc = measure(p, p->paths, &p->after);
    report_unknown(p);
    return rc;
}

static void plan_free(struct ft_plan_job *p)
{
    ft_reassign_free(&p->result);
    ft_times_free(&p->times);
    ft_hashes_list_free(&p->hashes);
    ft_captured_free(&p->captured);
    free(p->dead);
    free(p->first);
    free(p->candidates);
    free(p->sport);
    free(p->paths);
    free(p);
}

static int load_all(struct ft_plan_job *p, const struct ft_args *args)
{
    int rc = ft_captured_load(args, "plan", &p->captured);

    if (rc == 0)
        rc = ft_hashes_load(args, "plan", &p->hashes);
    if (rc == 0 && args->failed)
        rc = ft_inputs_failed(args, p->captured.inputs.topology, &p->dead, stderr);
    return rc;
}

int ft_plan_job_run(const struct ft_args *args)
{
    struct ft_plan_job *p = calloc(1, sizeof(*p));
    int rc = p ? load_all(p, args) : EX_OSERR;

    if (!p)
        fprintf(stderr, "fabrictrace plan: no memory\n");
    if (!p || rc)
        goto out;
    p->job = args->job;
    p->accuracy = 1;
    judge(p);
    if (p->flows == 0 && p->refused.count == 0) {
        fprintf(stderr,
                "fabrictrace plan: no flow of a job '%s' has a known path and enough rate\n",
                args->job);
        rc = FT_EXIT_NOT_FOUND;
        goto out;
    }
    rc = make(p);
    if (rc == 0)
        rc = ft_plan_job_print(p, args->json);
    if (rc)
        fprintf(stderr, "fabrictrace plan: %s\n", strerror(-rc));
    rc = rc ? EX_OSERR : p->refused.count ? EX_DATAERR : EX_OK;
    if (rc == EX_OK)
        rc = ft_plan_files_apply(p, args);
out:
    if (p)
        plan_free(p);
    return rc;
}
