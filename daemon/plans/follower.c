// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/plans/follower.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/plans/bearing.h"
#include "daemon/plans/follower_impl.h"
#include "lib/base/digest.h"

struct ft_follower *ft_follower_new(uint64_t seed)
{
    struct ft_follower *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->ports = ft_table_new(sizeof(struct ft_followed_port), sizeof(struct ft_followed_key),
                            FT_FOLLOWER_PORTS_MAX, seed);
    f->members = ft_members_new(seed);
    if (f->ports && f->members)
        return f;
    ft_follower_free(f);
    return NULL;
}

static void drop_port(struct ft_follower *f, struct ft_followed_port *port)
{
    f->kept -= port->report_bytes;
    f->stats.held -= !port->counted;
    free(port->report);
    ft_table_remove(f->ports, port);
}

static void drop_plan(struct ft_follower *f, struct ft_followed_plan *plan)
{
    uint64_t slot = (uint64_t)(plan - f->plans);
    uint32_t index = 0;
    struct ft_followed_port *port;

    while ((port = ft_table_next(f->ports, &index)))
        if (port->key.plan == slot)
            drop_port(f, port);
    f->hosts -= plan->host_count;
    free(plan->hosts);
    *plan = (struct ft_followed_plan){0};
}

void ft_follower_free(struct ft_follower *f)
{
    if (!f)
        return;
    for (size_t i = 0; f->ports && i < FT_FOLLOWER_PLANS_MAX; i++)
        drop_plan(f, &f->plans[i]);
    ft_table_free(f->ports);
    ft_members_free(f->members);
    free(f);
}

void ft_follower_on_withdrawal(struct ft_follower *f,
                               void (*ask)(void *arg, const char *source,
                                           const struct ft_withdrawal *withdrawal),
                               void *arg)
{
    f->ask = ask;
    f->ask_arg = arg;
}

static void enter(struct ft_followed_plan *plan, Fabrictrace__PlanStage stage, int64_t now_ms)
{
    plan->stage = stage;
    plan->since_ms = now_ms;
    plan->changed = true;
}

/* Whether a plan was first heard of from that host. */
static bool is_from(const struct ft_followed_plan *plan, const char *host)
{
    return plan->used && plan->host_count && strcmp(plan->hosts[0].name, host) == 0;
}

static bool is_better(const struct ft_followed_plan *a, const struct ft_followed_plan *than)
{
    bool over = a->stage == FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN;
    bool than_over = than->stage == FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN;

    if (a->used != than->used)
        return !a->used;
    return over != than_over ? over : a->heard_ms < than->heard_ms;
}

/* The slot of a plan: its own, or one to be given up: a free one, or that which nothing was said of
 * for longest, of those that are withdrawn if there is one. A host that speaks of many plans gives
 * up its own. */
static struct ft_followed_plan *slot_of(struct ft_follower *f, const Fabrictrace__PlanPort *r,
                                        bool *own)
{
    struct ft_followed_plan *best = NULL;
    size_t from = 0;

    for (size_t i = 0; i < FT_FOLLOWER_PLANS_MAX; i++) {
        struct ft_followed_plan *p = &f->plans[i];

        *own = p->used && p->uid == r->uid && p->time_ms == r->plan_time_ms &&
               strcmp(p->job, r->job) == 0;
        if (*own)
            return p;
        from += is_from(p, r->host);
    }
    for (size_t i = 0; i < FT_FOLLOWER_PLANS_MAX; i++) {
        struct ft_followed_plan *p = &f->plans[i];

        if (from >= FT_FOLLOWER_PLANS_HOST && !is_from(p, r->host))
            continue;
        if (!best || is_better(p, best))
            best = p;
    }
    return best;
}

/* Whether a plan may replace another of its job: where no two hosts agree on being in the
 * job, only of one that the same host spoke of first. */
static bool may_replace(const struct ft_follower *f, const struct ft_followed_plan *by,
                        const struct ft_followed_plan *other, int64_t now_ms)
{
    return ft_members_known(f->members, by->job_digest, now_ms) ||
           (by->host_count && other->host_count && by->hosts[0].digest != 0 &&
            by->hosts[0].digest == other->hosts[0].digest);
}

/* A job has one plan of a user at a time: what was before has been replaced. */
static void replace(struct ft_follower *f, const struct ft_followed_plan *by, int64_t now_ms)
{
    for (size_t i = 0; i < FT_FOLLOWER_PLANS_MAX; i++) {
        struct ft_followed_plan *p = &f->plans[i];

        if (!p->used || p->uid != by->uid || p->time_ms >= by->time_ms ||
            strcmp(p->job, by->job) != 0 || !may_replace(f, by, p, now_ms) ||
            p->stage == FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN)
            continue;
        p->end = FABRICTRACE__PLAN_END__PLAN_END_OWNER;
        enter(p, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN, now_ms);
    }
}

static struct ft_followed_plan *plan_of(struct ft_follower *f, const Fabrictrace__PlanPort *r,
                                        int64_t now_ms)
{
    bool own;
    struct ft_followed_plan *plan = slot_of(f, r, &own);

    if (!own) {
        drop_plan(f, plan);
        plan->used = true;
        snprintf(plan->job, sizeof(plan->job), "%s", r->job);
        plan->job_digest = ft_digest_text(r->job, 0);
        plan->uid = r->uid;
        plan->time_ms = r->plan_time_ms;
        enter(plan, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_APPLIED, now_ms);
    }
    plan->heard_ms = now_ms;
    return plan;
}

/* NULL: there is no room. */
static struct ft_followed_host *host_of(struct ft_follower *f, struct ft_followed_plan *plan,
                                        const Fabrictrace__PlanPort *r)
{
    struct ft_followed_host *grown;

    for (uint32_t i = 0; i < plan->host_count; i++)
        if (strcmp(plan->hosts[i].name, r->host) == 0)
            return &plan->hosts[i];
    if (f->hosts == FT_FOLLOWER_HOSTS_MAX)
        return NULL;
    if ((plan->host_count & (plan->host_count - 1)) == 0) {
        size_t count = plan->host_count ? 2 * (size_t)plan->host_count : 1;

        grown = realloc(plan->hosts, count * sizeof(*grown));
        if (!grown)
            return NULL;
        plan->hosts = grown;
    }
    grown = &plan->hosts[plan->host_count++];
    f->hosts++;
    *grown = (struct ft_followed_host){.ended = false};
    snprintf(grown->name, sizeof(grown->name), "%s", r->host);
    return grown;
}

static int keep_report(struct ft_follower *f, struct ft_followed_port *port,
                       const Fabrictrace__PlanPort *r)
{
    Fabrictrace__PlanPort kept = *r;
    size_t bytes = fabrictrace__plan_port__get_packed_size(&kept);
    uint8_t *packed;

    /* The path that the flow had is there to be shown only. */
    if (bytes > FT_FOLLOWER_REPORT) {
        kept.n_hops_before = 0;
        bytes = fabrictrace__plan_port__get_packed_size(&kept);
    }
    if (bytes > FT_FOLLOWER_REPORT || f->kept - port->report_bytes + bytes > FT_FOLLOWER_KEPT_MAX)
        return -ENOSPC;
    packed = malloc(bytes);
    if (!packed)
        return -ENOSPC;
    fabrictrace__plan_port__pack(&kept, packed);
    free(port->report);
    f->kept += bytes - port->report_bytes;
    port->report = packed;
    port->report_bytes = bytes;
    return 0;
}

/* Where no two hosts agree on being in the job, the one that spoke of the plan first: to it alone
 * it is known to belong. */
static bool may_speak(const struct ft_follower *f, const struct ft_followed_plan *plan,
                      const struct ft_followed_host *host, int64_t now_ms)
{
    return ft_members_has(f->members, plan->job_digest, host->digest, now_ms) ||
           ((host == plan->hosts || (host->digest && host->digest == plan->hosts->digest)) &&
            !ft_members_known(f->members, plan->job_digest, now_ms));
}

/* A port counts once its host may speak for the job: from then on it is part of the plan, and the
 * plan is one that replaces others. */
static void count(struct ft_follower *f, struct ft_followed_plan *plan,
                  struct ft_followed_port *port, int64_t now_ms)
{
    if (port->counted || !may_speak(f, plan, &plan->hosts[port->host], now_ms))
        return;
    port->counted = true;
    f->stats.held--;
    plan->ports++;
    plan->refused += port->state == FT_PORT_REFUSED;
    plan->changed = true;
    replace(f, plan, now_ms);
}

static int take_port(struct ft_follower *f, struct ft_followed_plan *plan,
                     struct ft_followed_host *host, const Fabrictrace__PlanPort *r, int64_t now_ms)
{
    struct ft_followed_key key = {.plan = (uint64_t)(plan - f->plans)};
    struct ft_followed_port *port;
    bool fresh;

    if (ft_flow_to_tuple(r->flow, &key.tuple))
        return -EINVAL;
    port = ft_table_insert(f->ports, &key, &fresh);
    if (!port)
        return -ENOSPC;
    if (keep_report(f, port, r)) {
        if (fresh) {
            f->stats.held++;
            drop_port(f, port);
        }
        return -ENOSPC;
    }
    plan->changed = true;
    if (fresh) {
        port->host = (uint32_t)(host - plan->hosts);
        f->stats.held++;
    }
    if (r->outcome == FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_REFUSED) {
        if (fresh)
            port->state = FT_PORT_REFUSED;
    } else if (port->state == FT_PORT_AWAITED || port->state == FT_PORT_REFUSED) {
        /* One that is made anew with a port that is confirmed takes the same path, or will be seen
         * to have left it. */
        plan->refused -= port->counted && port->state == FT_PORT_REFUSED;
        port->state = FT_PORT_AWAITED;
        port->given_ms = (int64_t)r->time_ms;
        port->looks = 0;
    }
    count(f, plan, port, now_ms);
    return 0;
}

static bool fits(const char *text, size_t bytes)
{
    return text && *text && strlen(text) < bytes;
}

/* The plan is over on a host: its owner took it back, or the agent did what it was asked for. */
static int take_end(struct ft_follower *f, struct ft_followed_plan *plan,
                    struct ft_followed_host *host, int64_t now_ms)
{
    if (!may_speak(f, plan, host, now_ms)) {
        f->stats.strange++;
        return -EPERM;
    }
    plan->ended += !host->ended;
    host->ended = true;
    plan->changed = true;
    if (plan->stage != FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN) {
        plan->end = FABRICTRACE__PLAN_END__PLAN_END_OWNER;
        enter(plan, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN, now_ms);
    }
    return 0;
}

static bool is_whole(const Fabrictrace__PlanPort *r, bool ends)
{
    return r->job && ft_plan_name_is_good(r->job) && fits(r->host, FT_FOLLOWED_HOST_BYTES) &&
           r->has_plan_time_ms && r->has_uid && r->has_time_ms && r->has_outcome &&
           (ends || r->flow);
}

int ft_follower_take(struct ft_follower *f, const Fabrictrace__PlanPort *r,
                     const struct ft_topology *t, int64_t now_ms)
{
    bool ends = r->outcome == FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_TAKEN_BACK ||
                r->outcome == FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_WITHDRAWN;
    struct ft_tuple tuple;
    struct ft_followed_plan *plan;
    struct ft_followed_host *host;
    int rc;

    if (!is_whole(r, ends))
        return -EINVAL;
    plan = plan_of(f, r, now_ms);
    host = host_of(f, plan, r);
    if (!host) {
        f->stats.refused++;
        return -ENOSPC;
    }
    if (fits(r->source, FT_FOLLOWED_HOST_BYTES))
        snprintf(host->source, sizeof(host->source), "%s", r->source);
    if (r->flow && ft_flow_to_tuple(r->flow, &tuple) == 0)
        host->digest = ft_members_host(t, &tuple.src, r->host);
    else if (!host->digest)
        host->digest = ft_members_host(t, NULL, r->host);
    if (ends)
        return take_end(f, plan, host, now_ms);
    rc = take_port(f, plan, host, r, now_ms);
    /* An agent that began anew, or that has the same plan again. */
    if (rc == 0 && host->ended) {
        host->ended = false;
        plan->ended--;
    }
    f->stats.refused += rc == -ENOSPC;
    return rc;
}

static enum ft_port_state judge(struct ft_followed_port *port, const struct ft_flow *flow,
                                const Fabrictrace__PlanPort *report, const struct ft_join *join)
{
    int64_t sampled_ms = ft_bearing_sampled_ms(flow);

    switch (ft_bearing_judge(join, flow, port->given_ms, report->hops, report->n_hops)) {
    case FT_BEARING_SAME:
        port->looks = 0;
        return FT_PORT_CONFIRMED;
    case FT_BEARING_OTHER:
        return FT_PORT_MISSED;
    case FT_BEARING_UNKNOWN:
        if (port->state == FT_PORT_AWAITED && sampled_ms > port->sampled_ms &&
            ++port->looks > FT_FOLLOWER_LOOKS)
            return FT_PORT_UNCONFIRMED;
        return port->state;
    case FT_BEARING_NONE:
        break;
    }
    return port->state;
}

/* Whether there is something to judge: one on its path stays there until the join says otherwise.
 */
static bool is_new(const struct ft_followed_port *port, const struct ft_flow *flow)
{
    if (port->state == FT_PORT_AWAITED)
        return true;
    return port->state == FT_PORT_CONFIRMED && flow->path_since_ms != port->path_since_ms;
}

static void look_at(struct ft_follower *f, struct ft_followed_plan *plan,
                    struct ft_followed_port *port, const struct ft_follower_surroundings *around,
                    int64_t now_ms)
{
    const struct ft_flow *flow = ft_join_find(around->join, &port->key.tuple);
    Fabrictrace__PlanPort *report;
    enum ft_port_state state;

    count(f, plan, port, now_ms);
    if (!flow || !port->counted || !is_new(port, flow))
        return;
    report = fabrictrace__plan_port__unpack(NULL, port->report_bytes, port->report);
    if (!report)
        return;
    state = judge(port, flow, report, around->join);
    port->sampled_ms = ft_bearing_sampled_ms(flow);
    port->path_since_ms = flow->path_since_ms;
    if (state != port->state) {
        plan->confirmed -= port->state == FT_PORT_CONFIRMED;
        plan->confirmed += state == FT_PORT_CONFIRMED;
        plan->missed += state == FT_PORT_MISSED || state == FT_PORT_UNCONFIRMED;
        plan->changed = true;
        port->state = state;
    }
    if ((state == FT_PORT_MISSED || state == FT_PORT_UNCONFIRMED) &&
        plan->stage != FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN) {
        plan->end = state == FT_PORT_MISSED ? FABRICTRACE__PLAN_END__PLAN_END_CONTRADICTED
                                            : FABRICTRACE__PLAN_END__PLAN_END_UNCONFIRMED;
        enter(plan, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN, now_ms);
        ft_follower_publish_end(plan, port, report, around, now_ms);
    }
    fabrictrace__plan_port__free_unpacked(report, NULL);
}

static void ask_for_end(struct ft_follower *f, const struct ft_followed_plan *plan)
{
    struct ft_withdrawal withdrawal = {.uid = plan->uid, .plan_time_ms = plan->time_ms};

    if (!f->ask || plan->stage != FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN ||
        plan->end == FABRICTRACE__PLAN_END__PLAN_END_OWNER)
        return;
    memcpy(withdrawal.job, plan->job, sizeof(withdrawal.job));
    for (uint32_t i = 0; i < plan->host_count; i++) {
        if (plan->hosts[i].ended || !plan->hosts[i].source[0])
            continue;
        f->stats.asked++;
        f->ask(f->ask_arg, plan->hosts[i].source, &withdrawal);
    }
}

static void advance(struct ft_followed_plan *plan, int64_t now_ms)
{
    bool all = plan->confirmed && plan->confirmed + plan->refused == plan->ports;

    if (plan->stage == FABRICTRACE__PLAN_STAGE__PLAN_STAGE_APPLIED && all)
        enter(plan, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_CONFIRMED, now_ms);
    else if (plan->stage == FABRICTRACE__PLAN_STAGE__PLAN_STAGE_CONFIRMED && !all)
        enter(plan, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_APPLIED, now_ms);
}

void ft_follower_look(struct ft_follower *f, const struct ft_follower_surroundings *around,
                      int64_t now_ms)
{
    uint32_t index = 0;
    struct ft_followed_port *port;

    while ((port = ft_table_next(f->ports, &index)))
        look_at(f, &f->plans[port->key.plan], port, around, now_ms);
    for (size_t i = 0; i < FT_FOLLOWER_PLANS_MAX; i++) {
        struct ft_followed_plan *plan = &f->plans[i];

        if (!plan->used)
            continue;
        advance(plan, now_ms);
        ask_for_end(f, plan);
        if (plan->changed && ft_follower_is_shown(plan))
            ft_follower_publish(plan, around->fabric, around->emitter);
        plan->changed = false;
    }
}

void ft_follower_hear(struct ft_follower *f, const struct ft_topology *t, const char *job,
                      const struct ft_tuple *flow, int64_t now_ms)
{
    ft_members_flow(f->members, t, job, flow, now_ms);
}

bool ft_follower_next(const struct ft_follower *f, uint32_t *index, const char *fabric,
                      const struct ft_emitter *emitter)
{
    while (*index < FT_FOLLOWER_PLANS_MAX) {
        const struct ft_followed_plan *plan = &f->plans[(*index)++];

        if (!ft_follower_is_shown(plan))
            continue;
        ft_follower_publish(plan, fabric, emitter);
        return true;
    }
    return false;
}

size_t ft_follower_count(const struct ft_follower *f, Fabrictrace__PlanStage stage)
{
    size_t count = 0;

    for (size_t i = 0; i < FT_FOLLOWER_PLANS_MAX; i++)
        count += ft_follower_is_shown(&f->plans[i]) && f->plans[i].stage == stage;
    return count;
}

struct ft_follower_stats ft_follower_stats(const struct ft_follower *f)
{
    struct ft_follower_stats stats = f->stats;

    stats.ports = ft_table_count(f->ports);
    return stats;
}
