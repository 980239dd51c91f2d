// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/metrics.h"

#include <inttypes.h>

#include "proto/json.h"

static void family(struct ft_writer *w, const char *name, const char *type, const char *help)
{
    ft_write_fmt(w, "# HELP fabrictrace_agent_%s %s\n# TYPE fabrictrace_agent_%s %s\n", name, help,
                 name, type);
}

static void single(struct ft_writer *w, const char *name, const char *type, const char *help,
                   uint64_t value)
{
    family(w, name, type, help);
    ft_write_fmt(w, "fabrictrace_agent_%s %" PRIu64 "\n", name, value);
}

static void write_interface(struct ft_writer *w, const char *name, const char *interface,
                            uint64_t value)
{
    ft_write_fmt(w, "fabrictrace_agent_%s{interface=", name);
    ft_json_write_label(w, interface);
    ft_write_fmt(w, "} %" PRIu64 "\n", value);
}

static void write_interfaces(struct ft_writer *w, struct ft_capture *capture)
{
    struct ft_capture_stats stats;

    family(w, "capture_packets_total", "counter", "Packets taken from an interface.");
    for (size_t i = 0; ft_capture_stats(capture, i, &stats); i++)
        write_interface(w, "capture_packets_total", stats.interface, stats.packets);
    family(w, "capture_drops_total", "counter",
           "Packets that the kernel dropped because the buffer was full.");
    for (size_t i = 0; ft_capture_stats(capture, i, &stats); i++)
        write_interface(w, "capture_drops_total", stats.interface, stats.kernel_drops);
    family(w, "capture_open", "gauge", "Whether an interface is being captured on.");
    for (size_t i = 0; ft_capture_stats(capture, i, &stats); i++)
        write_interface(w, "capture_open", stats.interface, stats.open);
}

static void write_account(struct ft_writer *w, const struct ft_account *account)
{
    family(w, "received_total", "counter", "What entered a stage.");
    for (size_t i = 0; i < account->stage_count; i++)
        ft_write_fmt(w, "fabrictrace_agent_received_total{stage=\"%s\"} %" PRIu64 "\n",
                     account->stages[i].name, account->stages[i].received);
    family(w, "processed_total", "counter", "What left a stage as it should.");
    for (size_t i = 0; i < account->stage_count; i++)
        ft_write_fmt(w, "fabrictrace_agent_processed_total{stage=\"%s\"} %" PRIu64 "\n",
                     account->stages[i].name, account->stages[i].processed);
    family(w, "pending", "gauge", "What is still in a stage.");
    for (size_t i = 0; i < account->stage_count; i++)
        ft_write_fmt(w, "fabrictrace_agent_pending{stage=\"%s\"} %" PRIu64 "\n",
                     account->stages[i].name, account->stages[i].pending);
    family(w, "dropped_total", "counter", "What a stage lost, by reason.");
    for (size_t i = 0; i < account->stage_count; i++)
        for (size_t d = 0; d < account->stages[i].drop_count; d++)
            ft_write_fmt(
                w, "fabrictrace_agent_dropped_total{stage=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
                account->stages[i].name, account->stages[i].drops[d].reason,
                account->stages[i].drops[d].count);
}

static void write_qps(struct ft_writer *w, const char *state, uint64_t value)
{
    ft_write_fmt(w, "fabrictrace_agent_rdma_queue_pairs{state=\"%s\"} %" PRIu64 "\n", state, value);
}

static void write_rdma(struct ft_writer *w, const struct ft_rdma *rdma)
{
    struct ft_rdma_status status;

    ft_rdma_status(rdma, &status);
    single(w, "rdma_devices", "gauge", "RDMA devices.", status.devices);
    family(w, "rdma_queue_pairs", "gauge", "Queue pairs, by whether their flow is known.");
    write_qps(w, "resolved", status.table.resolved);
    write_qps(w, "unconnected", status.table.unconnected);
    write_qps(w, "no_destination", status.table.no_destination);
    write_qps(w, "no_port", status.table.no_port);
    write_qps(w, "table_full", status.table.refused);
    single(w, "rdma_rounds_total", "counter", "Looks at the kernel's RDMA state.", status.rounds);
    single(w, "rdma_round_nanoseconds_total", "counter", "Time spent on them.", status.round_ns);
    single(w, "rdma_requests_failed_total", "counter", "Requests that the kernel refused.",
           status.requests_failed);
    single(w, "rdma_lists_cut_total", "counter", "Lists that changed while they were written.",
           status.lists_cut);
    single(w, "rdma_queries_total", "counter", "Processes whose queue pairs were queried.",
           status.queries);
    single(w, "rdma_queries_failed_total", "counter", "Of them those that could not be.",
           status.queries_failed);
    single(w, "rdma_queries_ambiguous_total", "counter",
           "Queue pairs that a query could not distinguish from others.", status.queries_ambiguous);
}

void ft_agent_metrics_write(struct ft_writer *w, const struct ft_agent_metrics *metrics)
{
    struct ft_flows_stats flows;

    family(w, "build_info", "gauge", "Version of the program.");
    ft_write_fmt(w, "fabrictrace_agent_build_info{version=\"%s\"} 1\n", PACKAGE_VERSION);
    ft_flows_stats(metrics->flows, &flows);
    single(w, "flows", "gauge", "Flows remembered.", flows.active);
    single(w, "flow_reports_total", "counter", "Flow reports made.", flows.reports);
    write_interfaces(w, metrics->capture);
    if (metrics->rdma)
        write_rdma(w, metrics->rdma);
    write_account(w, metrics->account);
    if (metrics->sender)
        single(w, "connected", "gauge", "Whether the daemon is connected.", metrics->connected);
}
