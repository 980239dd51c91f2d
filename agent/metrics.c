// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/metrics.h"

#include <inttypes.h>

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

/* An interface's name may hold any character that a label must not. */
static void write_interface(struct ft_writer *w, const char *name, const char *interface,
                            uint64_t value)
{
    ft_write_fmt(w, "fabrictrace_agent_%s{interface=\"", name);
    for (const char *c = interface; *c; c++) {
        if (*c == '"' || *c == '\\')
            ft_write_u8(w, '\\');
        ft_write_u8(w, (uint8_t)*c);
    }
    ft_write_fmt(w, "\"} %" PRIu64 "\n", value);
}

static void write_interfaces(struct ft_writer *w, struct ft_capture *capture)
{
    struct ft_capture_stats stats;

    family(w, "capture_packets_total", "counter", "Packets taken from an interface.");
    for (size_t i = 0; ft_capture_stats(capture, i, &stats); i++)
        write_interface(w, "capture_packets_total", stats.interface, stats.packets);
    family(w, "capture_drops_total", "counter",
           "Packets that the kernel dropped for lack of buffer space.");
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

void ft_agent_metrics_write(struct ft_writer *w, const struct ft_agent_metrics *metrics)
{
    struct ft_flows_stats flows;

    family(w, "build_info", "gauge", "Version of the program.");
    ft_write_fmt(w, "fabrictrace_agent_build_info{version=\"%s\"} 1\n", PACKAGE_VERSION);
    ft_flows_stats(metrics->flows, &flows);
    single(w, "flows", "gauge", "Flows remembered.", flows.active);
    single(w, "flow_reports_total", "counter", "Flow reports made.", flows.reports);
    write_interfaces(w, metrics->capture);
    write_account(w, metrics->account);
    if (metrics->sender)
        single(w, "connected", "gauge", "Whether the daemon is connected.", metrics->connected);
}
