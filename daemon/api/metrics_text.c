// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/metrics_text.h"

#include <stdlib.h>

#include "daemon/api/job_figures.h"
#include "daemon/api/list.h"
#include "daemon/api/metrics.h"
#include "daemon/api/metrics_kafka.h"
#include "daemon/api/view.h"
#include "daemon/api/window_figures.h"
#include "daemon/diagnosis/diagnoser.h"
#include "daemon/diagnosis/rhythms.h"
#include "daemon/hashes/hashes.h"
#include "daemon/health/detours.h"
#include "daemon/incident/recorder.h"
#include "daemon/inference/inference.h"
#include "daemon/jobs/slowest.h"
#include "daemon/oracle/oracle.h"
#include "daemon/pairing/pairing.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/plans/follower.h"
#include "daemon/probe/probed.h"
#include "daemon/probe/prober.h"
#include "daemon/publish/events.h"
#include "daemon/publish/publish.h"
#include "daemon/spread/spread.h"
#include "daemon/window/lossy_links.h"
#include "lib/io/http/http.h"
#include "lib/io/transport/transport.h"
#include "proto/json.h"

#define SEVERITIES 3

/* Of one step. */
#define EVENTS 500
#define ENDS   20000

static const char *const severities[SEVERITIES] = {
    [FABRICTRACE__SEVERITY__SEVERITY_INFO] = "info",
    [FABRICTRACE__SEVERITY__SEVERITY_WARNING] = "warning",
    [FABRICTRACE__SEVERITY__SEVERITY_CRITICAL] = "critical",
};

static void write_records(struct ft_prom *p, const struct ft_pipeline *pipeline)
{
    const struct ft_pipeline_stats *s = ft_pipeline_stats(pipeline);

    ft_prom_family(p, FT_METRIC_RECORDS);
    for (int f = 0; f < FT_RECORD_FATES; f++)
        ft_prom_u64(p, FT_PROM_LABELS(ft_record_fate_name((enum ft_record_fate)f)), s->fates[f]);
    ft_prom_one(p, FT_METRIC_RECORDS_IMPLAUSIBLE, s->implausible);
    ft_prom_family(p, FT_METRIC_FIRST_PATH);
    ft_prom_summary(p, (double)s->first_path_sum_ms / 1000, s->first_paths);
    ft_prom_one_double(p, FT_METRIC_FIRST_PATH_MAX, (double)s->first_path_max_ms / 1000);
    ft_prom_one(p, FT_METRIC_DEFERRED_PATHS, s->deferred_paths);
}

static void write_second(struct ft_prom *p, const struct ft_second *second)
{
    const struct ft_second_stats s = ft_second_stats(second);

    ft_prom_family(p, FT_METRIC_SECOND_OPINIONS);
    ft_prom_u64(p, FT_PROM_LABELS("agrees"), s.agrees);
    ft_prom_u64(p, FT_PROM_LABELS("contradicts"), s.disagrees);
    ft_prom_one(p, FT_METRIC_SECOND_ENTRIES, s.entries);
    ft_prom_one(p, FT_METRIC_SECOND_REFUSED, s.refused);
}

static void write_diagnoses(struct ft_prom *p, const struct ft_diagnoser *d,
                            const struct ft_rhythms *rhythms)
{
    const ProtobufCEnumDescriptor *syndromes = &fabrictrace__syndrome__descriptor;
    const struct ft_diagnoser_stats *s = ft_diagnoser_stats(d);
    char name[FT_JSON_ENUM_BYTES];

    ft_prom_family(p, FT_METRIC_DIAGNOSES);
    for (unsigned i = 1; i < syndromes->n_values; i++) {
        Fabrictrace__Syndrome syndrome = (Fabrictrace__Syndrome)syndromes->values[i].value;

        ft_json_enum_text(syndromes, syndromes->values[i].value, name);
        ft_prom_u64(p, FT_PROM_LABELS(name),
                    ft_diagnoser_count(d, syndrome) + ft_rhythms_stalls(rhythms, syndrome));
    }
    ft_prom_one(p, FT_METRIC_DIAGNOSIS_LOOKS, s->looks);
    ft_prom_one(p, FT_METRIC_DIAGNOSIS_GAPS, s->gaps);
    ft_prom_one(p, FT_METRIC_DIAGNOSIS_FOLDED, s->folded);
    ft_prom_one(p, FT_METRIC_DIAGNOSES_REFUSED, s->refused);
    ft_prom_one(p, FT_METRIC_DIAGNOSIS_RANKS, ft_recent_ranks(ft_diagnoser_recent(d)));
    ft_prom_one(p, FT_METRIC_DIAGNOSIS_DELAYS_REFUSED,
                ft_recent_delays_refused(ft_diagnoser_recent(d)) + s->pairs_left_out);
    ft_prom_one(p, FT_METRIC_DIAGNOSIS_RANKS_REFUSED, ft_recent_refused(ft_diagnoser_recent(d)));
    ft_prom_one(p, FT_METRIC_DIAGNOSIS_CONTESTED, ft_recent_contested(ft_diagnoser_recent(d)));
    ft_prom_one(p, FT_METRIC_DIAGNOSIS_OUTDATED, ft_recent_outdated(ft_diagnoser_recent(d)));
}

struct rhythm_page {
    struct ft_prom *prom;
    size_t metric;
    uint64_t left;
};

static void write_rhythm(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Rhythm *r = record->rhythm;
    struct rhythm_page *page = arg;
    bool period = page->metric == FT_METRIC_JOB_PERIOD;

    if (!page->left || !(period ? r->has_period_ms : r->has_exchange))
        return;
    page->left--;
    ft_prom_double(page->prom, FT_PROM_LABELS(r->job),
                   period ? (double)r->period_ms / 1000 : r->exchange);
}

static void write_rhythms(struct ft_prom *p, const struct ft_rhythms *rhythms, uint64_t jobs_max)
{
    static const size_t families[] = {FT_METRIC_JOB_PERIOD, FT_METRIC_JOB_EXCHANGE};

    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        struct rhythm_page page = {p, families[i], jobs_max};
        uint32_t index = 0;

        ft_prom_family(p, families[i]);
        while (ft_rhythms_next(rhythms, NULL, &index, &(struct ft_emitter){write_rhythm, &page}))
            ;
    }
    ft_prom_one(p, FT_METRIC_RHYTHMS_REFUSED, ft_rhythms_refused(rhythms));
}

static void write_plans(struct ft_prom *p, const struct ft_follower *f)
{
    const ProtobufCEnumDescriptor *stages = &fabrictrace__plan_stage__descriptor;
    const struct ft_follower_stats s = ft_follower_stats(f);
    char name[FT_JSON_ENUM_BYTES];

    ft_prom_family(p, FT_METRIC_PLANS);
    /* The daemon knows none that is planned alone. */
    for (int stage = FABRICTRACE__PLAN_STAGE__PLAN_STAGE_APPLIED;
         stage <= FABRICTRACE__PLAN_STAGE__PLAN_STAGE_WITHDRAWN; stage++) {
        ft_json_enum_text(stages, stage, name);
        ft_prom_u64(p, FT_PROM_LABELS(name), ft_follower_count(f, (Fabrictrace__PlanStage)stage));
    }
    ft_prom_one(p, FT_METRIC_PLAN_PORTS, s.ports);
    ft_prom_one(p, FT_METRIC_PLAN_PORTS_REFUSED, s.refused);
    ft_prom_one(p, FT_METRIC_PLAN_PORTS_HELD, s.held);
    ft_prom_one(p, FT_METRIC_PLAN_ENDS_REFUSED, s.strange);
    ft_prom_one(p, FT_METRIC_PLAN_WITHDRAWALS, s.asked);
}

static void write_hashes(struct ft_prom *p, const struct ft_hashes *hashes)
{
    uint64_t confirmed, contradicted;

    ft_hashes_checked(hashes, &confirmed, &contradicted);
    ft_prom_one(p, FT_METRIC_HASH_SETS, ft_hashes_count(hashes));
    ft_prom_one(p, FT_METRIC_HASH_SETS_REFUSED, ft_hashes_refused(hashes));
    ft_prom_one(p, FT_METRIC_HASH_WIDE, ft_hashes_wide(hashes));
    ft_prom_one(p, FT_METRIC_HASH_SETS_REMOVED, ft_hashes_removed(hashes));
    ft_prom_one(p, FT_METRIC_HASH_SETS_TRUSTED, ft_hashes_trusted(hashes));
    ft_prom_family(p, FT_METRIC_HASH_PREDICTIONS);
    ft_prom_u64(p, FT_PROM_LABELS("agree"), confirmed);
    ft_prom_u64(p, FT_PROM_LABELS("differ"), contradicted);
}

static void write_inference(struct ft_prom *p, const struct ft_inference *inference)
{
    struct ft_inference_stats s;

    ft_inference_stats(inference, &s);
    ft_prom_family(p, FT_METRIC_INFERENCE_FLOWS);
    for (int i = 0; i < FT_TOMOGRAPHY_STATES; i++)
        ft_prom_u64(p, FT_PROM_LABELS(ft_tomography_state_name((enum ft_tomography_state)i)),
                    s.flows[i]);
    ft_prom_family(p, FT_METRIC_INFERENCE_WINDOWS);
    for (int i = 0; i < FT_INFERENCE_OUTCOMES; i++)
        ft_prom_u64(p, FT_PROM_LABELS(ft_inference_window_name((enum ft_inference_window)i)),
                    s.windows[i]);
    ft_prom_one(p, FT_METRIC_INFERENCE_PENDING, s.pending);
    ft_prom_one(p, FT_METRIC_INFERENCE_LEAVES, s.leaves);
    ft_prom_one(p, FT_METRIC_INFERENCE_REFUSED, s.refused);
    ft_prom_family(p, FT_METRIC_INFERENCE_CHECKED);
    ft_prom_u64(p, FT_PROM_LABELS("agree"), s.confirmed);
    ft_prom_u64(p, FT_PROM_LABELS("differ"), s.contradicted);
}

static void write_probed(struct ft_prom *p, const struct ft_probed *probed)
{
    ft_prom_one(p, FT_METRIC_PROBED_FLOWS, probed->flows);
    ft_prom_family(p, FT_METRIC_PROBED_ANSWERS);
    ft_prom_u64(p, FT_PROM_LABELS("used"), probed->used);
    ft_prom_u64(p, FT_PROM_LABELS("unknown"), probed->unknown);
    ft_prom_u64(p, FT_PROM_LABELS("strange"), probed->strange);
    ft_prom_u64(p, FT_PROM_LABELS("silent"), probed->silent);
    ft_prom_one(p, FT_METRIC_PROBED_PARALLEL, probed->parallel);
    ft_prom_one(p, FT_METRIC_PROBED_REFUSED, probed->refused);
}

static void write_prober(struct ft_prom *p, const struct ft_prober *prober)
{
    const struct ft_prober_stats *s = ft_prober_stats(prober);

    ft_prom_family(p, FT_METRIC_PROBE_REQUESTS);
    ft_prom_u64(p, FT_PROM_LABELS("answered"), s->answered);
    ft_prom_u64(p, FT_PROM_LABELS("refused"), s->refused);
    ft_prom_u64(p, FT_PROM_LABELS("lost"), s->lost);
    ft_prom_one(p, FT_METRIC_PROBE_AGENTS, s->agents);
    ft_prom_one(p, FT_METRIC_PROBE_NO_AGENT, s->no_agent);
}

static void write_join(struct ft_prom *p, const struct ft_stages *stages)
{
    const struct ft_join *join = stages->join;
    const struct ft_join_stats *s = ft_join_stats(join);

    ft_prom_one(p, FT_METRIC_FLOWS, ft_join_flows(join));
    ft_prom_one(p, FT_METRIC_FLOW_TABLE_BYTES, ft_join_bytes(join));
    ft_prom_one(p, FT_METRIC_UNKNOWN_SWITCH, s->unknown_switch);
    ft_prom_one(p, FT_METRIC_UNKNOWN_PORT, s->unknown_port);
    ft_prom_one(p, FT_METRIC_SEVERAL_NETWORKS, s->several_networks);
    ft_prom_one(p, FT_METRIC_DETOURS_REFUSED, ft_detours_refused(stages->detours));
    ft_prom_one(p, FT_METRIC_CONGESTION_REFUSED, ft_congestion_refused(stages->congestion));
    if (stages->hashes)
        write_hashes(p, stages->hashes);
    if (stages->inference)
        write_inference(p, stages->inference);
    write_probed(p, stages->probed);
    if (stages->prober)
        write_prober(p, stages->prober);
    if (stages->spread)
        ft_prom_one(p, FT_METRIC_SPREAD_REFUSED, ft_spread_refused(stages->spread));
    write_plans(p, stages->follower);
    ft_prom_one(p, FT_METRIC_RANKS_CONTESTED, ft_ranks_contested(stages->ranks));
    ft_prom_one(p, FT_METRIC_RANKS_UNANNOUNCED, ft_ranks_unannounced(stages->ranks));
    ft_prom_one(p, FT_METRIC_RANKS_DISPLACED, ft_ranks_displaced(stages->ranks));
    if (stages->diagnoser)
        write_diagnoses(p, stages->diagnoser, stages->rhythms);
    if (stages->second)
        write_second(p, stages->second);
    ft_prom_one(p, FT_METRIC_EVENTS_REFUSED, ft_events_refused(stages->events));
    ft_prom_one(p, FT_METRIC_EVENTS_SHORTENED, ft_events_shortened(stages->events));
    ft_prom_one(p, FT_METRIC_RESENDS_REFUSED,
                ft_lossy_links_refused(ft_window_lossy(stages->window)));
    ft_prom_one(p, FT_METRIC_RANK_PAIRS_REFUSED, ft_pair_links_refused(stages->pairs));
    ft_prom_one(p, FT_METRIC_OPERATIONS_FORGOTTEN, ft_slowest_forgotten(stages->slowest));
}

static void write_oracles(struct ft_prom *p, const struct ft_oracle *oracle)
{
    const struct ft_oracle_stats *s = ft_oracle_stats(oracle);
    const struct ft_oracle_of_switch *of;
    uint32_t index = 0;

    ft_prom_family(p, FT_METRIC_ORACLE_QUESTIONS);
    for (int i = 0; i < FT_ORACLE_OUTCOMES; i++)
        ft_prom_u64(p, FT_PROM_LABELS(ft_oracle_outcome_name((enum ft_oracle_outcome)i)),
                    s->outcomes[i]);
    ft_prom_family(p, FT_METRIC_ORACLE_CHECKED);
    for (int i = 0; i < FT_METRICS_ORACLES && (of = ft_oracle_next_switch(oracle, &index)); i++) {
        ft_prom_u64(p, FT_PROM_LABELS(of->name, "agree"), of->agreed);
        ft_prom_u64(p, FT_PROM_LABELS(of->name, "differ"), of->differed);
    }
    ft_prom_one(p, FT_METRIC_ORACLE_UNUSED, s->refused);
    ft_prom_one(p, FT_METRIC_ORACLE_UNSAFE, s->unsafe);
}

static void write_window(struct ft_prom *p, const struct ft_view *view)
{
    const struct ft_window_stats *s = ft_window_stats(view->stages->window);
    struct ft_span last = ft_window_last(view->stages->window);

    ft_prom_one(p, FT_METRIC_WINDOWS, s->closed);
    ft_prom_one(p, FT_METRIC_WINDOWS_SKIPPED, ft_pipeline_stats(view->pipeline)->windows_skipped);
    ft_prom_one(p, FT_METRIC_CLOCK_SET_BACK, ft_pipeline_stats(view->pipeline)->restarts);
    ft_prom_one(p, FT_METRIC_PATH_RECORDS, s->paths);
    if (!s->closed)
        return;
    ft_prom_one_double(p, FT_METRIC_WINDOW_START, (double)last.start_ms / 1000);
    ft_prom_one_double(p, FT_METRIC_WINDOW_END, (double)last.end_ms / 1000);
    ft_prom_one_double(p, FT_METRIC_CLOSE_LAG, (double)view->close_lag_ms / 1000);
    ft_prom_one_double(p, FT_METRIC_CLOSE_SECONDS, (double)view->close_took_ns / 1e9);
}

static void write_tables(struct ft_prom *p, const struct ft_view *view)
{
    const struct ft_pairing *pairing = view->stages->pairing;
    struct ft_pairing_stats ends = {0};
    struct ft_receiver_stats peers = {0};

    if (pairing)
        ft_pairing_stats(pairing, &ends);
    if (view->receiver)
        ft_receiver_stats(view->receiver, &peers);
    ft_prom_family(p, FT_METRIC_TABLE_ENTRIES);
    ft_prom_u64(p, FT_PROM_LABELS("flows"), ft_join_flows(view->stages->join));
    ft_prom_u64(p, FT_PROM_LABELS("events"), ft_events_count(view->stages->events));
    ft_prom_u64(p, FT_PROM_LABELS("queue_pairs"),
                ends.received - ends.ended - ends.refused - ends.aged);
    ft_prom_u64(p, FT_PROM_LABELS("connections"), peers.connected);
    ft_prom_u64(p, FT_PROM_LABELS("links"), ft_window_figures_links(view->figures));
    ft_prom_family(p, FT_METRIC_TABLE_LIMIT);
    ft_prom_u64(p, FT_PROM_LABELS("flows"), view->limits.flows_max);
    ft_prom_u64(p, FT_PROM_LABELS("events"), view->limits.events_max);
    ft_prom_u64(p, FT_PROM_LABELS("queue_pairs"), view->limits.ends_max);
    ft_prom_u64(p, FT_PROM_LABELS("connections"), view->limits.connections_max);
    ft_prom_u64(p, FT_PROM_LABELS("links"), view->limits.links_max);
}

/* Standing events on their way to the page. */
struct events {
    struct ft_prom *page;
    uint64_t counts[FT_METRICS_KINDS][SEVERITIES];
    size_t shown, shown_max;
};

/* A page in progress: its parts one after the other, each in steps. */
struct page {
    const struct ft_view *view;
    struct ft_prom prom;
    size_t part;
    uint32_t index; /* in the part */
    struct events events;
    uint64_t ends[FT_PAIR_STATES];
    struct ft_window_figures_position figures;
    struct ft_job_figures *jobs;
};

static size_t index_of(Fabrictrace__Kind kind)
{
    const ProtobufCEnumDescriptor *kinds = &fabrictrace__kind__descriptor;
    size_t i = 0;

    while (i < kinds->n_values && kinds->values[i].value != (int)kind)
        i++;
    return i;
}

static void take_event(void *arg, const Fabrictrace__Event *event)
{
    struct events *e = arg;
    char kind[FT_JSON_ENUM_BYTES];
    size_t index = index_of(event->kind), severity = (size_t)event->severity;

    if (index >= FT_METRICS_KINDS || severity >= SEVERITIES)
        return;
    e->counts[index][severity]++;
    if (e->shown++ >= e->shown_max)
        return;
    ft_json_enum_text(&fabrictrace__kind__descriptor, (int32_t)event->kind, kind);
    ft_prom_double(e->page,
                   FT_PROM_LABELS(kind, severities[severity], event->subject ? event->subject : ""),
                   (double)event->since_ms / 1000);
}

static void write_counts(struct ft_prom *p, const struct events *e)
{
    const ProtobufCEnumDescriptor *kinds = &fabrictrace__kind__descriptor;
    char kind[FT_JSON_ENUM_BYTES];

    ft_prom_family(p, FT_METRIC_EVENTS);
    for (size_t k = 0; k < kinds->n_values && k < FT_METRICS_KINDS; k++) {
        if (kinds->values[k].value == FABRICTRACE__KIND__KIND_UNKNOWN)
            continue;
        ft_json_enum_text(kinds, kinds->values[k].value, kind);
        for (int s = 0; s < SEVERITIES; s++)
            ft_prom_u64(p, FT_PROM_LABELS(kind, severities[s]), e->counts[k][s]);
    }
}

static bool write_events(struct page *page)
{
    struct events *e = &page->events;

    e->page = &page->prom;
    if (page->index == 0)
        ft_prom_family(&page->prom, FT_METRIC_EVENT_SINCE);
    for (int i = 0; i < EVENTS; i++) {
        if (ft_events_next(page->view->stages->events, &page->index, take_event, e))
            continue;
        write_counts(&page->prom, e);
        ft_prom_one(&page->prom, FT_METRIC_EVENTS_OMITTED,
                    e->shown > e->shown_max ? e->shown - e->shown_max : 0);
        return false;
    }
    return true;
}

static bool write_pairing(struct page *page)
{
    const struct ft_pairing *pairing = page->view->stages->pairing;
    struct ft_prom *p = &page->prom;
    struct ft_pairing_stats s;
    struct ft_pairing_end end;

    if (!pairing)
        return false;
    for (int i = 0; i < ENDS; i++) {
        if (ft_pairing_next(pairing, &page->index, &end)) {
            page->ends[end.state]++;
            continue;
        }
        ft_prom_family(p, FT_METRIC_QPS);
        for (int k = 0; k < FT_PAIR_STATES; k++)
            ft_prom_u64(p, FT_PROM_LABELS(ft_pair_state_name((enum ft_pair_state)k)),
                        page->ends[k]);
        ft_pairing_stats(pairing, &s);
        ft_prom_one(p, FT_METRIC_QPS_WITHDRAWN, s.withdrawn);
        ft_prom_one(p, FT_METRIC_PAIRING_BYTES, ft_pairing_bytes(pairing));
        return false;
    }
    return true;
}

static void write_sinks(struct ft_prom *p, const struct ft_publisher *publisher)
{
    struct ft_sink_stats s;

    ft_prom_family(p, FT_METRIC_SINK_RECORDS);
    for (size_t i = 0; i < ft_publisher_sinks(publisher); i++) {
        const char *sink = ft_publisher_spec(publisher, i);

        ft_publisher_sink(publisher, i, &s);
        ft_prom_u64(p, FT_PROM_LABELS(sink, "processed"), s.processed);
        ft_prom_u64(p, FT_PROM_LABELS(sink, "failed"), s.failed);
        ft_prom_u64(p, FT_PROM_LABELS(sink, "refused"), s.refused);
        for (size_t k = 0; k < s.drop_count; k++)
            ft_prom_u64(p, FT_PROM_LABELS(sink, s.drops[k].reason), s.drops[k].count);
    }
    ft_prom_family(p, FT_METRIC_SINK_PENDING);
    for (size_t i = 0; i < ft_publisher_sinks(publisher); i++) {
        ft_publisher_sink(publisher, i, &s);
        ft_prom_u64(p, FT_PROM_LABELS(ft_publisher_spec(publisher, i)), s.pending);
    }
}

static void write_transport(struct ft_prom *p, const struct ft_receiver *receiver)
{
    struct ft_receiver_stats s;

    if (!receiver)
        return;
    ft_receiver_stats(receiver, &s);
    ft_prom_family(p, FT_METRIC_PAYLOADS);
    ft_prom_u64(p, FT_PROM_LABELS("applied"), s.applied);
    ft_prom_u64(p, FT_PROM_LABELS("duplicate"), s.duplicates);
    ft_prom_u64(p, FT_PROM_LABELS("lost_with_sender"), s.lost);
    ft_prom_u64(p, FT_PROM_LABELS("refused"), s.refused);
    ft_prom_one(p, FT_METRIC_PEERS, s.connected);
    ft_prom_one(p, FT_METRIC_CONNECTIONS_REFUSED, s.connections_refused);
    ft_prom_one(p, FT_METRIC_CONNECTIONS_CUT, s.malformed);
    ft_prom_one(p, FT_METRIC_CROWDED_OUT, s.crowded_out);
}

static void write_incident(struct ft_prom *p, const struct ft_view *view)
{
    struct ft_recorder_stats s;

    if (!view->recorder)
        return;
    ft_recorder_stats(view->recorder, &s);
    ft_prom_one(p, FT_METRIC_INCIDENT_BYTES, s.bytes);
    ft_prom_one(p, FT_METRIC_INCIDENT_SECONDS,
                (uint64_t)(ft_pipeline_now_ms(view->pipeline) - s.from_ms) / 1000);
    ft_prom_one(p, FT_METRIC_INCIDENT_DROPPED, s.dropped);
}

static bool write_own(struct page *page)
{
    const struct ft_view *view = page->view;
    struct ft_account account;
    const struct ft_common_facts common = {view->loop, view->http, &account};
    struct ft_prom *p = &page->prom;

    ft_pipeline_account(view->pipeline, &account);
    ft_common_metrics_write(p, &common);
    ft_prom_family(p, FT_METRIC_FABRIC_INFO);
    ft_prom_u64(p, FT_PROM_LABELS(ft_topology_fabric(ft_join_topology(view->stages->join))), 1);
    write_records(p, view->pipeline);
    write_join(p, view->stages);
    write_rhythms(p, view->stages->rhythms, view->limits.jobs_max);
    write_window(p, view);
    write_tables(p, view);
    write_sinks(p, view->publisher);
    ft_metrics_put_kafka(p, view);
    write_transport(p, view->receiver);
    write_incident(p, view);
    if (view->oracle)
        write_oracles(p, view->oracle);
    return false;
}

static bool write_figures(struct page *page)
{
    if (ft_window_figures_write(page->view->figures, &page->figures, &page->prom))
        return true;
    ft_prom_one(&page->prom, FT_METRIC_LINKS_OMITTED,
                ft_window_figures_refused(page->view->figures));
    return false;
}

static bool write_jobs(struct page *page)
{
    const struct ft_view *view = page->view;
    const struct ft_job_sources sources = {view->stages->ranks, view->stages->slowest,
                                           view->stages->events};

    /* Without memory there are no jobs on the page. */
    if (!page->jobs)
        page->jobs = ft_job_figures_new(&sources, view->limits.jobs_max, view->seed);
    return page->jobs && ft_job_figures_step(page->jobs, &page->prom);
}

static bool (*const parts[])(struct page *page) = {
    write_own, write_events, write_pairing, write_figures, write_jobs,
};

#define PARTS (sizeof(parts) / sizeof(parts[0]))

static int more(void *arg, struct ft_writer *part)
{
    struct page *page = arg;

    page->prom.w = part;
    if (!parts[page->part](page)) {
        page->part++;
        page->index = 0;
    }
    return page->part < PARTS;
}

static void free_page(void *arg)
{
    struct page *page = arg;

    ft_job_figures_free(page->jobs);
    free(page);
}

int ft_metrics_get(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    const struct ft_view *view = arg;
    struct page *page = calloc(1, sizeof(*page));
    struct ft_http_slices slices = {more, free_page, page,
                                    sizeof(*page) + ft_job_figures_bytes(view->stages->ranks)};

    if (!page)
        return ft_api_refuse(body, 503, "no memory");
    page->view = view;
    page->prom.table = &ft_daemon_metrics;
    page->events.shown_max = view->limits.shown_events_max;
    return ft_http_answer_slices(request, &slices)
               ? ft_api_refuse(body, 503, "too many responses are pending: try again later")
               : 200;
}
