// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <assert.h>
#include <stdlib.h>

#include "daemon/join/flow_clumps.h"
#include "daemon/join/flow_host.h"
#include "daemon/join/flow_networks.h"
#include "daemon/join/flow_numbers.h"
#include "daemon/join/flow_tunnel.h"
#include "daemon/join/join_impl.h"

/* A flow whose route changes stays away for longer. */
#define AT_ONCE_MS 2000

/* Where an observation was made, as far as the topology knows. */
struct site {
    const struct ft_topology *t;
    uint32_t switch_id, in, out;
};

/* likely: what the table thinks that it is; NULL: nothing. */
static struct ft_flow *flow_of(struct ft_join *j, const struct ft_tuple *tuple, uint64_t hash,
                               struct ft_flow *likely, uint32_t window, int64_t ms)
{
    bool fresh;
    struct ft_flow *flow = ft_table_insert_likely(j->flows, tuple, hash, likely, &fresh);

    if (!flow || !fresh)
        return flow;
    ft_evidence_init(&flow->evidence);
    ft_join_locate(j, flow);
    flow->window = window;
    flow->first_ms = flow->last_ms = ms;
    flow->state = FT_PATH_UNRESOLVED;
    flow->reason = FT_REASON_NO_SAMPLES;
    j->stats.flows_new++;
    return flow;
}

static enum ft_join_result admit(struct ft_join *j, uint32_t window)
{
    if (j->window == 0)
        j->window = window;
    if (window < j->window || (window == j->window && j->sealed))
        return FT_JOIN_LATE;
    if (window > j->window + 1)
        return FT_JOIN_AHEAD;
    if (window > j->newest)
        j->newest = window;
    return FT_JOIN_OK;
}

static struct ft_sighting *sightings(struct ft_evidence *ev)
{
    return ev->size ? ev->list : ev->own;
}

/* Empties the volumes that an older window left in the slots of those up to `window`. */
static void advance_to(struct ft_flow *flow, uint32_t window)
{
    struct ft_sighting *list = sightings(&flow->evidence);
    struct ft_flow_host *host = ft_flow_host(flow);
    struct ft_flow_numbers *numbers = ft_flow_numbers(flow);
    uint32_t steps = window - flow->window;

    if (window <= flow->window)
        return;
    for (unsigned step = 0; step < 2 && step < steps; step++) {
        unsigned slot = (window - step) & 1;

        for (unsigned i = 0; i < flow->evidence.count; i++) {
            ft_sighting_set_samples(&list[i], slot, 0);
            list[i].seconds = ft_seconds_without(list[i].seconds, slot);
            ft_sighting_set_bytes(&list[i], slot, 0);
        }
        flow->seconds = ft_seconds_without(flow->seconds, slot);
        flow->left_out &= ~(1u << slot) & 3u;
        if (host)
            host->sent_bytes[slot] = 0;
        if (numbers) {
            numbers->slots[slot] = (struct ft_numbers){0};
            numbers->goes_on[slot] = false;
        }
    }
    flow->window = window;
}

static void note_role(struct ft_flow *flow, uint64_t data, uint64_t ack, uint64_t cnp)
{
    if (data)
        flow->role = FT_ROLE_DATA;
    else if (ack > cnp && flow->role != FT_ROLE_DATA)
        flow->role = FT_ROLE_ACK;
    else if (cnp && flow->role == FT_ROLE_UNKNOWN)
        flow->role = FT_ROLE_CNP;
}

static void note_route(struct ft_flow *flow, bool source_routed)
{
    flow->source_routed = flow->source_routed || source_routed;
}

/* An exporter that the topology does not know is still one switch, distinguished from others by its
 * hash. */
static uint32_t stranger(const struct ft_ip *agent)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < sizeof(agent->b); i++)
        h = (h ^ agent->b[i]) * 16777619u;
    return h | FT_SWITCH_UNKNOWN;
}

/* Whether any port of a switch has an ifIndex: it answered SNMP, or the file says so. */
static bool is_numbered(const struct ft_topology *t, uint32_t switch_id)
{
    const struct ft_switch *s = ft_topology_switch(t, switch_id);

    for (uint32_t i = 0; i < s->port_count; i++)
        if (ft_topology_port(t, s->ports[i])->ifindex)
            return true;
    return false;
}

static void find_site(const struct ft_join *j, const struct ft_observation *o, struct site *at)
{
    *at = (struct site){j->t, ft_topology_switch_at(j->t, &o->agent), FT_NONE, FT_NONE};
    if (at->switch_id == FT_NONE)
        return;
    if (o->in_ifindex)
        at->in = ft_topology_end_at(j->t, at->switch_id, o->in_ifindex);
    if (o->out_ifindex)
        at->out = ft_topology_end_at(j->t, at->switch_id, o->out_ifindex);
}

/* Asks for what is needed of it, so that the waits of a batch overlap. */
static void hint_site(const struct ft_join *j, const struct site *at)
{
    if (at->in != FT_NONE && ft_is_port(at->in))
        __builtin_prefetch(ft_topology_port(j->t, at->in));
    if (at->out != FT_NONE && ft_is_port(at->out)) {
        __builtin_prefetch(ft_topology_port(j->t, at->out));
        __builtin_prefetch(&j->marks[at->out], 1);
        __builtin_prefetch(&j->trust.links[at->out]);
    }
}

static void count_unknown(struct ft_join *j, const struct ft_observation *o, const struct site *at)
{
    unsigned unknown =
        (o->in_ifindex && at->in == FT_NONE) + (o->out_ifindex && at->out == FT_NONE);

    if (unknown == 0)
        return;
    j->stats.unknown_port += unknown;
    if (!is_numbered(j->t, at->switch_id))
        j->stats.unnumbered_port += unknown;
}

/* *before_ms: of the hop's newest sample until now, INT64_MIN: it had none. */
static struct ft_sighting *see(struct ft_join *j, struct ft_flow *flow, const struct ft_seen *seen,
                               int64_t *before_ms)
{
    bool in_doubt = seen->out != FT_NONE && ft_is_port(seen->out);
    int64_t uncertain_ms = in_doubt ? j->trust.links[seen->out].uncertain_ms : INT64_MIN;
    uint8_t returns = flow->evidence.returns;
    size_t before = ft_flow_beside(flow);
    struct ft_sighting *s = ft_evidence_see(&flow->evidence, seen, uncertain_ms, before_ms);

    ft_join_recount(j, flow, before);
    if (!s || *before_ms == INT64_MIN || flow->reason != FT_REASON_CHANGING)
        return s;
    if (seen->first_ms - *before_ms <= AT_ONCE_MS &&
        ft_evidence_came_back(&flow->evidence, s, *before_ms))
        ft_trust_returned(&j->trust, seen->last_ms);
    if (flow->evidence.returns == returns) {
        struct ft_path known;
        struct ft_judging by = ft_join_judging(j, flow, j->heard_ms, &known);

        ft_evidence_recount(&flow->evidence, &by, s, *before_ms, uncertain_ms);
    }
    return s;
}

/* Counts the second of an observation, at its hop and of the flow. before_ms: of the hop's newest
 * sample until now. */
static void note_second(struct ft_flow *flow, struct ft_sighting *s, int64_t before_ms,
                        int64_t last_ms, unsigned slot)
{
    uint8_t second = (uint8_t)(last_ms / 1000);
    int8_t later = (int8_t)(uint8_t)(second - flow->second);

    if (ft_seconds_of(s->seconds, slot) == 0 || last_ms / 1000 != before_ms / 1000)
        s->seconds = ft_seconds_plus(s->seconds, slot);
    if (later > 0 || ft_seconds_of(flow->seconds, slot) == 0) {
        flow->seconds = ft_seconds_plus(flow->seconds, slot);
        flow->second = second;
    }
}

/* Whether a new sample of the flow may say more of its path. Walking paths is expensive: a flow
 * that a further sample may resolve is judged once a second. */
static bool is_news(const struct ft_flow *flow, bool fresh, bool another_second)
{
    if (ft_flow_is_several(flow))
        return flow->reason != FT_REASON_SEVERAL_NETWORKS;
    return fresh || flow->reason == FT_REASON_CHANGING || flow->reason == FT_REASON_OFF_PATH ||
           (flow->state == FT_PATH_PARTIAL && another_second);
}

/* A sample for which there is no room may have shown all the same that its flow is several. */
static enum ft_join_result no_room(struct ft_join *j, struct ft_flow *flow)
{
    if (ft_flow_is_several(flow) && flow->reason != FT_REASON_SEVERAL_NETWORKS)
        ft_join_judge_now(j, flow, j->heard_ms);
    return ft_join_is_full(j) ? FT_JOIN_TABLE_FULL : FT_JOIN_SPREAD;
}

static void note_time(struct ft_join *j, struct ft_flow *flow, const struct ft_observation *o)
{
    if (o->last_ms > flow->last_ms)
        flow->last_ms = o->last_ms;
    if (o->last_ms > j->heard_ms)
        j->heard_ms = o->last_ms;
    flow->ended = false;
}

/* A sample of a closed window: where the flow was, and nothing of how much it sent. */
static enum ft_join_result take_back(struct ft_join *j, const struct ft_observation *o,
                                     uint64_t hash, struct ft_flow *likely, struct site *at)
{
    struct ft_flow *flow;
    bool another_second;
    struct ft_sighting *s;
    int64_t before_ms;

    if (o->last_ms < j->heard_ms - j->config.evidence_ms)
        return FT_JOIN_LATE;
    flow = flow_of(j, &o->tuple, hash, likely, ft_join_window_at(j, o->first_ms), o->first_ms);
    if (!flow)
        return FT_JOIN_TABLE_FULL;
    j->judged = NULL;
    if (at->t != j->t)
        find_site(j, o, at);
    if (at->switch_id == FT_NONE)
        at->switch_id = stranger(&o->agent);
    else
        ft_trust_named(&j->trust, j->t, at->switch_id, at->in, at->out, o->last_ms);
    if (!ft_flow_take_network(j, flow, o->network, o->last_ms))
        return FT_JOIN_TABLE_FULL;
    s = see(j, flow,
            &(struct ft_seen){at->switch_id, at->in, at->out, o->source, o->first_ms, o->last_ms,
                              ft_join_is_full(j)},
            &before_ms);
    if (!s)
        return no_room(j, flow);
    ft_sighting_note_period(s, o->packets, o->samples);
    ft_sighting_set_in_time(s);
    another_second = o->last_ms / 1000 != flow->last_ms / 1000;
    note_time(j, flow, o);
    ft_flow_take_tunnel(j, flow, o, at->in, at->out);
    note_role(flow, o->data_samples, o->ack_samples, o->cnp_samples);
    note_route(flow, o->source_routed);
    if (is_news(flow, before_ms == INT64_MIN, another_second))
        ft_join_judge_now(j, flow, j->heard_ms);
    return FT_JOIN_OK;
}

static enum ft_join_result recall(struct ft_join *j, const struct ft_observation *o, uint64_t hash,
                                  struct ft_flow *likely, struct site *at)
{
    enum ft_join_result result = take_back(j, o, hash, likely, at);

    j->stats.recalled[result]++;
    return result;
}

void ft_join_recall(struct ft_join *j, bool on)
{
    j->recalling = on;
}

/* Whether all who close the lowest window have a sample of then by that time, unless it comes late
 * by more than half of the grace. */
static bool is_in_time(const struct ft_join *j, int64_t ms)
{
    return ms < ((int64_t)j->window + 1) * j->config.window_ms + j->config.grace_ms / 2;
}

static enum ft_join_result observe(struct ft_join *j, const struct ft_observation *o, uint64_t hash,
                                   struct ft_flow *likely, struct site *at)
{
    uint32_t window = ft_join_window_at(j, o->first_ms);
    uint32_t switch_id, in, out;
    enum ft_join_result result = admit(j, window);
    const struct ft_flow_host *host;
    struct ft_sighting *s;
    struct ft_flow *flow;
    bool another_second, several;
    int64_t before_ms;

    if (result == FT_JOIN_LATE && j->recalling)
        return recall(j, o, hash, likely, at);
    if (result != FT_JOIN_OK)
        return result;
    flow = flow_of(j, &o->tuple, hash, likely, window, o->first_ms);
    if (!flow)
        return FT_JOIN_TABLE_FULL;
    j->judged = NULL;
    advance_to(flow, window);
    if (at->t != j->t)
        find_site(j, o, at);
    switch_id = at->switch_id;
    in = at->in;
    out = at->out;
    if (switch_id == FT_NONE) {
        switch_id = stranger(&o->agent);
        j->stats.unknown_switch++;
    } else {
        count_unknown(j, o, at);
        ft_sampled_add(j->sampled, switch_id, in, out, o->source, window, o->samples, o->bytes);
        ft_outages_add(j->outages, switch_id, window, o->first_ms, o->last_ms, o->samples);
        ft_trust_named(&j->trust, j->t, switch_id, in, out, o->last_ms);
    }
    s = ft_flow_take_network(j, flow, o->network, o->last_ms)
            ? see(j, flow,
                  &(struct ft_seen){switch_id, in, out, o->source, o->first_ms, o->last_ms,
                                    ft_join_is_full(j)},
                  &before_ms)
            : NULL;
    if (!s) {
        flow->left_out |= 1u << (window & 1) & 3u;
        return no_room(j, flow);
    }
    several = ft_flow_is_several(flow);
    if (is_in_time(j, o->first_ms))
        ft_sighting_set_in_time(s);
    ft_sighting_add(s, window & 1, o->packets, o->samples, o->bytes);
    note_second(flow, s, before_ms, o->last_ms, window & 1);
    another_second = o->last_ms / 1000 != flow->last_ms / 1000;
    if (!several)
        ft_flow_take_clumps(j, flow, o, in, out, window, another_second);
    note_time(j, flow, o);
    ft_flow_take_tunnel(j, flow, o, in, out);
    if (o->rest && ft_is_port(out))
        ft_port_depths_add(&j->depths[out], window, o->rest);
    note_route(flow, o->source_routed);
    if (o->numbered && !several)
        ft_flow_take_numbers(j, flow, o->numbered, window & 1);
    note_role(flow, o->data_samples, o->ack_samples, o->cnp_samples);
    if (ft_is_port(out))
        ft_port_marks_add(&j->marks[out], window, o->samples, o->ce_samples, o->last_ms);
    if (ft_is_port(in) && j->hooks.entered && ft_topology_port(j->t, in)->peer == FT_NONE)
        j->hooks.entered(j->hooks.arg, o, flow, in);
    host = ft_flow_host(flow);
    if (host && host->job && j->hooks.of_job && !several)
        j->hooks.of_job(j->hooks.arg, o, host->job);
    if (is_news(flow, before_ms == INT64_MIN, another_second))
        ft_join_judge_now(j, flow, j->heard_ms);
    return FT_JOIN_OK;
}

void ft_join_observe_batch(struct ft_join *j, const struct ft_observation *o, size_t count,
                           uint64_t results[FT_JOIN_RESULTS])
{
    uint64_t hash[FT_JOIN_BATCH];
    struct ft_flow *likely[FT_JOIN_BATCH];
    struct site at[FT_JOIN_BATCH];

    assert(count <= FT_JOIN_BATCH);
    for (size_t i = 0; i < count; i++) {
        hash[i] = ft_table_hash(j->flows, &o[i].tuple);
        ft_table_hint_slot(j->flows, hash[i]);
    }
    for (size_t i = 0; i < count; i++) {
        likely[i] = ft_table_hint_entry(j->flows, hash[i]);
        find_site(j, &o[i], &at[i]);
        hint_site(j, &at[i]);
    }
    for (size_t i = 0; i < count; i++) {
        enum ft_join_result result = observe(j, &o[i], hash[i], likely[i], &at[i]);

        j->stats.observations[result]++;
        results[result]++;
    }
}

static enum ft_join_result report(struct ft_join *j, const struct ft_host_report *r)
{
    uint32_t window = ft_join_window_at(j, r->time_ms - 1);
    enum ft_join_result result = admit(j, window);
    struct ft_flow_host *host;
    struct ft_flow *flow;

    if (result != FT_JOIN_OK)
        return result;
    flow = flow_of(j, &r->tuple, ft_table_hash(j->flows, &r->tuple), NULL, window, r->time_ms);
    if (!flow)
        return FT_JOIN_TABLE_FULL;
    host = ft_flow_host(flow);
    if (!host) {
        size_t without = ft_flow_beside(flow);

        host = ft_join_is_full(j) ? NULL : ft_flow_add_part(flow, FT_FLOW_HOST);
        if (!host)
            return FT_JOIN_TABLE_FULL;
        ft_join_recount(j, flow, without);
        host->qp_local = host->qp_remote = FT_NONE;
    }
    advance_to(flow, window);
    if (r->sending)
        ft_flow_host_add_sent(host, r, window, j->window + j->sealed, j->config.window_ms);
    /* Who owns the flow may be reported last, by the other host: that is published at once, not
     * with the next refresh. */
    if (ft_flow_host_take(host, j->names, r))
        flow->published = 0;
    if (r->bytes && r->time_ms > flow->last_ms)
        flow->last_ms = r->time_ms;
    note_role(flow, r->data_packets, r->ack_packets, r->cnp_packets);
    note_route(flow, r->source_routed);
    if (r->sending)
        flow->ended = r->ended;
    return FT_JOIN_OK;
}

enum ft_join_result ft_join_report(struct ft_join *j, const struct ft_host_report *r)
{
    enum ft_join_result result = report(j, r);

    j->stats.reports[result]++;
    return result;
}

struct ft_flow *ft_join_withdraw(struct ft_join *j, const struct ft_tuple *tuple)
{
    struct ft_flow *flow = ft_table_find(j->flows, tuple);
    struct ft_flow_host *host = flow ? ft_flow_host(flow) : NULL;

    if (!host || !host->paired_by)
        return NULL;
    flow->ended = flow->evidence.count == 0 && !host->reported;
    ft_flow_host_withdraw(host);
    return flow;
}
