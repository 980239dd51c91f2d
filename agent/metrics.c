// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/metrics.h"

#include <inttypes.h>

#define PREFIX "fabrictrace_agent_"

enum metric {
    METRIC_FLOWS = FT_METRIC_COMMON_COUNT,
    METRIC_FLOW_REPORTS,
    METRIC_TABLE_ENTRIES,
    METRIC_TABLE_LIMIT,
    METRIC_CAPTURE_PACKETS,
    METRIC_CAPTURE_DROPS,
    METRIC_CAPTURE_OPEN,
    METRIC_MICRO_SIDS,
    METRIC_RDMA_DEVICES,
    METRIC_RDMA_QPS,
    METRIC_RDMA_ROUNDS,
    METRIC_RDMA_ROUND_SECONDS,
    METRIC_RDMA_REQUESTS_FAILED,
    METRIC_RDMA_LISTS_CUT,
    METRIC_RDMA_QUERIES,
    METRIC_RDMA_QUERIES_FAILED,
    METRIC_RDMA_QUERIES_AMBIGUOUS,
    METRIC_NCCL_JOBS,
    METRIC_NCCL_REFUSED,
    METRIC_NCCL_IMPLAUSIBLE,
    METRIC_NCCL_WAITING,
    METRIC_DESCRIPTORS_UNWANTED,
    METRIC_DESCRIPTORS_CLOSING,
    METRIC_PLANS,
    METRIC_PLAN_PORTS,
    METRIC_PLAN_REFUSED,
    METRIC_PLANS_WITHDRAWN,
    METRIC_PLAN_NOTICES_REFUSED,
    METRIC_PROBES,
    METRIC_PROBE_PACKETS,
    METRIC_PROBE_ANSWERS,
    METRIC_PROBE_REFUSED,
    METRIC_RAS_ANSWERS,
    METRIC_RAS_ELSEWHERE,
    METRIC_FLIGHT_DUMPS,
    METRIC_STATES_LEFT_OUT,
    METRIC_QUEUE_BYTES,
    METRIC_QUEUE_LIMIT,
    METRIC_CONNECTED,
    METRIC_RECORDS_REPEATED,
};

/* clang-format off */
static const struct ft_prom_metric table[] = {
    FT_COMMON_METRICS(PREFIX),
    [METRIC_FLOWS] = {PREFIX "flows", FT_PROM_GAUGE, "flows", NULL, NULL, 1,
        "Flows remembered."},
    [METRIC_FLOW_REPORTS] = {PREFIX "flow_reports_total", FT_PROM_COUNTER, "reports", NULL, NULL, 1,
        "Flow reports made."},
    [METRIC_TABLE_ENTRIES] = {PREFIX "table_entries", FT_PROM_GAUGE, "entries", "table", NULL, 3,
        "What a table holds: flows, queue pairs, training processes."},
    [METRIC_TABLE_LIMIT] = {PREFIX "table_limit_entries", FT_PROM_GAUGE, "entries", "table", NULL, 3,
        "Capacity of the table, by the settings flows_max, rdma.queue_pairs_max and nccl.jobs_max."},
    [METRIC_CAPTURE_PACKETS] = {PREFIX "capture_packets_total", FT_PROM_COUNTER, "packets", "interface", "interface", 1,
        "Packets taken from an interface."},
    [METRIC_CAPTURE_DROPS] = {PREFIX "capture_drops_total", FT_PROM_COUNTER, "packets", "interface", "interface", 1,
        "Packets that the kernel dropped because the buffer was full."},
    [METRIC_CAPTURE_OPEN] = {PREFIX "capture_open", FT_PROM_GAUGE, "0 or 1", "interface", "interface", 1,
        "Whether an interface is being captured on."},
    [METRIC_MICRO_SIDS] = {PREFIX "micro_sid_packets_total", FT_PROM_COUNTER, "packets", "outcome", NULL, 2,
        "Packets whose destination is in srv6_blocks: known, named by what stays of it, or unknown."},
    [METRIC_RDMA_DEVICES] = {PREFIX "rdma_devices", FT_PROM_GAUGE, "devices", NULL, NULL, 1,
        "RDMA devices."},
    [METRIC_RDMA_QPS] = {PREFIX "rdma_queue_pairs", FT_PROM_GAUGE, "queue pairs", "state", NULL, 5,
        "Queue pairs, by whether their flow is known."},
    [METRIC_RDMA_ROUNDS] = {PREFIX "rdma_rounds_total", FT_PROM_COUNTER, "rounds", NULL, NULL, 1,
        "Reads of the kernel's RDMA state."},
    [METRIC_RDMA_ROUND_SECONDS] = {PREFIX "rdma_round_seconds_total", FT_PROM_COUNTER, "seconds", NULL, NULL, 1,
        "Time spent on them."},
    [METRIC_RDMA_REQUESTS_FAILED] = {PREFIX "rdma_requests_failed_total", FT_PROM_COUNTER, "requests", NULL, NULL, 1,
        "Requests that the kernel refused."},
    [METRIC_RDMA_LISTS_CUT] = {PREFIX "rdma_lists_cut_total", FT_PROM_COUNTER, "lists", NULL, NULL, 1,
        "Lists that changed while they were written."},
    [METRIC_RDMA_QUERIES] = {PREFIX "rdma_queries_total", FT_PROM_COUNTER, "processes", NULL, NULL, 1,
        "Processes whose queue pairs were queried."},
    [METRIC_RDMA_QUERIES_FAILED] = {PREFIX "rdma_queries_failed_total", FT_PROM_COUNTER, "processes", NULL, NULL, 1,
        "Of these, the processes that could not be queried."},
    [METRIC_RDMA_QUERIES_AMBIGUOUS] = {PREFIX "rdma_queries_ambiguous_total", FT_PROM_COUNTER, "queue pairs", NULL, NULL, 1,
        "Queue pairs that a query could not distinguish from others."},
    [METRIC_NCCL_JOBS] = {PREFIX "nccl_jobs", FT_PROM_GAUGE, "processes", NULL, NULL, 1,
        "Training processes connected by the plugin."},
    [METRIC_NCCL_REFUSED] = {PREFIX "nccl_refused_total", FT_PROM_COUNTER, "connections", NULL, NULL, 1,
        "Connections of jobs that were rejected."},
    [METRIC_NCCL_IMPLAUSIBLE] = {PREFIX "nccl_implausible_total", FT_PROM_COUNTER, "counters", NULL, NULL, 1,
        "Counters in the memory of jobs that said more than a process can do: they do not count."},
    [METRIC_NCCL_WAITING] = {PREFIX "nccl_waiting", FT_PROM_GAUGE, "records", NULL, NULL, 1,
        "Records in the memory of jobs that the agent has not read yet: it reads for a few milliseconds at a time, users in turn."},
    [METRIC_DESCRIPTORS_UNWANTED] = {PREFIX "unwanted_descriptors_total", FT_PROM_COUNTER, "connections", "socket", NULL, 2,
        "Connections of processes that were closed with descriptors in them that nobody asked for: nccl, plan."},
    [METRIC_DESCRIPTORS_CLOSING] = {PREFIX "closing_descriptors", FT_PROM_GAUGE, "descriptors", "socket", NULL, 2,
        "Descriptors that processes sent, and connections with them, that are still being closed: a file system may hang."},
    [METRIC_PLANS] = {PREFIX "plans", FT_PROM_GAUGE, "plans", NULL, NULL, 1,
        "Plans of source ports that jobs have asked for, and that are there."},
    [METRIC_PLAN_PORTS] = {PREFIX "plan_ports_total", FT_PROM_COUNTER, "queue pairs", "outcome", NULL, 5,
        "Queue pairs that asked for a port: asked, given; and what became of it: label, sport, refused."},
    [METRIC_PLAN_REFUSED] = {PREFIX "plan_refused_total", FT_PROM_COUNTER, "connections", NULL, NULL, 1,
        "Connections of jobs at plan.socket that were rejected."},
    [METRIC_PLANS_WITHDRAWN] = {PREFIX "plans_withdrawn_total", FT_PROM_COUNTER, "plans", NULL, NULL, 1,
        "Plans that the daemon withdrew because samples do not bear them out."},
    [METRIC_PLAN_NOTICES_REFUSED] = {PREFIX "plan_notices_refused_total", FT_PROM_COUNTER, "notices", NULL, NULL, 1,
        "Notices of the daemon that were not a withdrawal of a plan."},
    [METRIC_PROBES] = {PREFIX "probes_total", FT_PROM_COUNTER, "flows", "outcome", NULL, 2,
        "Flows that were to be probed: probed, refused; present where probe.socket or probe.daemon is set."},
    [METRIC_PROBE_PACKETS] = {PREFIX "probe_packets_total", FT_PROM_COUNTER, "packets", "outcome", NULL, 2,
        "Probes: sent, or failed because the kernel did not take them."},
    [METRIC_PROBE_ANSWERS] = {PREFIX "probe_answers_total", FT_PROM_COUNTER, "messages", "outcome", NULL, 2,
        "Messages that a TTL ended (ICMP): answered is one of the probes, foreign all others."},
    [METRIC_PROBE_REFUSED] = {PREFIX "probe_refused_total", FT_PROM_COUNTER, "connections", NULL, NULL, 1,
        "Connections at probe.socket that were rejected."},
    [METRIC_RAS_ANSWERS] = {PREFIX "ras_answers_total", FT_PROM_COUNTER, "answers", "outcome", NULL, 4,
        "What became of asking NCCL RAS: answered, unreachable, refused (no JSON), invalid; present with states.ras or states.flight."},
    [METRIC_RAS_ELSEWHERE] = {PREFIX "ras_elsewhere_total", FT_PROM_COUNTER, "communicators", NULL, NULL, 1,
        "Communicators in its answers that the agent of another host reports."},
    [METRIC_FLIGHT_DUMPS] = {PREFIX "flight_dumps_total", FT_PROM_COUNTER, "dumps", "outcome", NULL, 2,
        "Dumps of Flight Recorder: read, or invalid (no plain data, too long, too many, or not to be read)."},
    [METRIC_STATES_LEFT_OUT] = {PREFIX "states_left_out_total", FT_PROM_COUNTER, "entries", NULL, NULL, 1,
        "Ranks, groups and counts in answers and dumps that made no sense or found no room."},
    [METRIC_QUEUE_BYTES] = {PREFIX "queue_bytes", FT_PROM_GAUGE, "bytes", NULL, NULL, 1,
        "Memory of the records that wait for the daemon."},
    [METRIC_QUEUE_LIMIT] = {PREFIX "queue_limit_bytes", FT_PROM_GAUGE, "bytes", NULL, NULL, 1,
        "Its limit: the setting daemon.queue."},
    [METRIC_CONNECTED] = {PREFIX "connected", FT_PROM_GAUGE, "0 or 1", NULL, NULL, 1,
        "Whether the daemon is connected."},
    [METRIC_RECORDS_REPEATED] = {PREFIX "records_repeated_total", FT_PROM_COUNTER, "records", NULL, NULL, 1,
        "Records sent to one daemon, not acknowledged and sent to another one: both may have them."},
    {.name = NULL},
};
/* clang-format on */

const struct ft_prom_table ft_agent_metrics_table = {table};

static void write_interfaces(struct ft_prom *p, struct ft_capture *capture)
{
    struct ft_capture_stats stats;
    struct ft_capture_usids usids;

    ft_prom_family(p, METRIC_CAPTURE_PACKETS);
    for (size_t i = 0; ft_capture_stats(capture, i, &stats); i++)
        ft_prom_u64(p, FT_PROM_LABELS(stats.interface), stats.packets);
    ft_prom_family(p, METRIC_CAPTURE_DROPS);
    for (size_t i = 0; ft_capture_stats(capture, i, &stats); i++)
        ft_prom_u64(p, FT_PROM_LABELS(stats.interface), stats.kernel_drops);
    ft_prom_family(p, METRIC_CAPTURE_OPEN);
    for (size_t i = 0; ft_capture_stats(capture, i, &stats); i++)
        ft_prom_u64(p, FT_PROM_LABELS(stats.interface), stats.open);
    usids = ft_capture_usids(capture);
    ft_prom_family(p, METRIC_MICRO_SIDS);
    ft_prom_u64(p, FT_PROM_LABELS("known"), usids.known);
    ft_prom_u64(p, FT_PROM_LABELS("unknown"), usids.unknown);
}

static void write_tables(struct ft_prom *p, const struct ft_agent_metrics *m, uint64_t flows,
                         const struct ft_rdma_status *rdma)
{
    ft_prom_family(p, METRIC_TABLE_ENTRIES);
    ft_prom_u64(p, FT_PROM_LABELS("flows"), flows);
    if (rdma)
        ft_prom_u64(p, FT_PROM_LABELS("queue_pairs"),
                    rdma->table.resolved + rdma->table.unconnected + rdma->table.no_destination +
                        rdma->table.no_port);
    if (m->jobs)
        ft_prom_u64(p, FT_PROM_LABELS("jobs"), ft_jobs_count(m->jobs));
    ft_prom_family(p, METRIC_TABLE_LIMIT);
    ft_prom_u64(p, FT_PROM_LABELS("flows"), m->settings->flows_max);
    if (rdma)
        ft_prom_u64(p, FT_PROM_LABELS("queue_pairs"), m->settings->rdma_qps_max);
    if (m->jobs)
        ft_prom_u64(p, FT_PROM_LABELS("jobs"), m->settings->nccl_jobs_max);
}

static void write_rdma(struct ft_prom *p, const struct ft_rdma_status *s)
{
    const struct {
        const char *state;
        uint64_t count;
    } states[] = {{"resolved", s->table.resolved},
                  {"unconnected", s->table.unconnected},
                  {"no_destination", s->table.no_destination},
                  {"no_port", s->table.no_port},
                  {"table_full", s->table.refused}};

    ft_prom_one(p, METRIC_RDMA_DEVICES, s->devices);
    ft_prom_family(p, METRIC_RDMA_QPS);
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        ft_prom_u64(p, FT_PROM_LABELS(states[i].state), states[i].count);
    ft_prom_one(p, METRIC_RDMA_ROUNDS, s->rounds);
    ft_prom_one_double(p, METRIC_RDMA_ROUND_SECONDS, (double)s->round_ns / 1e9);
    ft_prom_one(p, METRIC_RDMA_REQUESTS_FAILED, s->requests_failed);
    ft_prom_one(p, METRIC_RDMA_LISTS_CUT, s->lists_cut);
    ft_prom_one(p, METRIC_RDMA_QUERIES, s->queries);
    ft_prom_one(p, METRIC_RDMA_QUERIES_FAILED, s->queries_failed);
    ft_prom_one(p, METRIC_RDMA_QUERIES_AMBIGUOUS, s->queries_ambiguous);
}

static void write_plans(struct ft_prom *p, const struct ft_plans_stats *s)
{
    const struct {
        const char *outcome;
        uint64_t count;
    } outcomes[] = {{"asked", s->asked},
                    {"given", s->given},
                    {"label", s->labels},
                    {"sport", s->sports},
                    {"refused", s->rejected}};

    ft_prom_one(p, METRIC_PLANS, s->plans);
    ft_prom_family(p, METRIC_PLAN_PORTS);
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
        ft_prom_u64(p, FT_PROM_LABELS(outcomes[i].outcome), outcomes[i].count);
    ft_prom_one(p, METRIC_PLAN_REFUSED, s->turned_away);
    ft_prom_one(p, METRIC_PLANS_WITHDRAWN, s->withdrawn);
    ft_prom_one(p, METRIC_PLAN_NOTICES_REFUSED, s->notices_refused);
}

static void write_probes(struct ft_prom *p, const struct ft_probes_stats *s)
{
    ft_prom_family(p, METRIC_PROBES);
    ft_prom_u64(p, FT_PROM_LABELS("probed"), s->probed);
    ft_prom_u64(p, FT_PROM_LABELS("refused"), s->refused);
    ft_prom_family(p, METRIC_PROBE_PACKETS);
    ft_prom_u64(p, FT_PROM_LABELS("sent"), s->sent);
    ft_prom_u64(p, FT_PROM_LABELS("failed"), s->failed);
    ft_prom_family(p, METRIC_PROBE_ANSWERS);
    ft_prom_u64(p, FT_PROM_LABELS("answered"), s->answered);
    ft_prom_u64(p, FT_PROM_LABELS("foreign"), s->foreign);
    ft_prom_one(p, METRIC_PROBE_REFUSED, s->turned_away);
}

static void write_states(struct ft_prom *p, const struct ft_states_stats *s)
{
    ft_prom_family(p, METRIC_RAS_ANSWERS);
    ft_prom_u64(p, FT_PROM_LABELS("answered"), s->answered);
    ft_prom_u64(p, FT_PROM_LABELS("unreachable"), s->unreachable);
    ft_prom_u64(p, FT_PROM_LABELS("refused"), s->refused);
    ft_prom_u64(p, FT_PROM_LABELS("invalid"), s->invalid);
    ft_prom_one(p, METRIC_RAS_ELSEWHERE, s->elsewhere);
    ft_prom_family(p, METRIC_FLIGHT_DUMPS);
    ft_prom_u64(p, FT_PROM_LABELS("read"), s->dumps);
    ft_prom_u64(p, FT_PROM_LABELS("invalid"), s->dumps_invalid);
    ft_prom_one(p, METRIC_STATES_LEFT_OUT, s->left_out);
}

static void write_closing(struct ft_prom *p, const struct ft_agent_metrics *m)
{
    struct ft_closer_stats jobs = {.closing = 0}, plans = {.closing = 0};

    if (m->jobs)
        jobs = ft_jobs_closing(m->jobs);
    if (m->plans)
        plans = ft_plans_closing(m->plans);
    ft_prom_family(p, METRIC_DESCRIPTORS_UNWANTED);
    ft_prom_u64(p, FT_PROM_LABELS("nccl"), jobs.unwanted);
    ft_prom_u64(p, FT_PROM_LABELS("plan"), plans.unwanted);
    ft_prom_family(p, METRIC_DESCRIPTORS_CLOSING);
    ft_prom_u64(p, FT_PROM_LABELS("nccl"), jobs.closing);
    ft_prom_u64(p, FT_PROM_LABELS("plan"), plans.closing);
}

void ft_agent_metrics_write(struct ft_writer *w, const struct ft_agent_metrics *m)
{
    struct ft_prom page = {w, &ft_agent_metrics_table, NULL};
    struct ft_rdma_status rdma;
    struct ft_flows_stats flows;
    struct ft_states_stats states;

    ft_common_metrics_write(&page, &m->common);
    ft_flows_stats(m->flows, &flows);
    if (m->rdma)
        ft_rdma_status(m->rdma, &rdma);
    ft_prom_one(&page, METRIC_FLOWS, flows.active);
    ft_prom_one(&page, METRIC_FLOW_REPORTS, flows.reports);
    write_tables(&page, m, flows.active, m->rdma ? &rdma : NULL);
    write_interfaces(&page, m->capture);
    if (m->rdma)
        write_rdma(&page, &rdma);
    if (m->jobs) {
        ft_prom_one(&page, METRIC_NCCL_JOBS, ft_jobs_count(m->jobs));
        ft_prom_one(&page, METRIC_NCCL_REFUSED, ft_jobs_refused(m->jobs));
        ft_prom_one(&page, METRIC_NCCL_IMPLAUSIBLE, ft_jobs_implausible(m->jobs));
        ft_prom_one(&page, METRIC_NCCL_WAITING, ft_jobs_waiting(m->jobs));
    }
    write_closing(&page, m);
    if (m->plans)
        write_plans(&page, ft_plans_stats(m->plans));
    if (m->probes)
        write_probes(&page, ft_probes_stats(m->probes));
    if (m->states) {
        states = ft_states_stats(m->states);
        write_states(&page, &states);
    }
    if (m->sender) {
        ft_prom_one(&page, METRIC_QUEUE_BYTES, m->sender->queue_bytes);
        ft_prom_one(&page, METRIC_QUEUE_LIMIT, m->settings->queue_bytes);
        ft_prom_one(&page, METRIC_CONNECTED, m->sender->connected);
        ft_prom_one(&page, METRIC_RECORDS_REPEATED, m->sender->records_repeated);
    }
}

void ft_agent_metrics_print_size(const struct ft_agent_settings *settings, FILE *out)
{
    const struct ft_prom_things most[] = {{"interface", settings->interfaces.count}, {NULL, 0}};

    fprintf(out,
            "/metrics: at most %" PRIu64 " series: %" PRIu64 ", and %" PRIu64
            " for each interface of capture.interfaces\n",
            ft_prom_series(&ft_agent_metrics_table, most),
            ft_prom_series_each(&ft_agent_metrics_table, NULL),
            ft_prom_series_each(&ft_agent_metrics_table, "interface"));
}
