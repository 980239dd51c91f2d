// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/plan/plan_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/fetch/fetch.h"
#include "cli/inputs/captured_load.h"
#include "cli/inputs/hashes.h"
#include "cli/inputs/inputs.h"
#include "cli/plan/plan_files.h"
#include "cli/plan/plan_ports.h"
#include "lib/sim/loads.h"

/* One choice of a switch. */
static void judge_choice(struct ft_plan_job *p, const struct ft_choice *choice)
{
    const struct ft_hashes_set *s = ft_hashes_find(&p->hashes, choice);
    const char *name = choice->at->name;

    if (ft_asked_has(p->asked, name))
        return;
    if (!s || s->record->model == FABRICTRACE__HASH_MODEL__HASH_MODEL_UNKNOWN)
        ft_plan_text(
            &p->refused,
            "switch '%s': too few flows were seen to know how it chooses among its %u links", name,
            choice->count);
    else if (s->record->hashes_outer)
        ft_plan_text(&p->refused,
                     "switch '%s': it hashes the header of the tunnel around flows, whose ports no "
                     "plan gives",
                     name);
    else if (s->model.kind != FT_HASH_LINEAR)
        ft_plan_text(
            &p->refused,
            "switch '%s': its choice does not follow from addresses and ports alone: a keyed "
            "hash, the destination queue pair or TTL in the hash, or adaptive routing",
            name);
    else if (!ft_plan_hash_takes_sport(s->record))
        ft_plan_text(&p->refused, "switch '%s': its hash does not take the source port", name);
    else if (!s->record->has_accuracy || s->record->accuracy < FT_PLAN_ACCURACY_LEAST)
        ft_plan_text(&p->refused,
                     "switch '%s': its hash is predicted rightly for %.1f %% of flows only", name,
                     100 * (s->record->has_accuracy ? s->record->accuracy : 0));
    else if (s->record->accuracy < p->accuracy)
        p->accuracy = s->record->accuracy;
}

/* What is said of the NIC's own choice is relied on where it is good enough; else its flows stay.
 */
static void judge_nic(struct ft_plan_job *p, uint32_t flow)
{
    const struct ft_hashes_set *s = ft_hashes_of_nic(
        &p->hashes, p->captured.inputs.topology, p->captured.inputs.flows.demands[flow].src_nic);

    if (s && !ft_plan_nic_trouble(p, flow) && s->record->accuracy < p->accuracy)
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

static bool is_alive(const struct ft_plan_job *p, const struct ft_path *path)
{
    const struct ft_topology *t = p->captured.inputs.topology;

    for (uint32_t i = 0; p->dead && i < path->hop_count; i++) {
        uint32_t out = path->hops[i].out, peer = ft_topology_port(t, out)->peer;

        if (p->dead[out] || p->dead[path->hops[i].in] || (peer != FT_NONE && p->dead[peer]))
            return false;
    }
    return true;
}

/* Notes questions for where the job's flows are now, until all are answered. */
static int ask_now(struct ft_plan_job *p)
{
    bool stopped = false;

    do {
        for (uint32_t i = 0; i < p->captured.inputs.flows.count; i++) {
            struct ft_path path;

            if (ft_plan_is_of_job(p, p->captured.flows[i].record) &&
                is_alive(p, &p->captured.paths[i]))
                ft_plan_predict(p, i, p->dead, p->captured.flows[i].tuple.sport, &path);
        }
    } while (ft_asked_run(p->asked, &stopped) && !stopped);
    return stopped ? -EINTR : 0;
}

/* Switches whose command failed, and answers that say nothing. */
static void judge_answers(struct ft_plan_job *p, uint32_t predicted)
{
    const char *name, *text;

    for (uint32_t i = 0; ft_asked_failure(p->asked, i, &name, &text); i++)
        if (text)
            ft_plan_text(&p->refused, "switch '%s' cannot be asked: %s", name, text);
    if (predicted == 0)
        ft_plan_text(&p->refused, "switches that were asked gave no answer for the flows of the "
                                  "job that there are");
}

/* Whether the job's flows are where hashes and answers say that they are. What switches are asked
 * is what is so now, with the links that are down. */
static void verify(struct ft_plan_job *p)
{
    const bool *dead = p->asked ? p->dead : NULL;
    uint32_t predicted = 0, wrong = 0;

    for (uint32_t i = 0; i < p->captured.inputs.flows.count; i++) {
        struct ft_path path;

        if (!ft_plan_is_of_job(p, p->captured.flows[i].record) ||
            (p->asked && !is_alive(p, &p->captured.paths[i])) ||
            ft_plan_predict(p, i, dead, p->captured.flows[i].tuple.sport, &path))
            continue;
        predicted++;
        wrong += !ft_plan_same(&path, &p->captured.paths[i]);
    }
    if (p->asked)
        judge_answers(p, predicted);
    if (p->asked && predicted && 1 - (double)wrong / predicted < p->accuracy)
        p->accuracy = 1 - (double)wrong / predicted;
    if (wrong > predicted * (1 - FT_PLAN_ACCURACY_LEAST))
        ft_plan_text(&p->refused,
                     "of %u flows of the job whose path is predicted %u take another one",
                     predicted, wrong);
}

/* Flows of the job whose packets a source port does not send one way. */
static void judge_flows(struct ft_plan_job *p)
{
    uint32_t sprayed = 0, tunnelled = 0, changing = 0, routed = 0;

    for (uint32_t i = 0; i < p->captured.record_count; i++) {
        const Fabrictrace__Path *r = p->captured.records[i]->path;

        if (p->captured.records[i]->kind_case != FABRICTRACE__RECORD__KIND_PATH ||
            !ft_plan_is_of_job(p, r))
            continue;
        sprayed += r->has_state && r->state == FABRICTRACE__STATE__STATE_MULTIPATH;
        changing += r->reason && strcmp(r->reason, "changing") == 0;
        tunnelled += r->outer != NULL;
        routed += r->source_routed != 0;
    }
    if (sprayed)
        ft_plan_text(&p->refused,
                     "%u flows take several paths at once: packets are sprayed, or "
                     "switches route adaptively",
                     sprayed);
    if (tunnelled)
        ft_plan_text(&p->refused,
                     "%u flows run in tunnels, whose outer header is what switches hash",
                     tunnelled);
    if (routed)
        ft_plan_text(&p->refused,
                     "%u flows bear their path in their address: their source port decides nothing",
                     routed);
    if (changing)
        ft_plan_text(&p->refused,
                     "%u flows are changing their path: ask again when they stay on one, which "
                     "they never do where switches route adaptively",
                     changing);
}

/* Everything that speaks against a plan. -EINTR. */
static int judge(struct ft_plan_job *p)
{
    int rc = 0;

    judge_flows(p);
    for (uint32_t i = 0; i < p->captured.inputs.flows.count; i++) {
        if (!ft_plan_is_of_job(p, p->captured.flows[i].record))
            continue;
        p->flows++;
        judge_switches(p, i);
        judge_nic(p, i);
    }
    if (p->asked && p->refused.count == 0)
        rc = ask_now(p);
    if (rc == 0 && p->refused.count == 0)
        verify(p);
    if (rc == 0 && p->asked && p->refused.count == 0)
        rc = ft_plan_ask_ports(p);
    return rc;
}

/* dead: what no flow can take then, by port; NULL: none. */
static int measure(const struct ft_plan_job *p, const bool *dead, const struct ft_path *paths,
                   struct ft_plan_state *state)
{
    const struct ft_captured *c = &p->captured;
    struct ft_policy_input in = {.topology = c->inputs.topology,
                                 .demands = c->inputs.flows.demands,
                                 .count = c->inputs.flows.count,
                                 .dead = dead};
    uint32_t *first = calloc((size_t)in.count + 1, sizeof(*first));
    double *times_s = calloc((size_t)p->times.count + 1, sizeof(*times_s));
    double *rate_bps = calloc((size_t)in.count + 1, sizeof(*rate_bps));
    struct ft_placed placed = {.paths = paths, .first = first};
    int rc = first && times_s && rate_bps ? 0 : -ENOMEM;

    for (uint32_t i = 0; rc == 0 && i <= in.count; i++)
        first[i] = i;
    if (rc == 0)
        rc = ft_measure(&in, &placed, rate_bps, &state->measured);
    state->step_s = -1;
    if (rc == 0 && p->times.count)
        rc = ft_times_play(&p->times, &in, &placed, rate_bps, times_s, &state->step_s);
    free(first);
    free(times_s);
    free(rate_bps);
    return rc;
}

static void report_unknown(struct ft_plan_job *p)
{
    const struct ft_captured *c = &p->captured;
    uint32_t without = 0;

    for (uint32_t i = 0; i < p->times.count; i++)
        without += p->times.items[i].edges_without;
    if (p->asked && ft_asked_stats(p->asked).silent)
        ft_plan_text(&p->unknown, "%llu of %llu questions to switches had no answer",
                     (unsigned long long)ft_asked_stats(p->asked).silent,
                     (unsigned long long)ft_asked_stats(p->asked).questions);
    if (c->left_out[FT_LEFT_UNRESOLVED])
        ft_plan_text(&p->unknown,
                     "%u flows have no known path: what they carry is not in the figures",
                     c->left_out[FT_LEFT_UNRESOLVED]);
    if (c->left_out[FT_LEFT_HOST])
        ft_plan_text(&p->unknown,
                     "%u flows are of hosts outside the topology, and not in the figures",
                     c->left_out[FT_LEFT_HOST]);
    if (p->times.count == 0)
        ft_plan_text(&p->unknown,
                     "no collective was captured with its flows: no step time is predicted");
    if (without)
        ft_plan_text(&p->unknown, "%u pairs of ranks send by flows that are not known", without);
    if (p->error.limited.count == 0)
        ft_plan_text(&p->unknown,
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
    uint32_t dropped = 1;
    int rc = ft_times_init(&p->times, c);

    if (rc == 0)
        rc = ft_model_error(c, &p->error);
    if (rc == 0)
        rc = ft_plan_candidates(p);
    in.first = p->first;
    in.candidates = p->candidates;
    while (rc == 0 && dropped) {
        ft_reassign_free(&p->result);
        rc = ft_reassign(&in, &p->result);
        if (rc == 0)
            rc = ft_plan_ports(p, &dropped);
    }
    if (rc == 0)
        rc = measure(p, NULL, c->paths, &p->before);
    if (rc == 0)
        rc = measure(p, p->dead, p->paths, &p->after);
    report_unknown(p);
    return rc;
}

static void plan_free(struct ft_plan_job *p)
{
    ft_reassign_free(&p->result);
    ft_times_free(&p->times);
    ft_hashes_list_free(&p->hashes);
    ft_asked_free(p->asked);
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
    if (rc || args->oracle_count == 0)
        return rc;
    p->asked = ft_asked_new(args, p->captured.inputs.topology);
    return p->asked ? EX_OK : EX_OSERR;
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
    rc = judge(p);
    if (rc) {
        fprintf(stderr, "fabrictrace plan: %s\n", strerror(-rc));
        rc = EX_OSERR;
        goto out;
    }
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
