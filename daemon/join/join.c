// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/join.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/join/flow_follow.h"
#include "daemon/join/flow_host.h"
#include "daemon/join/moves.h"
#include "daemon/join/names.h"
#include "daemon/join/port_marks.h"
#include "daemon/join/sampled.h"
#include "lib/base/table.h"

#define NAMES_MAX 65536
/* A flow that stayed on its path so often tells of others when it leaves it. */
#define STAYS_STEADY 3
#define CHOICE_MAX   64
/* A flow sampled so often a second cannot move away and back unseen. */
#define DENSE_HZ 5
/* Times flow_idle without a word of its hosts. */
#define LISTS_MISSED 2

struct ft_join {
    struct ft_join_config config;
    struct ft_join_hooks hooks;
    const struct ft_topology *t;
    struct ft_table *flows;
    struct ft_names *names;
    const struct ft_ranks *ranks;
    struct ft_port_marks *marks; /* by port id */
    struct ft_port_depths *depths;
    struct ft_sampled *sampled;
    struct ft_trust trust;
    size_t beside;    /* bytes that flows have beside their entries */
    int64_t heard_ms; /* time of the newest sample */
    int64_t moved_ms; /* since when a flow has been on the path that it moved to last */
    uint32_t window;  /* lowest open */
    uint32_t newest;  /* that took a record */
    bool sealed;      /* it takes no more */
    bool sweeping;    /* unreferenced names are being collected until this window closes */
    /* The last judgement, and of whom: it is published, and places bytes, before anything changes.
     * NULL: something has. */
    const struct ft_flow *judged;
    struct ft_judgement judgement;
    struct ft_join_stats stats;
};

/* Where an observation was made, as far as the topology knows. */
struct site {
    const struct ft_topology *t;
    uint32_t switch_id, in, out;
};

struct ft_join *ft_join_new(const struct ft_join_config *config, const struct ft_topology *t,
                            const struct ft_join_hooks *hooks)
{
    struct ft_join *j = calloc(1, sizeof(*j));

    if (!j)
        return NULL;
    j->config = *config;
    j->hooks = *hooks;
    j->t = t;
    j->flows = ft_table_new(sizeof(struct ft_flow), sizeof(struct ft_tuple), config->flows_max,
                            config->seed);
    j->names = ft_names_new(NAMES_MAX);
    j->marks = calloc((size_t)ft_topology_ports(t) + 1, sizeof(*j->marks));
    j->depths = calloc((size_t)ft_topology_ports(t) + 1, sizeof(*j->depths));
    j->sampled = ft_sampled_new(t);
    if (!j->flows || !j->names || !j->marks || !j->depths || !j->sampled ||
        ft_trust_init(&j->trust, t)) {
        ft_join_free(j);
        return NULL;
    }
    return j;
}

/* What the allocator keeps of an allocation. */
#define HEAP_BYTES 16

static size_t beside(const struct ft_flow *flow)
{
    return (flow->evidence.size ? flow->evidence.size * sizeof(*flow->evidence.list) + HEAP_BYTES
                                : 0) +
           (flow->host ? sizeof(*flow->host) + HEAP_BYTES : 0) +
           (flow->outer ? sizeof(*flow->outer) + HEAP_BYTES : 0) +
           (flow->moves ? sizeof(*flow->moves) + HEAP_BYTES : 0);
}

/* Counts what a flow has since it had `before`. */
static void recount(struct ft_join *j, const struct ft_flow *flow, size_t before)
{
    j->beside += beside(flow) - before;
}

static bool is_full(const struct ft_join *j)
{
    return j->config.beside_max && j->beside >= j->config.beside_max;
}

static void release(struct ft_join *j, struct ft_flow *flow)
{
    j->beside -= beside(flow);
    ft_evidence_free(&flow->evidence);
    free(flow->host);
    free(flow->outer);
    free(flow->moves);
}

void ft_join_free(struct ft_join *j)
{
    struct ft_flow *flow;
    uint32_t index = 0;

    if (!j)
        return;
    while (j->flows && (flow = ft_table_next(j->flows, &index)))
        release(j, flow);
    ft_table_free(j->flows);
    ft_names_free(j->names);
    free(j->marks);
    free(j->depths);
    ft_sampled_free(j->sampled);
    ft_trust_free(&j->trust);
    free(j);
}

void ft_join_set_ranks(struct ft_join *j, const struct ft_ranks *ranks)
{
    j->ranks = ranks;
}

const struct ft_ranks *ft_join_ranks(const struct ft_join *j)
{
    return j->ranks;
}

const struct ft_topology *ft_join_topology(const struct ft_join *j)
{
    return j->t;
}

uint32_t ft_join_window_of(const struct ft_join *j, int64_t ms)
{
    return ms < 0 ? 0 : (uint32_t)(ms / j->config.window_ms);
}

uint32_t ft_join_window(const struct ft_join *j)
{
    return j->window;
}

void ft_join_open(struct ft_join *j, uint32_t window)
{
    j->window = window;
}

void ft_join_seal(struct ft_join *j)
{
    j->sealed = true;
    j->sweeping = ft_names_crowded(j->names);
    if (j->sweeping)
        ft_names_begin(j->names);
}

void ft_join_close(struct ft_join *j)
{
    if (j->sweeping)
        ft_names_sweep(j->names);
    j->sweeping = false;
    j->window++;
    j->sealed = false;
}

uint32_t ft_join_newest(const struct ft_join *j)
{
    return j->newest;
}

void ft_join_restart(struct ft_join *j, uint32_t window)
{
    uint32_t ports = ft_topology_ports(j->t), index = 0;
    struct ft_flow *flow;

    while ((flow = ft_table_next(j->flows, &index))) {
        release(j, flow);
        ft_table_remove(j->flows, flow);
        j->stats.flows_removed++;
    }
    memset(j->marks, 0, ports * sizeof(*j->marks));
    memset(j->depths, 0, ports * sizeof(*j->depths));
    ft_sampled_restart(j->sampled);
    ft_trust_restart(&j->trust, j->t);
    j->judged = NULL;
    j->window = window;
    j->newest = 0;
    j->heard_ms = j->moved_ms = 0;
}

/* Finds the ends of a flow in the topology. */
static void locate(const struct ft_join *j, struct ft_flow *flow)
{
    flow->src_nic = ft_topology_nic_at(j->t, &flow->tuple.src);
    flow->dst_nic = ft_topology_nic_at(j->t, &flow->tuple.dst);
}

/* likely: what the table thinks that it is; NULL: nothing. */
static struct ft_flow *flow_of(struct ft_join *j, const struct ft_tuple *tuple, uint64_t hash,
                               struct ft_flow *likely, uint32_t window, int64_t ms)
{
    bool fresh;
    struct ft_flow *flow = ft_table_insert_likely(j->flows, tuple, hash, likely, &fresh);

    if (!flow || !fresh)
        return flow;
    ft_evidence_init(&flow->evidence);
    locate(j, flow);
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
static void turn_to(struct ft_flow *flow, uint32_t window)
{
    struct ft_sighting *list = sightings(&flow->evidence);
    uint32_t steps = window - flow->window;

    if (window <= flow->window)
        return;
    for (unsigned step = 0; step < 2 && step < steps; step++) {
        unsigned slot = (window - step) & 1;

        for (uint16_t i = 0; i < flow->evidence.count; i++) {
            list[i].samples[slot] = 0;
            list[i].bytes[slot] = 0;
        }
        if (flow->host)
            flow->host->sent_bytes[slot] = 0;
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

static bool same_path(const struct ft_path *a, const struct ft_path *b)
{
    return a->hop_count == b->hop_count &&
           memcmp(a->hops, b->hops, a->hop_count * sizeof(*a->hops)) == 0;
}

static struct ft_judging judging(const struct ft_join *j, const struct ft_flow *flow,
                                 int64_t now_ms)
{
    return (struct ft_judging){.t = j->t,
                               .trust = &j->trust,
                               .verify = !j->config.trust_topology,
                               .policy = j->config.policy,
                               .src_nic = flow->src_nic,
                               .dst_nic = flow->dst_nic,
                               .known = flow->path.hop_count ? &flow->path : NULL,
                               .known_since_ms = flow->path_since_ms,
                               .is_known = flow->state == FT_PATH_RESOLVED,
                               .first_ms = flow->first_ms,
                               .now_ms = now_ms};
}

void ft_join_judge(const struct ft_join *j, const struct ft_flow *flow, struct ft_judgement *out)
{
    struct ft_judging by;

    if (j->judged == flow && j->judgement.state == FT_PATH_PARTIAL) {
        *out = j->judgement;
        return;
    }
    by = judging(j, flow, j->heard_ms);
    ft_evidence_judge(&flow->evidence, &by, out);
}

int64_t ft_join_path_ms(const struct ft_join *j, const struct ft_flow *flow)
{
    int64_t first_ms, last_ms;

    ft_evidence_attested(&flow->evidence, j->t, &flow->path, &first_ms, &last_ms);
    if (last_ms - first_ms > FT_APART_MS) {
        struct ft_judging by = judging(j, flow, j->heard_ms);

        first_ms = ft_evidence_certain_ms(&flow->evidence, &by);
    }
    return first_ms != INT64_MAX && first_ms > flow->path_since_ms ? first_ms : flow->path_since_ms;
}

bool ft_join_was_on_path(const struct ft_join *j, const struct ft_flow *flow, int64_t ms)
{
    int64_t moved_ms = j->moved_ms > j->trust.uncertain_ms ? j->moved_ms : j->trust.uncertain_ms;
    bool quiet = moved_ms < ms - FT_STRETCH_GAP_MS;

    return ft_evidence_covers(&flow->evidence, j->t, &flow->path, ms, ft_join_window_of(j, ms) & 1,
                              quiet ? 0 : (uint32_t)(j->config.window_ms * DENSE_HZ / 1000));
}

bool ft_join_is_placed(const struct ft_join *j, const struct ft_flow *flow, int64_t from_ms)
{
    int64_t moved_ms = j->moved_ms > j->trust.uncertain_ms ? j->moved_ms : j->trust.uncertain_ms;
    int64_t first_ms, last_ms;

    if (moved_ms < from_ms - j->config.evidence_ms)
        return true;
    if (flow->path_since_ms >= from_ms + j->config.window_ms)
        return false;
    ft_evidence_attested(&flow->evidence, j->t, &flow->path, &first_ms, &last_ms);
    return first_ms >= from_ms || first_ms > moved_ms || ft_join_path_ms(j, flow) >= from_ms;
}

uint32_t ft_join_links(const struct ft_join *j, const struct ft_flow *flow,
                       const struct ft_path *path, uint8_t past, unsigned slot)
{
    struct ft_judging by = judging(j, flow, j->heard_ms);

    return ft_evidence_links(&flow->evidence, &by, path, past, slot);
}

/* A steady flow leaves its path: whatever made it do so may have moved others that go where it
 * went, or share an equal-cost set with it. */
static void doubt_others(struct ft_join *j, const struct ft_flow *flow, const struct ft_judging *by,
                         int64_t left_ms)
{
    const struct ft_evidence *ev = &flow->evidence;
    int64_t until_ms = flow->last_ms + j->config.policy.tolerance_ms;
    uint32_t first, last, ports[CHOICE_MAX];

    if (!by->trust || !by->known || ev->stays < STAYS_STEADY || ev->stays <= 3 * ev->returns ||
        !ft_evidence_left_at(ev, by, &first, &last))
        return;
    /* Once for each move. */
    if (j->trust.links[by->known->hops[first].out].uncertain_ms >=
        left_ms + j->config.policy.tolerance_ms)
        return;
    for (uint32_t h = first; h <= last; h++) {
        size_t n = ft_evidence_choice(by, by->known, h, ports, CHOICE_MAX);

        for (size_t i = 0; i < n; i++)
            ft_trust_mark_uncertain(&j->trust, ports[i], until_ms);
    }
    for (uint32_t h = last + 1; h < by->known->hop_count; h++)
        ft_trust_mark_uncertain(&j->trust, by->known->hops[h].out, until_ms);
}

/* Takes a judgement over. Returns whether it is news. */
static bool take(const struct ft_join *j, struct ft_flow *flow, const struct ft_judgement *verdict,
                 const struct ft_path *before, bool *moved)
{
    bool news = verdict->state != flow->state || verdict->reason != flow->reason ||
                (verdict->state == FT_PATH_PARTIAL && verdict->candidates != flow->candidates);
    struct ft_left left = {j->t, before, FT_PAST_NONE};

    *moved = false;
    flow->state = (uint8_t)verdict->state;
    flow->reason = (uint8_t)verdict->reason;
    flow->candidates = (uint32_t)verdict->candidates;
    if (verdict->state == FT_PATH_RESOLVED) {
        if (!same_path(&flow->path, &verdict->path)) {
            *moved = flow->path.hop_count > 0;
            left.number = ft_moves_leave(flow, before, verdict->since_ms);
            flow->path = verdict->path;
            news = true;
        }
        flow->path_since_ms = verdict->since_ms;
    }
    ft_evidence_apply(&flow->evidence, verdict, &left);
    return news;
}

static void judge(struct ft_join *j, struct ft_flow *flow, int64_t now_ms)
{
    struct ft_judging by = judging(j, flow, now_ms);
    struct ft_judgement *verdict = &j->judgement;
    struct ft_path before = flow->path;
    size_t had = beside(flow);
    bool moved, news;

    ft_evidence_judge(&flow->evidence, &by, verdict);
    j->judged = flow;
    if (verdict->contradicted)
        doubt_others(j, flow, &by, verdict->left_ms);
    news = take(j, flow, verdict, &before, &moved);
    recount(j, flow, had);
    if (moved && flow->path_since_ms > j->moved_ms)
        j->moved_ms = flow->path_since_ms;
    if (moved && j->hooks.moved)
        j->hooks.moved(j->hooks.arg, flow, &before, now_ms);
    if (news && j->hooks.judged)
        j->hooks.judged(j->hooks.arg, flow);
}

/* An exporter that the topology does not know is still one place, told from others by its hash. */
static uint32_t stranger(const struct ft_ip *agent)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < sizeof(agent->b); i++)
        h = (h ^ agent->b[i]) * 16777619u;
    return h | FT_SWITCH_UNKNOWN;
}

/* Without memory the flow has no tunnel; the next sample tries again. */
static void keep_outer(struct ft_join *j, struct ft_flow *flow, const struct ft_tuple *outer)
{
    if (!flow->outer) {
        size_t before = beside(flow);

        flow->outer = is_full(j) ? NULL : malloc(sizeof(*flow->outer));
        if (!flow->outer)
            return;
        recount(j, flow, before);
        flow->published = 0;
    }
    *flow->outer = *outer;
}

void ft_join_sampled(const struct ft_join *j, uint32_t switch_id, uint32_t window,
                     uint64_t *samples, double *bytes)
{
    ft_sampled_window(j->sampled, switch_id, window, samples, bytes);
}

uint64_t ft_join_strays(const struct ft_join *j, uint32_t switch_id, uint32_t window)
{
    return ft_sampled_strays(j->sampled, switch_id, window);
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

static struct ft_sighting *see(struct ft_join *j, struct ft_flow *flow, const struct ft_seen *seen,
                               bool *fresh)
{
    int64_t before_ms;
    bool in_doubt = seen->out != FT_NONE && ft_is_port(seen->out);
    int64_t uncertain_ms = in_doubt ? j->trust.links[seen->out].uncertain_ms : INT64_MIN;
    uint8_t returns = flow->evidence.returns;
    size_t before = beside(flow);
    struct ft_sighting *s = ft_evidence_see(&flow->evidence, seen, uncertain_ms, &before_ms);

    recount(j, flow, before);
    *fresh = before_ms == INT64_MIN;
    if (s && !*fresh && flow->reason == FT_REASON_CHANGING && flow->evidence.returns == returns) {
        struct ft_judging by = judging(j, flow, j->heard_ms);

        ft_evidence_recount(&flow->evidence, &by, s, before_ms, uncertain_ms);
    }
    return s;
}

static enum ft_join_result observe(struct ft_join *j, const struct ft_observation *o, uint64_t hash,
                                   struct ft_flow *likely, struct site *at)
{
    uint32_t window = ft_join_window_of(j, o->first_ms);
    uint32_t switch_id, in, out;
    enum ft_join_result result = admit(j, window);
    struct ft_sighting *s;
    struct ft_flow *flow;
    bool fresh, another_second;

    if (result != FT_JOIN_OK)
        return result;
    flow = flow_of(j, &o->tuple, hash, likely, window, o->first_ms);
    if (!flow)
        return FT_JOIN_TABLE_FULL;
    j->judged = NULL;
    turn_to(flow, window);
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
        ft_trust_named(&j->trust, j->t, switch_id, in, out, o->last_ms);
    }
    s = see(j, flow,
            &(struct ft_seen){switch_id, in, out, o->source, o->first_ms, o->last_ms, is_full(j)},
            &fresh);
    if (!s)
        return is_full(j) ? FT_JOIN_TABLE_FULL : FT_JOIN_SPREAD;
    s->samples[window & 1] += o->samples;
    s->bytes[window & 1] += o->bytes;
    /* Walking paths is dear: a flow that a further sample may settle is looked at once a second. */
    another_second = o->last_ms / 1000 != flow->last_ms / 1000;
    if (o->last_ms > flow->last_ms)
        flow->last_ms = o->last_ms;
    if (o->last_ms > j->heard_ms)
        j->heard_ms = o->last_ms;
    flow->ended = false;
    if (o->rest && o->rest->has_outer)
        keep_outer(j, flow, &o->rest->outer);
    if (o->rest && ft_is_port(out))
        ft_port_depths_add(&j->depths[out], window, o->rest);
    note_role(flow, o->data_samples, o->ack_samples, o->cnp_samples);
    if (ft_is_port(out))
        ft_port_marks_add(&j->marks[out], window, o);
    if (ft_is_port(in) && j->hooks.entered && ft_topology_port(j->t, in)->peer == FT_NONE)
        j->hooks.entered(j->hooks.arg, o, flow, in);
    if (fresh || flow->reason == FT_REASON_CHANGING || flow->reason == FT_REASON_OFF_PATH ||
        (flow->state == FT_PATH_PARTIAL && another_second))
        judge(j, flow, j->heard_ms);
    return FT_JOIN_OK;
}

enum ft_join_result ft_join_observe(struct ft_join *j, const struct ft_observation *o)
{
    struct site at = {.t = NULL};
    enum ft_join_result result = observe(j, o, ft_table_hash(j->flows, &o->tuple), NULL, &at);

    j->stats.observations[result]++;
    return result;
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
    uint32_t window = ft_join_window_of(j, r->time_ms - 1);
    enum ft_join_result result = admit(j, window);
    struct ft_flow *flow;

    if (result != FT_JOIN_OK)
        return result;
    flow = flow_of(j, &r->tuple, ft_table_hash(j->flows, &r->tuple), NULL, window, r->time_ms);
    if (!flow)
        return FT_JOIN_TABLE_FULL;
    if (!flow->host) {
        size_t without = beside(flow);

        flow->host = is_full(j) ? NULL : calloc(1, sizeof(*flow->host));
        if (!flow->host)
            return FT_JOIN_TABLE_FULL;
        recount(j, flow, without);
        flow->host->qp_local = flow->host->qp_remote = FT_NONE;
    }
    turn_to(flow, window);
    if (r->sending)
        ft_flow_host_add_sent(flow->host, r, window, j->window + j->sealed, j->config.window_ms);
    /* Whose it is may be told last, by the other end: that is news, not for the refresh alone. */
    if (ft_flow_host_take(flow->host, j->names, r))
        flow->published = 0;
    if (r->bytes && r->time_ms > flow->last_ms)
        flow->last_ms = r->time_ms;
    note_role(flow, r->data_packets, r->ack_packets, r->cnp_packets);
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
    struct ft_flow_host *host = flow ? flow->host : NULL;

    if (!host || !host->paired_by)
        return NULL;
    flow->ended = flow->evidence.count == 0 && !host->reported;
    ft_flow_host_withdraw(host);
    return flow;
}

/* What the closing window says of the flow's rate: the sending host's own count where it has one,
 * else the estimate from samples. */
static void settle_volume(struct ft_flow *flow, uint32_t window)
{
    uint64_t samples, bytes;
    bool from_host;

    if (flow->window < window || flow->window > window + 1)
        return;
    ft_evidence_volume(&flow->evidence, window & 1, &samples, &bytes);
    from_host = flow->host && flow->host->sent_bytes[window & 1] > 0;
    if (from_host)
        bytes = flow->host->sent_bytes[window & 1];
    if (bytes == 0)
        return;
    flow->bytes_from_host = from_host;
    flow->bytes = bytes;
    flow->samples = samples > UINT32_MAX ? UINT32_MAX : (uint32_t)samples;
    flow->bytes_window = window;
}

/* Whether other flows moved on a flow's way, after it was seen there. */
static bool is_in_doubt(const struct ft_join *j, const struct ft_flow *flow)
{
    int64_t uncertain_ms = INT64_MIN, first_ms, last_ms;

    if (flow->state != FT_PATH_RESOLVED || j->trust.uncertain_ms == INT64_MIN)
        return false;
    for (uint32_t h = 0; h < flow->path.hop_count; h++)
        if (j->trust.links[flow->path.hops[h].out].uncertain_ms > uncertain_ms)
            uncertain_ms = j->trust.links[flow->path.hops[h].out].uncertain_ms;
    if (uncertain_ms == INT64_MIN)
        return false;
    ft_evidence_attested(&flow->evidence, j->t, &flow->path, &first_ms, &last_ms);
    return first_ms < uncertain_ms;
}

/* Whether nobody has seen the flow, or said that it is there, for long. Hosts list their idle queue
 * pairs again and again: a flow of theirs outlives a list that is missed. */
static bool is_idle(const struct ft_join *j, const struct ft_flow *flow, int64_t now_ms)
{
    return now_ms - flow->last_ms >= j->config.idle_ms &&
           (!flow->host || now_ms - flow->host->listed_ms >= LISTS_MISSED * j->config.idle_ms);
}

bool ft_join_age(struct ft_join *j, struct ft_flow *flow, uint32_t window, int64_t now_ms)
{
    size_t had;

    j->judged = NULL;
    if (is_idle(j, flow, now_ms) || (flow->ended && flow->window < window)) {
        release(j, flow);
        ft_table_remove(j->flows, flow);
        j->stats.flows_removed++;
        return false;
    }
    if (j->sweeping && flow->host)
        ft_flow_host_use_names(flow->host, j->names);
    settle_volume(flow, window);
    if (ft_evidence_forget(&flow->evidence, now_ms - j->config.evidence_ms) ||
        flow->state == FT_PATH_PARTIAL || flow->state == FT_PATH_MULTIPATH || is_in_doubt(j, flow))
        judge(j, flow, now_ms);
    had = beside(flow);
    ft_moves_forget(flow, ((int64_t)window + 1) * j->config.window_ms);
    recount(j, flow, had);
    return true;
}

uint32_t ft_join_limit(const struct ft_join *j)
{
    return ft_table_limit(j->flows);
}

struct ft_flow *ft_join_at(const struct ft_join *j, uint32_t index)
{
    return ft_table_at(j->flows, index);
}

struct ft_flow *ft_join_find(const struct ft_join *j, const struct ft_tuple *tuple)
{
    return ft_table_find(j->flows, tuple);
}

size_t ft_join_flows(const struct ft_join *j)
{
    return ft_table_count(j->flows);
}

size_t ft_join_bytes(const struct ft_join *j)
{
    return ft_table_bytes(j->flows) + j->beside;
}

const struct ft_port_marks *ft_join_marks(const struct ft_join *j, uint32_t port)
{
    return &j->marks[port];
}

const struct ft_port_depths *ft_join_depths(const struct ft_join *j, uint32_t port)
{
    return &j->depths[port];
}

const struct ft_join_stats *ft_join_stats(const struct ft_join *j)
{
    return &j->stats;
}

void ft_join_confirm_link(struct ft_join *j, uint32_t port, bool confirmed)
{
    j->judged = NULL;
    j->trust.links[port].confirmed = confirmed;
}

int ft_join_set_topology(struct ft_join *j, const struct ft_topology *t, int64_t now_ms)
{
    struct ft_port_marks *marks = calloc((size_t)ft_topology_ports(t) + 1, sizeof(*marks));
    struct ft_port_depths *depths = calloc((size_t)ft_topology_ports(t) + 1, sizeof(*depths));
    const struct ft_topology *from = j->t;
    struct ft_trust trust;
    struct ft_flow *flow;
    uint32_t index = 0;

    if (!marks || !depths || ft_trust_init(&trust, t)) {
        free(marks);
        free(depths);
        return -ENOMEM;
    }
    if (ft_sampled_follow(j->sampled, t)) {
        free(marks);
        free(depths);
        ft_trust_free(&trust);
        return -ENOMEM;
    }
    ft_trust_follow(&trust, t, &j->trust, from, now_ms);
    ft_trust_free(&j->trust);
    j->trust = trust;
    free(j->marks);
    free(j->depths);
    j->marks = marks;
    j->depths = depths;
    j->t = t;
    while ((flow = ft_table_next(j->flows, &index))) {
        size_t had = beside(flow);

        ft_flow_follow(flow, from, t);
        recount(j, flow, had);
        locate(j, flow);
        judge(j, flow, flow->last_ms);
    }
    j->judged = NULL;
    return 0;
}
