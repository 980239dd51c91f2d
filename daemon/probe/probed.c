// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/probe/probed.h"

#include <errno.h>

#include "daemon/join/hints.h"
#include "daemon/probe/probe_list.h"
#include "lib/fabric/choice.h"
#include "proto/record.h"

/* What is known of a probed flow's path, by TTL - 1. */
struct crossed {
    const struct ft_topology *t;
    struct ft_tuple tuple;
    uint32_t src_nic, dst_nic, count;
    uint32_t switches[FT_PROBED_SWITCHES]; /* FT_NONE: not known */
    uint32_t outs[FT_PROBED_SWITCHES];
    Fabrictrace__ProbeGap gaps[FT_PROBED_SWITCHES];
};

static bool is_attached(const struct crossed *crossed, uint32_t switch_id)
{
    const struct ft_nic *nic = ft_topology_nic(crossed->t, crossed->src_nic);

    for (uint32_t i = 0; i < nic->attach_count; i++)
        if (ft_topology_port(crossed->t, nic->attach[i])->switch_id == switch_id)
            return true;
    return false;
}

/* Whether an equal-cost path of so many switches can have this one there. */
static bool lies_there(const struct crossed *crossed, uint32_t switch_id, uint32_t ttl,
                       uint32_t switches)
{
    return crossed->src_nic != FT_NONE && crossed->dst_nic != FT_NONE && ttl < switches &&
           ft_choice_distance(crossed->t, switch_id, crossed->dst_nic) == switches - ttl &&
           (ttl > 1 || is_attached(crossed, switch_id));
}

/* The one link, or aggregate, from a switch to another; FT_NONE: there are several, or none. */
static uint32_t end_between(const struct ft_topology *t, uint32_t from, uint32_t to)
{
    const struct ft_switch *at = ft_topology_switch(t, from);
    uint32_t found = FT_NONE;

    for (uint32_t i = 0; i < at->port_count; i++) {
        uint32_t port = at->ports[i], peer = ft_topology_port(t, port)->peer;

        if (peer == FT_NONE || ft_topology_port(t, peer)->switch_id != to)
            continue;
        if (found == FT_NONE)
            found = port;
        else if (ft_is_port(found) && ft_topology_port(t, found)->lag != FT_NONE &&
                 ft_topology_port(t, found)->lag == ft_topology_port(t, port)->lag)
            found = ft_topology_port(t, found)->lag;
        else if (found != ft_topology_port(t, port)->lag)
            return FT_NONE;
    }
    return found;
}

static Fabrictrace__ProbeGap take_answer(struct ft_probed *p, struct crossed *crossed,
                                         const Fabrictrace__ProbeAnswer *a, uint32_t switches)
{
    struct ft_ip ip;
    uint32_t id;

    if (!a->has_address || ft_ip_from_bytes(a->address.data, a->address.len, &ip)) {
        p->silent++;
        return FABRICTRACE__PROBE_GAP__PROBE_GAP_SILENT;
    }
    id = ft_topology_switch_at(crossed->t, &ip);
    if (id == FT_NONE) {
        p->unknown++;
        return FABRICTRACE__PROBE_GAP__PROBE_GAP_ADDRESS;
    }
    if (!lies_there(crossed, id, a->ttl, switches)) {
        p->strange++;
        return FABRICTRACE__PROBE_GAP__PROBE_GAP_STRANGE;
    }
    p->used++;
    crossed->switches[a->ttl - 1] = id;
    return a->ttl + 1 == switches ? FABRICTRACE__PROBE_GAP__PROBE_GAP_LAST
                                  : FABRICTRACE__PROBE_GAP__PROBE_GAP_NEXT;
}

/* What two neighbours who answered say of the first one. */
static void take_neighbours(struct ft_probed *p, struct crossed *crossed)
{
    for (uint32_t i = 0; i + 1 < crossed->count; i++) {
        uint32_t out;

        if (crossed->switches[i] == FT_NONE || crossed->switches[i + 1] == FT_NONE)
            continue;
        out = end_between(crossed->t, crossed->switches[i], crossed->switches[i + 1]);
        p->parallel += out == FT_NONE;
        crossed->outs[i] = out;
        crossed->gaps[i] = out == FT_NONE    ? FABRICTRACE__PROBE_GAP__PROBE_GAP_PARALLEL
                           : ft_is_port(out) ? FABRICTRACE__PROBE_GAP__PROBE_GAP_NONE
                                             : FABRICTRACE__PROBE_GAP__PROBE_GAP_LAG_MEMBER;
    }
}

static Fabrictrace__ProbeOutcome outcome_of(const Fabrictrace__Probe *probe)
{
    size_t answered = 0;

    if (probe->refused)
        return FABRICTRACE__PROBE_OUTCOME__PROBE_OUTCOME_REFUSED;
    for (size_t i = 0; i < probe->n_answers; i++)
        answered += probe->answers[i]->has_address != 0;
    return answered == 0                 ? FABRICTRACE__PROBE_OUTCOME__PROBE_OUTCOME_SILENT
           : answered < probe->n_answers ? FABRICTRACE__PROBE_OUTCOME__PROBE_OUTCOME_GAPS
                                         : FABRICTRACE__PROBE_OUTCOME__PROBE_OUTCOME_ANSWERED;
}

static void publish(struct ft_probed *p, const struct crossed *crossed,
                    const Fabrictrace__Probe *probe, const struct ft_emitter *emitter)
{
    Fabrictrace__ProbeAnswer answers[FT_PROBED_SWITCHES], *list[FT_PROBED_SWITCHES];
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Probe out = *probe;

    for (size_t i = 0; i < probe->n_answers; i++) {
        uint32_t at = probe->answers[i]->ttl - 1;

        answers[i] = *probe->answers[i];
        answers[i].switch_ = answers[i].out = answers[i].out_lag = NULL;
        if (crossed->switches[at] != FT_NONE)
            answers[i].switch_ =
                (char *)(uintptr_t)ft_topology_switch(crossed->t, crossed->switches[at])->name;
        if (crossed->outs[at] != FT_NONE)
            *(ft_is_port(crossed->outs[at]) ? &answers[i].out : &answers[i].out_lag) =
                (char *)(uintptr_t)ft_topology_end_name(crossed->t, crossed->outs[at]);
        answers[i].has_gap = true;
        answers[i].gap = crossed->gaps[at];
        list[i] = &answers[i];
    }
    out.answers = list;
    out.has_outcome = true;
    out.outcome = outcome_of(probe);
    record.kind_case = FABRICTRACE__RECORD__KIND_PROBE;
    record.probe = &out;
    emitter->record(emitter->arg, &record);
    /* Without memory its last one stays. */
    (void)ft_probe_list_put(p->list, &out);
}

static bool is_sound(const Fabrictrace__Probe *probe)
{
    uint32_t last = 0;

    if (!probe->flow || !probe->has_time_ms || probe->n_answers > FT_PROBED_SWITCHES ||
        (probe->refused && probe->n_answers))
        return false;
    for (size_t i = 0; i < probe->n_answers; i++) {
        if (probe->answers[i]->ttl <= last || probe->answers[i]->ttl > FT_PROBED_SWITCHES)
            return false;
        last = probe->answers[i]->ttl;
    }
    return true;
}

int ft_probed_take(struct ft_probed *p, const struct ft_join *join, const Fabrictrace__Probe *probe,
                   int64_t now_ms, const struct ft_emitter *emitter)
{
    struct ft_hints *hints = ft_join_hints(join);
    struct crossed crossed = {.t = ft_join_topology(join)};

    if (!is_sound(probe) || ft_flow_to_tuple(probe->flow, &crossed.tuple))
        return -EINVAL;
    p->flows += !probe->refused;
    p->refused += probe->refused != NULL;
    crossed.src_nic = ft_topology_nic_at(crossed.t, &crossed.tuple.src);
    crossed.dst_nic = ft_topology_nic_at(crossed.t, &crossed.tuple.dst);
    crossed.count = FT_PROBED_SWITCHES;
    for (uint32_t i = 0; i < crossed.count; i++)
        crossed.switches[i] = crossed.outs[i] = FT_NONE;
    for (size_t i = 0; i < probe->n_answers; i++)
        crossed.gaps[probe->answers[i]->ttl - 1] =
            take_answer(p, &crossed, probe->answers[i], probe->switches);
    take_neighbours(p, &crossed);
    if (hints)
        ft_hints_advance(hints, now_ms);
    for (uint32_t i = 0; hints && i < crossed.count; i++)
        if (crossed.outs[i] != FT_NONE)
            ft_hints_put(hints, &crossed.tuple,
                         &(struct ft_hint){crossed.switches[i], crossed.outs[i], FT_BY_PROBE, 0});
    publish(p, &crossed, probe, emitter);
    return 0;
}
