// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/probe/prober.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/join/likely.h"
#include "daemon/probe/probe_list.h"
#include "daemon/publish/emit.h"
#include "lib/base/table.h"
#include "lib/fabric/choice.h"
#include "proto/record.h"

#define MISSED     3    /* statuses of an agent, before it has gone */
#define LOOKS      32   /* at a full table, for each that is new */
#define WALKS      16   /* flows whose switches are looked at in a call */
#define SWITCHES   1024 /* on the paths of a flow; one of more is not probed */
#define REFUSED_MS 60000
#define GIVE_UP_MS 1000

struct agent {
    char host[FT_PROBER_NAME];
    char source[FT_PROBER_NAME];
    int64_t until_ms;
};

struct asked {
    struct ft_tuple tuple;
    int64_t next_ms;  /* it is not asked for before */
    int64_t asked_ms; /* 0: nothing is waited for */
};

struct busy {
    uint32_t switch_id;
    int64_t until_ms;
};

struct ft_prober {
    struct ft_prober_config config;
    struct ft_table *agents, *flows, *busy;
    const struct ft_topology *topology; /* that `busy` is of */
    int64_t closed_ms;                  /* nobody is asked before: the topology is another one */
    uint32_t agents_hand, flows_hand, busy_hand, cursor;
    int64_t now_ms, looked_ms, next_ms; /* next: when somebody last asked for a question */
    struct ft_prober_stats stats;
};

struct ft_prober *ft_prober_new(const struct ft_prober_config *config)
{
    struct ft_prober *p = calloc(1, sizeof(*p));

    _Static_assert(sizeof(struct agent) + 16 <= 320, "FT_PROBER_BYTES_MAX");
    _Static_assert(sizeof(struct asked) + 16 <= 96, "FT_PROBER_BYTES_MAX");
    _Static_assert(sizeof(struct busy) + 16 <= 48, "FT_PROBER_BYTES_MAX");
    if (!p)
        return NULL;
    p->config = *config;
    p->agents = ft_table_new(sizeof(struct agent), FT_PROBER_NAME, FT_PROBER_AGENTS, config->seed);
    p->flows =
        ft_table_new(sizeof(struct asked), sizeof(struct ft_tuple), FT_PROBER_FLOWS, config->seed);
    p->busy = ft_table_new(sizeof(struct busy), sizeof(uint32_t), FT_PROBER_SWITCHES, config->seed);
    if (p->agents && p->flows && p->busy)
        return p;
    ft_prober_free(p);
    return NULL;
}

void ft_prober_free(struct ft_prober *p)
{
    if (!p)
        return;
    ft_table_free(p->agents);
    ft_table_free(p->flows);
    ft_table_free(p->busy);
    free(p);
}

static bool agent_is_gone(void *arg, void *entry)
{
    const struct ft_prober *p = arg;

    return ((const struct agent *)entry)->until_ms < p->now_ms;
}

static bool flow_has_rested(void *arg, void *entry)
{
    const struct ft_prober *p = arg;
    const struct asked *a = entry;

    return !a->asked_ms && a->next_ms < p->now_ms;
}

static bool switch_is_free(void *arg, void *entry)
{
    const struct ft_prober *p = arg;

    return ((const struct busy *)entry)->until_ms < p->now_ms;
}

void ft_prober_agent(struct ft_prober *p, const Fabrictrace__HostStatus *status, int64_t now_ms)
{
    char host[FT_PROBER_NAME] = "";
    struct agent *agent;
    bool fresh;

    if (!status->host || !status->source || strlen(status->host) >= FT_PROBER_NAME ||
        strlen(status->source) >= FT_PROBER_NAME)
        return;
    p->now_ms = now_ms;
    memcpy(host, status->host, strlen(status->host));
    agent = ft_table_find(p->agents, host);
    if (!status->probes) {
        /* Another agent of the host may offer it. */
        if (agent && strcmp(agent->source, status->source) == 0)
            ft_table_remove(p->agents, agent);
    } else {
        if (!agent && ft_table_count(p->agents) >= FT_PROBER_AGENTS)
            ft_table_make_room(p->agents, &p->agents_hand, LOOKS, agent_is_gone, p);
        agent = ft_table_insert(p->agents, host, &fresh);
        if (agent) {
            memset(agent->source, 0, sizeof(agent->source));
            memcpy(agent->source, status->source, strlen(status->source));
            agent->until_ms = now_ms + MISSED * (int64_t)status->interval_ms;
        }
    }
    p->stats.agents = ft_table_count(p->agents);
}

/* The switches that probes of a flow may meet. */
struct met {
    uint32_t list[SWITCHES];
    uint32_t count;
};

static bool meet(struct met *met, uint32_t switch_id)
{
    for (uint32_t i = 0; i < met->count; i++)
        if (met->list[i] == switch_id)
            return true;
    if (met->count == SWITCHES)
        return false;
    met->list[met->count++] = switch_id;
    return true;
}

/* Those of its equal-cost paths but the last one, from the source on. False: too many. */
static bool find_met(const struct ft_topology *t, const struct ft_flow *flow, struct met *met)
{
    const struct ft_nic *nic = ft_topology_nic(t, flow->src_nic);

    met->count = 0;
    for (uint32_t i = 0; i < nic->attach_count; i++)
        if (!meet(met, ft_topology_port(t, nic->attach[i])->switch_id))
            return false;
    for (uint32_t i = 0; i < met->count; i++) {
        const struct ft_switch *at = ft_topology_switch(t, met->list[i]);
        uint32_t left = ft_choice_distance(t, met->list[i], flow->dst_nic);

        for (uint32_t k = 0; left != FT_NONE && left > 1 && k < at->port_count; k++) {
            uint32_t peer = ft_topology_port(t, at->ports[k])->peer, next;

            if (peer == FT_NONE)
                continue;
            next = ft_topology_port(t, peer)->switch_id;
            if (ft_choice_distance(t, next, flow->dst_nic) == left - 1 && !meet(met, next))
                return false;
        }
    }
    return true;
}

static bool any_is_busy(const struct ft_prober *p, const struct met *met)
{
    for (uint32_t i = 0; i < met->count; i++) {
        const struct busy *b = ft_table_find(p->busy, &met->list[i]);

        if (b && b->until_ms > p->now_ms)
            return true;
    }
    return false;
}

/* False where one of them cannot be remembered. */
static bool keep_busy(struct ft_prober *p, const struct met *met, int64_t until_ms)
{
    for (uint32_t i = 0; i < met->count; i++) {
        struct busy *b;
        bool fresh;

        if (!ft_table_find(p->busy, &met->list[i]) &&
            ft_table_count(p->busy) >= FT_PROBER_SWITCHES &&
            !ft_table_make_room(p->busy, &p->busy_hand, FT_PROBER_SWITCHES, switch_is_free, p))
            return false;
        b = ft_table_insert(p->busy, &met->list[i], &fresh);
        if (!b)
            return false;
        b->until_ms = until_ms;
    }
    return true;
}

/* Numbers of switches are those of one topology. */
static void follow_topology(struct ft_prober *p, const struct ft_topology *t)
{
    if (p->topology == t)
        return;
    if (p->topology)
        p->closed_ms = p->now_ms + FT_PROBE_LIST_LOST_MS;
    p->topology = t;
    ft_table_clear(p->busy);
}

/* Nothing came of them for too long. */
static void give_up(struct ft_prober *p)
{
    struct asked *a;
    uint32_t index = 0;

    if (!p->stats.pending || p->now_ms - p->looked_ms < GIVE_UP_MS)
        return;
    p->looked_ms = p->now_ms;
    while ((a = ft_table_next(p->flows, &index)))
        if (a->asked_ms && p->now_ms - a->asked_ms > FT_PROBE_LIST_LOST_MS) {
            a->asked_ms = 0;
            p->stats.pending--;
            p->stats.lost++;
        }
}

/* Where this host's clock was set back, what is waited for would be so until it is where it was. */
static void follow_clock(struct ft_prober *p, int64_t now_ms)
{
    struct asked *a;
    uint32_t index = 0;

    if (now_ms < p->next_ms - FT_PROBE_LIST_LOST_MS) {
        p->closed_ms = now_ms + FT_PROBE_LIST_LOST_MS;
        p->looked_ms = now_ms;
        ft_table_clear(p->busy);
        while ((a = ft_table_next(p->flows, &index))) {
            p->stats.pending -= a->asked_ms != 0;
            p->stats.lost += a->asked_ms != 0;
        }
        ft_table_clear(p->flows);
    }
    p->next_ms = now_ms;
}

/* Whether every link of the flow is known by something. */
static bool is_known(const struct ft_join *join, const struct ft_flow *flow)
{
    struct ft_hinted likely;
    uint32_t switch_id, in;

    return flow->state == FT_PATH_RESOLVED || !ft_flow_unknown(join, flow, &switch_id, &in) ||
           (ft_flow_likely(join, flow, &likely) && likely.ask == FT_NONE);
}

static const struct agent *agent_of(const struct ft_prober *p, const struct ft_flow *flow)
{
    char host[FT_PROBER_NAME] = "";
    const struct ft_flow_host *said = ft_flow_host(flow);
    const struct agent *agent;

    if (!said || !said->src_host || strlen(said->src_host) >= FT_PROBER_NAME)
        return NULL;
    memcpy(host, said->src_host, strlen(said->src_host));
    agent = ft_table_find(p->agents, host);
    return agent && agent->until_ms >= p->now_ms ? agent : NULL;
}

static void fill(struct ft_prober_question *q, const struct agent *agent,
                 const struct ft_topology *t, const struct ft_flow *flow)
{
    const struct ft_nic *nic = ft_topology_nic(t, flow->src_nic);
    uint32_t links =
        ft_choice_distance(t, ft_topology_port(t, nic->attach[0])->switch_id, flow->dst_nic);

    memcpy(q->source, agent->source, sizeof(q->source));
    memcpy(q->host, agent->host, sizeof(q->host));
    q->request = (struct ft_probe_request){
        .tuple = flow->tuple,
        .dst_qp = ft_flow_host(flow)->qp_remote == FT_NONE ? 0 : ft_flow_host(flow)->qp_remote,
        .switches = links == FT_NONE ? 0 : links + 1,
    };
}

/* Whether the flow is asked for now. */
static bool ask_for(struct ft_prober *p, const struct ft_join *join, const struct ft_flow *flow,
                    uint32_t *walks, struct ft_prober_question *q)
{
    const struct ft_topology *t = ft_join_topology(join);
    struct asked *a = ft_table_find(p->flows, &flow->tuple);
    struct ft_prober_question asks;
    const struct agent *agent;
    struct met met;
    bool fresh;

    if ((a && (a->asked_ms || a->next_ms > p->now_ms)) ||
        !ft_flow_is_elephant(join, flow, p->config.window_ms, p->config.elephant) ||
        is_known(join, flow))
        return false;
    agent = agent_of(p, flow);
    if (!agent) {
        p->stats.no_agent++;
        return false;
    }
    fill(&asks, agent, t, flow);
    if (asks.request.switches < 2 || *walks == 0)
        return false;
    --*walks;
    if (!find_met(t, flow, &met) || any_is_busy(p, &met))
        return false;
    if (!a && ft_table_count(p->flows) >= FT_PROBER_FLOWS)
        ft_table_make_room(p->flows, &p->flows_hand, LOOKS, flow_has_rested, p);
    a = ft_table_insert(p->flows, &flow->tuple, &fresh);
    if (!a || !keep_busy(p, &met, p->now_ms + FT_PROBE_LIST_LOST_MS))
        return false;
    a->asked_ms = p->now_ms;
    a->next_ms = p->now_ms + p->config.rest_ms;
    p->stats.pending++;
    p->stats.asked++;
    *q = asks;
    return true;
}

bool ft_prober_next(struct ft_prober *p, const struct ft_join *join, int64_t now_ms, uint32_t looks,
                    struct ft_prober_question *question)
{
    uint32_t limit = ft_join_limit(join), walks = WALKS;

    p->now_ms = now_ms;
    follow_clock(p, now_ms);
    give_up(p);
    if (ft_join_judging_all(join))
        return false;
    follow_topology(p, ft_join_topology(join));
    if (now_ms < p->closed_ms)
        return false;
    for (uint32_t i = 0; i < looks && i < limit; i++) {
        const struct ft_flow *flow;

        if (p->cursor >= limit)
            p->cursor = 0;
        flow = ft_join_at(join, p->cursor++);
        if (flow && ask_for(p, join, flow, &walks, question))
            return true;
    }
    return false;
}

/* Nothing is waited for any more; pause_ms: its switches rest. */
static void end(struct ft_prober *p, const struct ft_join *join, struct asked *a, int64_t pause_ms)
{
    const struct ft_flow *flow = ft_join_find(join, &a->tuple);
    struct met met;

    a->asked_ms = 0;
    p->stats.pending--;
    /* Of a flow that is gone they rest until it would have been lost. */
    if (!ft_join_judging_all(join) && p->topology == ft_join_topology(join) && flow &&
        flow->src_nic != FT_NONE && flow->dst_nic != FT_NONE && find_met(p->topology, flow, &met))
        keep_busy(p, &met, p->now_ms + pause_ms);
}

void ft_prober_undelivered(struct ft_prober *p, const struct ft_join *join,
                           const struct ft_prober_question *question, int64_t now_ms)
{
    struct asked *a = ft_table_find(p->flows, &question->request.tuple);

    p->now_ms = now_ms;
    if (!a || !a->asked_ms)
        return;
    end(p, join, a, 0);
    a->next_ms = now_ms + REFUSED_MS;
    p->stats.lost++;
}

void ft_prober_take(struct ft_prober *p, const struct ft_join *join,
                    const Fabrictrace__Probe *probe, int64_t now_ms)
{
    struct ft_tuple tuple;
    struct asked *a;

    if (!probe->by_daemon || !probe->flow || ft_flow_to_tuple(probe->flow, &tuple))
        return;
    p->now_ms = now_ms;
    a = ft_table_find(p->flows, &tuple);
    if (!a || !a->asked_ms)
        return;
    end(p, join, a, probe->refused ? 0 : FT_PROBER_PAUSE_MS);
    if (probe->refused) {
        a->next_ms = now_ms + REFUSED_MS;
        p->stats.refused++;
    } else {
        p->stats.answered++;
    }
}

const struct ft_prober_stats *ft_prober_stats(const struct ft_prober *p)
{
    return &p->stats;
}
