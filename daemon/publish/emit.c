// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/publish/emit.h"

#include <math.h>

#include "daemon/jobs/flow_ranks.h"
#include "daemon/join/flow_names.h"
#include "daemon/join/flow_path.h"
#include "daemon/join/likely.h"
#include "lib/fabric/choice.h"
#include "lib/fabric/metrics.h"
#include "lib/fabric/volume.h"
#include "proto/record.h"

/* A flow without bytes in the last windows is of the past. */
#define WINDOWS_BACK 3
#define SHARES_MAX   64

/* protobuf-c's strings are not const, though it never writes to them. */
static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

/* What came in a window was sent from somewhat before it, at either end by as much as its lags
 * differ: as a part of the window, squared. */
static double lag_variance(const struct ft_flow *flow, int64_t window_ms)
{
    double part = flow->lag_ms / (double)window_ms;

    return 2 * part * part;
}

struct ft_rate ft_flow_rate(const struct ft_flow *flow, int64_t window_ms)
{
    double bps = (double)flow->bytes * 8000 / (double)window_ms;
    struct ft_rate rate = {.bps = (uint64_t)bps, .lo_bps = (uint64_t)bps, .hi_bps = (uint64_t)bps};

    if (flow->bytes_by == FT_RATE_PSN) {
        const struct ft_numbers_sent *sent = &ft_flow_numbers(flow)->sent;

        rate.lo_bps = (uint64_t)(sent->bytes_lo * 8000 / (double)window_ms);
        rate.hi_bps = (uint64_t)(sent->bytes_hi * 8000 / (double)window_ms);
    } else if (flow->bytes_by == FT_RATE_SAMPLES && flow->samples) {
        double lag = 1.96 * sqrt(lag_variance(flow, window_ms));
        double lo = hypot(1 - ft_volume_end(flow->samples, -1.96), lag);
        double hi = hypot(ft_volume_end(flow->samples, 1.96) - 1, lag);

        rate.lo_bps = lo < 1 ? (uint64_t)(bps * (1 - lo)) : 0;
        rate.hi_bps = (uint64_t)(bps * (1 + hi));
    }
    return rate;
}

bool ft_flow_messages(const struct ft_flow *flow, uint64_t *messages)
{
    const struct ft_flow_numbers *n = ft_flow_numbers(flow);

    if (!n || n->samples == 0 || n->sent.packets <= 0)
        return false;
    *messages = (uint64_t)(n->sent.packets * n->starts / n->samples);
    return true;
}

double ft_flow_variance(const struct ft_flow *flow, int64_t window_ms)
{
    if (flow->bytes_by == FT_RATE_PSN) {
        double error = ft_flow_numbers(flow)->sent.error;

        return error * error;
    }
    return flow->bytes_by == FT_RATE_HOST || !flow->samples
               ? 0
               : 1.0 / flow->samples + lag_variance(flow, window_ms);
}

void ft_emit_tuple(Fabrictrace__Flow *out, const struct ft_tuple *tuple)
{
    fabrictrace__flow__init(out);
    ft_flow_from_tuple(out, tuple);
}

static void name_end(const struct ft_topology *t, uint32_t end, char **port, char **lag)
{
    if (end != FT_NONE)
        *(ft_is_lag(end) ? lag : port) = text(ft_topology_end_name(t, end));
}

void ft_emit_hop(Fabrictrace__Hop *out, const struct ft_join *join, const struct ft_flow *flow,
                 const struct ft_hop *hop)
{
    const struct ft_topology *t = ft_join_topology(join);
    uint32_t known = hop->out != FT_NONE ? hop->out : hop->in;
    uint64_t here, by_hop;
    double hi;

    fabrictrace__hop__init(out);
    out->switch_ = text(ft_topology_switch(t, ft_topology_end_switch(t, known))->name);
    name_end(t, hop->in, &out->in, &out->in_lag);
    name_end(t, hop->out, &out->out, &out->out_lag);
    if (hop->out == FT_NONE)
        return;
    ft_evidence_at_hop(&flow->evidence, t, hop, &here, &by_hop);
    out->has_samples = out->has_evidence = true;
    out->samples = here;
    out->evidence = here ? FABRICTRACE__HOP_EVIDENCE__HOP_EVIDENCE_SAMPLED
                         : FABRICTRACE__HOP_EVIDENCE__HOP_EVIDENCE_NEIGHBOUR;
    if (here == 0)
        return;
    out->has_share = true;
    out->share = (double)by_hop / (double)here;
    out->has_share_lo = true;
    ft_wilson(by_hop, here, &out->share_lo, &hi);
}

/* Room for the repeated parts of a path record. */
struct parts {
    Fabrictrace__Flow flow, outer;
    Fabrictrace__Qp qp;
    Fabrictrace__Pairing pairing;
    Fabrictrace__Hop hops[FT_PATH_HOPS_MAX];
    Fabrictrace__Hop *hop_list[FT_PATH_HOPS_MAX];
    Fabrictrace__Hop likely[FT_PATH_HOPS_MAX];
    Fabrictrace__Hop *likely_list[FT_PATH_HOPS_MAX];
    Fabrictrace__PathShare shares[SHARES_MAX];
    Fabrictrace__PathShare *share_list[SHARES_MAX];
    Fabrictrace__Hop share_hops[SHARES_MAX][FT_PATH_HOPS_MAX];
    Fabrictrace__Hop *share_hop_list[SHARES_MAX][FT_PATH_HOPS_MAX];
    Fabrictrace__RankPair pairs[FT_RANKS_CANDIDATES_MAX];
    Fabrictrace__RankPair *pair_list[FT_RANKS_CANDIDATES_MAX];
};

/* The certain hops. Of some no more than the switch is certain: switches has them, or is NULL. */
static size_t fill_hops(Fabrictrace__Hop *hops, Fabrictrace__Hop **list, const struct ft_join *join,
                        const struct ft_flow *flow, const struct ft_path *path,
                        const uint32_t *switches)
{
    const struct ft_topology *t = ft_join_topology(join);
    size_t n = 0;

    for (uint32_t h = 0; h < path->hop_count; h++) {
        if (path->hops[h].in != FT_NONE || path->hops[h].out != FT_NONE) {
            ft_emit_hop(&hops[n], join, flow, &path->hops[h]);
        } else if (switches && switches[h] != FT_NONE) {
            fabrictrace__hop__init(&hops[n]);
            hops[n].switch_ = text(ft_topology_switch(t, switches[h])->name);
        } else {
            continue;
        }
        list[n] = &hops[n];
        n++;
    }
    return n;
}

static void fill_shares(Fabrictrace__Path *out, struct parts *parts, const struct ft_join *join,
                        const struct ft_flow *flow)
{
    struct ft_path_share shares[SHARES_MAX];
    size_t n = ft_evidence_shares(&flow->evidence, ft_join_topology(join), flow->src_nic,
                                  flow->dst_nic, FT_SLOTS_BOTH, shares, SHARES_MAX);

    for (size_t i = 0; i < n; i++) {
        Fabrictrace__PathShare *s = &parts->shares[i];

        fabrictrace__path_share__init(s);
        s->n_hops = fill_hops(parts->share_hops[i], parts->share_hop_list[i], join, flow,
                              &shares[i].path, NULL);
        s->hops = parts->share_hop_list[i];
        s->has_share = true;
        s->share = shares[i].share;
        parts->share_list[i] = s;
    }
    out->n_shares = n;
    out->shares = parts->share_list;
}

static void fill_distance(Fabrictrace__Path *out, const struct ft_join *join,
                          const struct ft_flow *flow)
{
    const struct ft_topology *t = ft_join_topology(join);
    const struct ft_nic *nic;
    uint32_t links;

    if (flow->src_nic == FT_NONE || flow->dst_nic == FT_NONE)
        return;
    nic = ft_topology_nic(t, flow->src_nic);
    links =
        nic->attach_count == 0
            ? FT_NONE
            : ft_choice_distance(t, ft_topology_port(t, nic->attach[0])->switch_id, flow->dst_nic);
    out->has_switches = links < FT_PATH_HOPS_MAX;
    out->switches = links + 1;
}

/* The path that follows from what is said besides samples. */
static void fill_likely(Fabrictrace__Path *out, struct parts *parts, const struct ft_join *join,
                        const struct ft_flow *flow)
{
    static const Fabrictrace__HopEvidence by[] = {
        [FT_BY_PREDICTION] = FABRICTRACE__HOP_EVIDENCE__HOP_EVIDENCE_PREDICTED,
        [FT_BY_ORACLE] = FABRICTRACE__HOP_EVIDENCE__HOP_EVIDENCE_ORACLE,
        [FT_BY_PROBE] = FABRICTRACE__HOP_EVIDENCE__HOP_EVIDENCE_PROBED,
        [FT_BY_INFERENCE] = FABRICTRACE__HOP_EVIDENCE__HOP_EVIDENCE_INFERRED,
    };
    struct ft_hinted hinted;
    size_t n = 0;

    if (!ft_flow_likely(join, flow, &hinted))
        return;
    for (uint32_t h = 0; h < hinted.path.hop_count; h++) {
        const struct ft_hop *hop = &hinted.path.hops[h];
        Fabrictrace__Hop *m = &parts->likely[n];

        if (hinted.switches[h] == FT_NONE || (hop->in == FT_NONE && hop->out == FT_NONE))
            continue;
        ft_emit_hop(m, join, flow, hop);
        if (m->has_evidence && m->samples == 0 && hinted.by[h] != FT_BY_SAMPLES)
            m->evidence = by[hinted.by[h]];
        if (m->evidence == by[FT_BY_PREDICTION]) {
            m->has_accuracy = true;
            m->accuracy = (double)hinted.accuracy;
        }
        parts->likely_list[n++] = m;
    }
    out->n_likely = n;
    out->likely = parts->likely_list;
}

/* The moment that the record speaks of. */
static void fill_time(Fabrictrace__Path *out, const struct ft_join *join,
                      const struct ft_flow *flow, const struct ft_span *span)
{
    int64_t ms = ft_flow_seen_ms(flow);

    if (flow->evidence.count == 0)
        return;
    if (flow->state == FT_PATH_RESOLVED)
        ms = ft_join_path_ms(join, flow);
    out->has_time_ms = true;
    out->time_ms = (uint64_t)(ms < span->end_ms ? ms : span->end_ms - 1);
}

static void fill_judgement(Fabrictrace__Path *out, struct parts *parts, const struct ft_join *join,
                           struct ft_flow *flow)
{
    static const Fabrictrace__State states[] = {
        [FT_PATH_UNRESOLVED] = FABRICTRACE__STATE__STATE_UNRESOLVED,
        [FT_PATH_RESOLVED] = FABRICTRACE__STATE__STATE_RESOLVED,
        [FT_PATH_PARTIAL] = FABRICTRACE__STATE__STATE_PARTIAL,
        [FT_PATH_MULTIPATH] = FABRICTRACE__STATE__STATE_MULTIPATH,
    };
    struct ft_judgement judged;
    struct ft_path path = {.hop_count = 0};
    const uint32_t *switches = NULL;

    out->has_state = true;
    out->state = states[flow->state];
    out->reason = text(ft_reason_name(flow->reason));
    if (flow->state == FT_PATH_MULTIPATH) {
        fill_shares(out, parts, join, flow);
        if (out->n_shares)
            return;
        /* It sent nothing recently that would show them. */
        out->state = FABRICTRACE__STATE__STATE_PARTIAL;
        out->reason = text(ft_reason_name(FT_REASON_CHANGING));
    }
    if (flow->state == FT_PATH_RESOLVED) {
        path = ft_flow_path(ft_join_topology(join), flow);
        out->has_path_since_ms = true;
        out->path_since_ms = (uint64_t)flow->path_since_ms;
    } else if (flow->state == FT_PATH_PARTIAL) {
        ft_join_judge(join, flow, &judged);
        path = judged.path;
        switches = judged.switches;
    }
    out->n_hops = fill_hops(parts->hops, parts->hop_list, join, flow, &path, switches);
    out->hops = parts->hop_list;
    fill_likely(out, parts, join, flow);
    if (flow->state != FT_PATH_RESOLVED)
        fill_distance(out, join, flow);
    if (flow->state == FT_PATH_RESOLVED || flow->state == FT_PATH_PARTIAL) {
        out->has_candidates = true;
        out->candidates = flow->candidates;
    }
}

static void fill_numbers(Fabrictrace__Path *out, const struct ft_flow *flow)
{
    const struct ft_flow_numbers *n = ft_flow_numbers(flow);

    if (!n)
        return;
    out->has_nak_samples = n->naks > 0;
    out->nak_samples = n->naks;
    out->has_rnr_samples = n->rnrs > 0;
    out->rnr_samples = n->rnrs;
    out->has_no_credit_samples = n->no_credits > 0;
    out->no_credit_samples = n->no_credits;
    if (n->samples == 0)
        return;
    out->has_numbered_samples = out->has_psn_back_samples = true;
    out->numbered_samples = n->samples;
    out->psn_back_samples = n->back;
    if (!ft_flow_messages(flow, &out->messages))
        return;
    out->has_data_packets = out->has_messages = true;
    out->data_packets = (uint64_t)n->sent.packets;
}

static void fill_rate(Fabrictrace__Path *out, const struct ft_flow *flow,
                      const struct ft_span *span)
{
    static const Fabrictrace__RateSource sources[] = {
        [FT_RATE_SAMPLES] = FABRICTRACE__RATE_SOURCE__RATE_SOURCE_SFLOW,
        [FT_RATE_HOST] = FABRICTRACE__RATE_SOURCE__RATE_SOURCE_HOST,
        [FT_RATE_PSN] = FABRICTRACE__RATE_SOURCE__RATE_SOURCE_PSN,
    };
    struct ft_rate rate;

    /* Of the window that the record speaks of, or of none. */
    if (flow->bytes_window == 0 ||
        flow->bytes_window * (span->end_ms - span->start_ms) != span->start_ms)
        return;
    rate = ft_flow_rate(flow, span->end_ms - span->start_ms);
    out->has_rate_bps = out->has_rate_lo_bps = out->has_rate_hi_bps = true;
    out->rate_bps = rate.bps;
    out->rate_lo_bps = rate.lo_bps;
    out->rate_hi_bps = rate.hi_bps;
    out->has_rate_source = true;
    out->rate_source = sources[flow->bytes_by];
    out->has_bytes = true;
    out->bytes = flow->bytes;
    fill_numbers(out, flow);
}

static void fill_pairing(Fabrictrace__Path *out, struct parts *parts, struct ft_flow_host *host)
{
    Fabrictrace__Pairing *m = &parts->pairing;

    if (!host->paired_by && !host->withdrawn)
        return;
    fabrictrace__pairing__init(m);
    out->pairing = m;
    m->has_withdrawn = m->withdrawn = host->withdrawn;
    if (!host->paired_by)
        return;
    host->shown = true;
    m->has_by = true;
    m->by = (Fabrictrace__PairedBy)host->paired_by;
    m->comm_id = text(host->pair_comm);
    if (!host->peer_device)
        return;
    m->host = text(host->dst_host);
    m->device = text(host->peer_device);
    m->has_qp = host->qp_remote != FT_NONE;
    m->qp = host->qp_remote;
}

static void fill_host(Fabrictrace__Path *out, struct parts *parts, const struct ft_flow *flow)
{
    const struct ft_flow_host *host = ft_flow_host(flow);

    /* Samples are packets on the wire: their tuple is observed, whoever else computed it. */
    out->has_tuple_source = true;
    out->tuple_source = FABRICTRACE__TUPLE_SOURCE__TUPLE_SOURCE_OBSERVED;
    if (!host)
        return;
    if (flow->evidence.count == 0)
        out->tuple_source = (Fabrictrace__TupleSource)host->tuple_source;
    fabrictrace__qp__init(&parts->qp);
    parts->qp.has_local = host->qp_local != FT_NONE;
    parts->qp.local = host->qp_local;
    parts->qp.has_remote = host->qp_remote != FT_NONE;
    parts->qp.remote = host->qp_remote;
    if (parts->qp.has_local || parts->qp.has_remote)
        out->qp = &parts->qp;
    fill_pairing(out, parts, ft_flow_host(flow));
    out->has_pid = host->pid != 0;
    out->pid = host->pid;
    out->comm = text(host->comm);
    out->job = text(host->job);
}

/* One pair is certain; several are candidates. */
static void fill_ranks(Fabrictrace__Path *out, struct parts *parts, const struct ft_join *join,
                       const struct ft_flow *flow)
{
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];
    bool more;
    size_t n = ft_flow_ranks(join, flow, pairs, &more);

    if (n == 1 && !more) {
        out->comm_id = text(pairs[0].comm_id);
        out->has_src_rank = out->has_dst_rank = true;
        out->src_rank = pairs[0].src;
        out->dst_rank = pairs[0].dst;
        if (!out->job)
            out->job = text(pairs[0].job);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        fabrictrace__rank_pair__init(&parts->pairs[i]);
        parts->pairs[i].comm_id = text(pairs[i].comm_id);
        parts->pairs[i].has_src_rank = parts->pairs[i].has_dst_rank = true;
        parts->pairs[i].src_rank = pairs[i].src;
        parts->pairs[i].dst_rank = pairs[i].dst;
        parts->pair_list[i] = &parts->pairs[i];
    }
    out->n_rank_candidates = n;
    out->rank_candidates = parts->pair_list;
}

/* True: it is several flows, of which no rate, host or rank is that of the others. */
static bool fill_networks(Fabrictrace__Path *out, const struct ft_flow *flow)
{
    const struct ft_flow_networks *n = ft_flow_networks(flow);

    if (!n)
        return false;
    out->has_vni = true;
    out->vni = n->network - 1;
    out->has_other_vni = n->several;
    out->other_vni = n->several ? n->other - 1 : 0;
    return n->several;
}

void ft_emit_path(const struct ft_emitter *emitter, const struct ft_join *join,
                  struct ft_flow *flow, const struct ft_span *span)
{
    static const Fabrictrace__Role roles[] = {
        [FT_ROLE_UNKNOWN] = FABRICTRACE__ROLE__ROLE_UNKNOWN,
        [FT_ROLE_DATA] = FABRICTRACE__ROLE__ROLE_DATA,
        [FT_ROLE_ACK] = FABRICTRACE__ROLE__ROLE_ACK,
        [FT_ROLE_CNP] = FABRICTRACE__ROLE__ROLE_CNP,
    };
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Path out = FABRICTRACE__PATH__INIT;
    const struct ft_flow_tunnel *tunnel = ft_flow_tunnel(flow);
    struct parts parts;
    bool several;

    out.has_window_start_ms = out.has_window_end_ms = true;
    out.window_start_ms = (uint64_t)span->start_ms;
    out.window_end_ms = (uint64_t)span->end_ms;
    out.fabric = text(ft_topology_fabric(ft_join_topology(join)));
    ft_emit_tuple(&parts.flow, &flow->tuple);
    out.flow = &parts.flow;
    several = fill_networks(&out, flow);
    if (tunnel && !several) {
        ft_emit_tuple(&parts.outer, &tunnel->outer);
        out.outer = &parts.outer;
    }
    out.has_source_routed = out.source_routed = flow->source_routed;
    out.has_role = true;
    out.role = roles[flow->role];
    fill_judgement(&out, &parts, join, flow);
    fill_time(&out, join, flow, span);
    if (!several) {
        fill_rate(&out, flow, span);
        out.src_host = text(ft_flow_src_host(join, flow));
        out.dst_host = text(ft_flow_dst_host(join, flow));
        fill_host(&out, &parts, flow);
        fill_ranks(&out, &parts, join, flow);
    }
    out.has_first_seen_ms = true;
    out.first_seen_ms = (uint64_t)flow->first_ms;
    record.kind_case = FABRICTRACE__RECORD__KIND_PATH;
    record.path = &out;
    emitter->record(emitter->arg, &record);
}

void ft_emit_event(Fabrictrace__Event *out, Fabrictrace__Kind kind, Fabrictrace__Severity severity,
                   const char *fabric, int64_t since_ms, int64_t time_ms)
{
    fabrictrace__event__init(out);
    out->has_time_ms = out->has_since_ms = out->has_kind = out->has_severity = true;
    out->time_ms = (uint64_t)time_ms;
    out->since_ms = (uint64_t)since_ms;
    out->kind = kind;
    out->severity = severity;
    out->fabric = text(fabric);
}

void ft_emit_link(Fabrictrace__Evidence *out, const struct ft_topology *t, uint32_t id)
{
    const struct ft_port *port = ft_topology_port(t, id);

    out->switch_ = text(ft_topology_switch(t, port->switch_id)->name);
    out->port = text(port->name);
    if (port->group != FT_NONE)
        out->group = text(ft_topology_group(t, port->group)->name);
    if (port->peer == FT_NONE)
        return;
    port = ft_topology_port(t, port->peer);
    out->peer = text(ft_topology_switch(t, port->switch_id)->name);
    out->peer_port = text(port->name);
}

bool ft_flow_is_elephant(const struct ft_join *join, const struct ft_flow *flow, int64_t window_ms,
                         double share)
{
    const struct ft_topology *t = ft_join_topology(join);
    uint64_t speed_bps;

    if (ft_role_answers((enum ft_role)flow->role) || flow->ended || flow->src_nic == FT_NONE ||
        flow->bytes_window + WINDOWS_BACK < ft_join_window(join) ||
        ft_topology_nic(t, flow->src_nic)->attach_count == 0)
        return false;
    speed_bps = ft_topology_port(t, ft_topology_nic(t, flow->src_nic)->attach[0])->speed_bps;
    return speed_bps > 0 && (double)ft_flow_rate(flow, window_ms).bps >= share * (double)speed_bps;
}
