// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/plans/follower.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/plans/bearing.h"
#include "lib/base/table.h"
#include "proto/record.h"

#define HOST_BYTES    128
#define SUBJECT_BYTES (FT_PLAN_JOB_BYTES + 16)
#define MESSAGE_BYTES 512

/* The agent of a host. */
struct host {
    char name[HOST_BYTES];
    char source[HOST_BYTES]; /* "": it takes no withdrawals */
    bool ended;              /* it gives no more ports of the plan */
};

struct plan {
    bool used;
    char job[FT_PLAN_JOB_BYTES];
    uint32_t uid;
    uint64_t time_ms;
    Fabrictrace__PlanStage stage;
    Fabrictrace__PlanEnd end;
    int64_t since_ms, heard_ms;
    uint32_t ports, confirmed, missed, refused;
    struct host *hosts;
    uint32_t host_count, ended;
    bool changed; /* since it was published */
};

enum port_state {
    PORT_AWAITED,
    PORT_CONFIRMED,
    PORT_MISSED,
    PORT_UNCONFIRMED,
    PORT_REFUSED,
};

struct port_key {
    uint64_t plan; /* its slot */
    struct ft_tuple tuple;
};

struct port {
    struct port_key key;
    enum port_state state;
    uint32_t looks; /* with samples that left several paths */
    int64_t given_ms, sampled_ms;
    int64_t path_since_ms; /* of the path that was judged last */
    uint8_t *report;       /* packed */
    size_t report_bytes;
};

struct ft_follower {
    struct plan plans[FT_FOLLOWER_PLANS_MAX];
    struct ft_table *ports;
    size_t kept;
    uint32_t hosts; /* of all plans */
    void (*ask)(void *arg, const char *source, const struct ft_withdrawal *withdrawal);
    void *ask_arg;
    struct ft_follower_stats stats;
};

struct ft_follower *ft_follower_new(uint64_t seed)
{
    struct ft_follower *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->ports =
        ft_table_new(sizeof(struct port), sizeof(struct port_key), FT_FOLLOWER_PORTS_MAX, seed);
    if (f->ports)
        return f;
    free(f);
    return NULL;
}

static void drop_port(struct ft_follower *f, struct port *port)
{
    f->kept -= port->report_bytes;
    free(port->report);
    ft_table_remove(f->ports, port);
}

static void drop_plan(struct ft_follower *f, struct plan *plan)
{
    uint64_t slot = (uint64_t)(plan - f->plans);
    uint32_t index = 0;
    struct port *port;

    while ((port = ft_table_next(f->ports, &index)))
        if (port->key.plan == slot)
            drop_port(f, port);
    f->hosts -= plan->host_count;
    free(plan->hosts);
    *plan = (struct plan){0};
}

void ft_follower_free(struct ft_follower *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < FT_FOLLOWER_PLANS_MAX; i++)
        drop_plan(f, &f->plans[i]);
    ft_table_free(f->ports);
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

static void enter(struct plan *plan, Fabrictrace__PlanStage stage, int64_t now_ms)
{
    plan->stage = stage;
    plan->since_ms = now_ms;
    plan->changed = true;
}

/* Whether a plan was first heard of from that host. */
static bool is_from(const struct plan *plan, const char *host)
{
    return plan->used && plan->host_count && strcmp(plan->hosts[0].name, host) == 0;
}

static bool is_better(const struct plan *a, const struct plan *than)
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
static struct plan *slot_of(struct ft_follower *f, const Fabrictrace__PlanPort *r, bool *own)
{
    struct plan *best = NULL;
    size_t from = 0;

    for (size_t i = 0; i < FT_FOLLOWER_PLANS_MAX; i++) {
        struct plan *p = &f->plans[i];

        *own = p->used && p->uid == r->uid && p->time_ms == r->plan_time_ms &&
               strcmp(p->job, r->job) == 0;
        if (*own)
            return p;
        from += is_from(p, r->host);
    }
    for (size_t i = 0; i < FT_FOLLOWER_PLANS_MAX; i++) {
        struct plan *p = &f->plans[i];

        if (from >= FT_FOLLOWER_PLANS_HOST && !is_from(p, r->host))
            continue;
        if (!best || is_better(p, best))
            best = p;
    }
    return best;
}

/* A job has one plan of a user at a time: what was before has been replaced. */
static void replace(struct ft_follower *f, const struct plan *by, int64_t now_ms)
{
    for (size_t i = 0; i < FT_FOLLOWER_PLANS_MAX; i++) {
        struct plan *p = &f->plans[i];

        if (!p->used || p->uid != by->uid || p->time_ms >= by->time_ms ||
            strcmp(p->job, by->job) != 0 ||
            p->stage == FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN)
            continue;
        p->end = FABRICTRACE__PLAN_END__PLAN_END_OWNER;
        enter(p, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN, now_ms);
    }
}

static struct plan *plan_of(struct ft_follower *f, const Fabrictrace__PlanPort *r, int64_t now_ms)
{
    bool own;
    struct plan *plan = slot_of(f, r, &own);

    if (!own) {
        drop_plan(f, plan);
        plan->used = true;
        snprintf(plan->job, sizeof(plan->job), "%s", r->job);
        plan->uid = r->uid;
        plan->time_ms = r->plan_time_ms;
        enter(plan, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_APPLIED, now_ms);
        replace(f, plan, now_ms);
    }
    plan->heard_ms = now_ms;
    return plan;
}

/* NULL: there is no room. */
static struct host *host_of(struct ft_follower *f, struct plan *plan,
                            const Fabrictrace__PlanPort *r)
{
    struct host *grown;

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
    *grown = (struct host){.ended = false};
    snprintf(grown->name, sizeof(grown->name), "%s", r->host);
    return grown;
}

static int keep_report(struct ft_follower *f, struct port *port, const Fabrictrace__PlanPort *r)
{
    size_t bytes = fabrictrace__plan_port__get_packed_size(r);
    uint8_t *packed;

    if (bytes > FT_FOLLOWER_REPORT || f->kept - port->report_bytes + bytes > FT_FOLLOWER_KEPT_MAX)
        return -ENOSPC;
    packed = malloc(bytes);
    if (!packed)
        return -ENOSPC;
    fabrictrace__plan_port__pack(r, packed);
    free(port->report);
    f->kept += bytes - port->report_bytes;
    port->report = packed;
    port->report_bytes = bytes;
    return 0;
}

static int take_port(struct ft_follower *f, struct plan *plan, const Fabrictrace__PlanPort *r)
{
    struct port_key key = {.plan = (uint64_t)(plan - f->plans)};
    struct port *port;
    bool fresh;

    if (!r->flow || ft_flow_to_tuple(r->flow, &key.tuple))
        return -EINVAL;
    port = ft_table_insert(f->ports, &key, &fresh);
    if (!port)
        return -ENOSPC;
    if (keep_report(f, port, r)) {
        if (fresh)
            drop_port(f, port);
        return -ENOSPC;
    }
    plan->changed = true;
    plan->ports += fresh;
    if (r->outcome == FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_REFUSED) {
        if (fresh) {
            plan->refused++;
            port->state = PORT_REFUSED;
        }
        return 0;
    }
    /* One that is made anew with a port that is confirmed takes the same path, or will be seen to
     * have left it. */
    if (port->state == PORT_AWAITED || port->state == PORT_REFUSED) {
        plan->refused -= port->state == PORT_REFUSED;
        port->state = PORT_AWAITED;
        port->given_ms = (int64_t)r->time_ms;
        port->looks = 0;
    }
    return 0;
}

static bool fits(const char *text, size_t bytes)
{
    return text && *text && strlen(text) < bytes;
}

int ft_follower_take(struct ft_follower *f, const Fabrictrace__PlanPort *r, int64_t now_ms)
{
    struct plan *plan;
    struct host *host;
    int rc;

    if (!r->job || !ft_plan_name_is_good(r->job) || !fits(r->host, HOST_BYTES) ||
        !r->has_plan_time_ms || !r->has_uid || !r->has_time_ms || !r->has_outcome)
        return -EINVAL;
    plan = plan_of(f, r, now_ms);
    host = host_of(f, plan, r);
    if (!host) {
        f->stats.refused++;
        return -ENOSPC;
    }
    if (fits(r->source, HOST_BYTES))
        snprintf(host->source, sizeof(host->source), "%s", r->source);
    if (r->outcome == FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_TAKEN_BACK ||
        r->outcome == FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_WITHDRAWN) {
        plan->ended += !host->ended;
        host->ended = true;
        plan->changed = true;
        if (plan->stage != FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN) {
            plan->end = FABRICTRACE__PLAN_END__PLAN_END_OWNER;
            enter(plan, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN, now_ms);
        }
        return 0;
    }
    rc = take_port(f, plan, r);
    /* An agent that began anew, or that has the same plan again. */
    if (rc == 0 && host->ended) {
        host->ended = false;
        plan->ended--;
    }
    f->stats.refused += rc == -ENOSPC;
    return rc;
}

static void fill(Fabrictrace__Plan *out, const struct plan *plan, const char *fabric)
{
    fabrictrace__plan__init(out);
    out->has_time_ms = out->has_stage = out->has_uid = out->has_ports_given = true;
    out->has_ports_confirmed = out->has_ports_missed = out->has_ports_refused = true;
    out->has_hosts = out->has_hosts_ended = out->has_since_ms = true;
    out->time_ms = plan->time_ms;
    out->fabric = (char *)(uintptr_t)fabric;
    out->job = (char *)(uintptr_t)plan->job;
    out->uid = plan->uid;
    out->stage = plan->stage;
    out->ports_given = plan->ports - plan->refused;
    out->ports_confirmed = plan->confirmed;
    out->ports_missed = plan->missed;
    out->ports_refused = plan->refused;
    out->has_end = plan->end != FABRICTRACE__PLAN_END__PLAN_END_UNKNOWN;
    out->end = plan->end;
    out->hosts = plan->host_count;
    out->hosts_ended = plan->ended;
    out->since_ms = (uint64_t)plan->since_ms;
}

static void emit(const struct plan *plan, const char *fabric, const struct ft_emitter *emitter)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Plan out;

    fill(&out, plan, fabric);
    record.kind_case = FABRICTRACE__RECORD__KIND_PLAN;
    record.plan = &out;
    emitter->record(emitter->arg, &record);
}

struct hops {
    Fabrictrace__Hop hops[FT_PATH_HOPS_MAX];
    Fabrictrace__Hop *list[FT_PATH_HOPS_MAX];
    size_t count;
};

static void fill_seen(struct hops *out, const struct ft_join *join, const struct ft_flow *flow)
{
    const struct ft_path *path = &flow->path;

    out->count = 0;
    for (uint32_t i = 0; flow->state == FT_PATH_RESOLVED && i < path->hop_count; i++) {
        if (path->hops[i].in == FT_NONE && path->hops[i].out == FT_NONE)
            continue;
        ft_emit_hop(&out->hops[out->count], join, flow, &path->hops[i]);
        out->list[out->count] = &out->hops[out->count];
        out->count++;
    }
}

/* What a plan is withdrawn for: the first port that speaks against it. */
static void publish_withdrawal(const struct plan *plan, const struct port *port,
                               const Fabrictrace__PlanPort *report,
                               const struct ft_follower_surroundings *around, int64_t now_ms)
{
    Fabrictrace__Event event = FABRICTRACE__EVENT__INIT;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    const struct ft_flow *flow = ft_join_find(around->join, &port->key.tuple);
    bool other = plan->end == FABRICTRACE__PLAN_END__PLAN_END_CONTRADICTED;
    char subject[SUBJECT_BYTES], message[MESSAGE_BYTES], text[FT_TUPLE_TEXT_BYTES];
    struct hops seen = {.count = 0};

    if (flow && other)
        fill_seen(&seen, around->join, flow);
    ft_tuple_format(&port->key.tuple, text);
    snprintf(subject, sizeof(subject), "%s/%" PRIu32, plan->job, plan->uid);
    snprintf(message, sizeof(message),
             "plan of job '%s', user %" PRIu32 ": withdrawn, as %s %s; queue pairs that have its "
             "ports keep them, no other gets one",
             plan->job, plan->uid, text,
             other ? "takes another path than it predicted"
                   : "is sampled, and no single path is certain");
    evidence.flow = report->flow;
    evidence.host = report->host;
    evidence.has_count = evidence.has_flows = true;
    evidence.count = plan->missed;
    evidence.flows = plan->ports - plan->refused;
    evidence.n_old_hops = report->n_hops;
    evidence.old_hops = report->hops;
    evidence.n_new_hops = seen.count;
    evidence.new_hops = seen.list;
    event.has_time_ms = event.has_since_ms = event.has_kind = event.has_severity = true;
    event.time_ms = event.since_ms = (uint64_t)now_ms;
    event.fabric = (char *)(uintptr_t)around->fabric;
    event.kind = FABRICTRACE__KIND__KIND_PLAN_WITHDRAWN;
    event.severity = FABRICTRACE__SEVERITY__SEVERITY_WARNING;
    event.subject = subject;
    event.message = message;
    event.evidence = &evidence;
    ft_events_once(around->events, &event);
}

static enum port_state judge(struct port *port, const struct ft_flow *flow,
                             const Fabrictrace__PlanPort *report, const struct ft_join *join)
{
    int64_t sampled_ms = ft_bearing_sampled_ms(flow);

    switch (ft_bearing_judge(join, flow, port->given_ms, report->hops, report->n_hops)) {
    case FT_BEARING_SAME:
        port->looks = 0;
        return PORT_CONFIRMED;
    case FT_BEARING_OTHER:
        return PORT_MISSED;
    case FT_BEARING_UNKNOWN:
        if (port->state == PORT_AWAITED && sampled_ms > port->sampled_ms &&
            ++port->looks > FT_FOLLOWER_LOOKS)
            return PORT_UNCONFIRMED;
        return port->state;
    case FT_BEARING_NONE:
        break;
    }
    return port->state;
}

/* Whether there is something to judge: one on its path stays there until the join says otherwise.
 */
static bool is_new(const struct port *port, const struct ft_flow *flow)
{
    if (port->state == PORT_AWAITED)
        return true;
    return port->state == PORT_CONFIRMED && flow->path_since_ms != port->path_since_ms;
}

static void look_at(struct plan *plan, struct port *port,
                    const struct ft_follower_surroundings *around, int64_t now_ms)
{
    const struct ft_flow *flow = ft_join_find(around->join, &port->key.tuple);
    Fabrictrace__PlanPort *report;
    enum port_state state;

    if (!flow || !is_new(port, flow))
        return;
    report = fabrictrace__plan_port__unpack(NULL, port->report_bytes, port->report);
    if (!report)
        return;
    state = judge(port, flow, report, around->join);
    port->sampled_ms = ft_bearing_sampled_ms(flow);
    port->path_since_ms = flow->path_since_ms;
    if (state != port->state) {
        plan->confirmed -= port->state == PORT_CONFIRMED;
        plan->confirmed += state == PORT_CONFIRMED;
        plan->missed += state == PORT_MISSED || state == PORT_UNCONFIRMED;
        plan->changed = true;
        port->state = state;
    }
    if ((state == PORT_MISSED || state == PORT_UNCONFIRMED) &&
        plan->stage != FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN) {
        plan->end = state == PORT_MISSED ? FABRICTRACE__PLAN_END__PLAN_END_CONTRADICTED
                                         : FABRICTRACE__PLAN_END__PLAN_END_UNCONFIRMED;
        enter(plan, FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN, now_ms);
        publish_withdrawal(plan, port, report, around, now_ms);
    }
    fabrictrace__plan_port__free_unpacked(report, NULL);
}

static void ask_for_end(struct ft_follower *f, const struct plan *plan)
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

static void advance(struct plan *plan, int64_t now_ms)
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
    struct port *port;

    while ((port = ft_table_next(f->ports, &index)))
        look_at(&f->plans[port->key.plan], port, around, now_ms);
    for (size_t i = 0; i < FT_FOLLOWER_PLANS_MAX; i++) {
        struct plan *plan = &f->plans[i];

        if (!plan->used)
            continue;
        advance(plan, now_ms);
        ask_for_end(f, plan);
        if (plan->changed)
            emit(plan, around->fabric, around->emitter);
        plan->changed = false;
    }
}

bool ft_follower_next(const struct ft_follower *f, uint32_t *index, const char *fabric,
                      const struct ft_emitter *emitter)
{
    while (*index < FT_FOLLOWER_PLANS_MAX) {
        const struct plan *plan = &f->plans[(*index)++];

        if (!plan->used)
            continue;
        emit(plan, fabric, emitter);
        return true;
    }
    return false;
}

size_t ft_follower_count(const struct ft_follower *f, Fabrictrace__PlanStage stage)
{
    size_t count = 0;

    for (size_t i = 0; i < FT_FOLLOWER_PLANS_MAX; i++)
        count += f->plans[i].used && f->plans[i].stage == stage;
    return count;
}

struct ft_follower_stats ft_follower_stats(const struct ft_follower *f)
{
    struct ft_follower_stats stats = f->stats;

    stats.ports = ft_table_count(f->ports);
    return stats;
}
