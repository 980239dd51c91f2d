// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/telemetry.h"

#include <inttypes.h>

#define PREFIX "fabrictrace_switchpoll_"

static void family(struct ft_writer *w, const char *name, const char *type, const char *help)
{
    ft_write_fmt(w, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

static void value(struct ft_writer *w, const char *name, uint64_t v)
{
    ft_write_str(w, PREFIX);
    ft_write_str(w, name);
    ft_write_u8(w, ' ');
    ft_write_u64(w, v);
    ft_write_u8(w, '\n');
}

static void counter(struct ft_writer *w, const char *name, const char *help, uint64_t v)
{
    family(w, name, "counter", help);
    value(w, name, v);
}

static void gauge(struct ft_writer *w, const char *name, const char *help, uint64_t v)
{
    family(w, name, "gauge", help);
    value(w, name, v);
}

static void reason(struct ft_writer *w, const char *name, const char *label, uint64_t v)
{
    ft_write_fmt(w, PREFIX "%s{reason=\"%s\"} ", name, label);
    ft_write_u64(w, v);
    ft_write_u8(w, '\n');
}

static void write_datagrams(const struct ft_loss_facts *f, struct ft_writer *w)
{
    const struct ft_ingest_stats *s = &f->ingest;
    const char *drops = "datagrams_dropped_total";

    counter(w, "datagrams_received_total", "Datagrams that reached this machine's socket.",
            s->datagrams + f->kernel_drops);
    counter(w, "datagrams_processed_total", "Datagrams decoded.", s->datagrams_processed);
    family(w, drops, "counter", "Datagrams dropped, by reason.");
    reason(w, drops, "kernel_buffer", f->kernel_drops);
    reason(w, drops, "not_sflow_v5", s->not_sflow_v5);
    reason(w, drops, "malformed", s->malformed);
    reason(w, drops, "truncated", s->truncated);
    reason(w, drops, "duplicate", s->duplicate);
}

static void write_samples(const struct ft_ingest_stats *s, struct ft_writer *w)
{
    const char *drops = "samples_dropped_total", *records = "sample_records_total";

    counter(w, "samples_received_total", "Samples in the datagrams.", s->samples);
    counter(w, "samples_processed_total", "Samples that went into a record.", s->samples_processed);
    gauge(w, "samples_pending", "Samples folded in the interval that runs.", s->samples_pending);
    family(w, drops, "counter", "Samples dropped, by reason.");
    reason(w, drops, "unknown_format", s->unknown_format);
    reason(w, drops, "malformed", s->malformed_samples);
    reason(w, drops, "not_ip", s->not_ip);
    reason(w, drops, "header_short", s->header_short);
    reason(w, drops, "header_bad", s->header_bad);
    reason(w, drops, "table_full", s->table_full);
    reason(w, drops, "no_port_counters", s->no_port_counters);
    family(w, records, "counter", "Records inside samples, by kind; unknown ones are skipped.");
    for (int kind = 0; kind < FT_SFLOW_RECORD_KINDS; kind++)
        ft_write_fmt(w, PREFIX "%s{record=\"%s\"} %" PRIu64 "\n", records,
                     ft_sflow_record_name((enum ft_sflow_record)kind), s->records[kind]);
    counter(w, "broken_records_total", "Records skipped, since shorter than their kind.",
            s->broken_records);
    counter(w, "discard_notifications_total", "Notifications of packets that switches discarded.",
            s->discards);
    counter(w, "samples_implausible_total",
            "Samples whose rate or frame length cannot be, and was cut.", s->implausible);
    counter(w, "observations_total", "Observation records made.", s->observations);
    counter(w, "port_counters_total", "Interface counters received.", s->ports.received);
    counter(w, "port_counters_dropped_total", "Interface counters that found the table full.",
            s->ports.refused);
    gauge(w, "fold_entries", "Sums in the interval that runs.", s->sums);
    gauge(w, "fold_bytes", "Memory of the table of sums.", s->sums_bytes);
}

static void write_totals(const struct ft_sflow_exporters_stats *x, struct ft_writer *w)
{
    counter(w, "network_datagrams_missing_total",
            "Datagrams missing by the exporters' sequence numbers.", x->gap);
    counter(w, "network_samples_missing_total",
            "Flow samples missing by the data sources' sequence numbers.", x->samples_gap);
    counter(w, "agent_drops_total", "Samples that agents report as dropped.", x->agent_drops);
    counter(w, "agent_drops_implausible_total",
            "Times that an agent's count of drops grew by more than it had packets: not counted.",
            x->odd_drops);
    counter(w, "exporters_untracked_total",
            "Datagrams of exporters that did not fit into the table; they are processed.",
            x->untracked);
    gauge(w, "exporters", "Exporters known.", x->exporters);
    gauge(w, "data_sources", "Data sources known.", x->sources);
}

enum figure { DATAGRAMS, MISSING, RESTARTS, REORDERED, SAMPLES, LAST_SEEN };

static uint64_t figure_of(const struct ft_exporter *e, enum figure figure)
{
    switch (figure) {
    case DATAGRAMS:
        return e->datagrams;
    case MISSING:
        return e->gap;
    case RESTARTS:
        return e->restarts;
    case REORDERED:
        return e->reordered;
    case SAMPLES:
        return e->flow_samples;
    case LAST_SEEN:
        return (uint64_t)e->last_seen.ms / 1000;
    }
    return 0;
}

static void write_exporter(const char *name, const struct ft_exporter *e, uint64_t v,
                           struct ft_writer *w)
{
    char agent[FT_IP_TEXT_BYTES];

    ft_ip_format(&e->agent, agent);
    ft_write_fmt(w, PREFIX "%s{agent=\"%s\",sub_agent=\"%u\"} ", name, agent, e->sub_agent);
    ft_write_u64(w, v);
    ft_write_u8(w, '\n');
}

static void write_exporters(const struct ft_telemetry *t, struct ft_writer *w)
{
    static const struct {
        const char *name;
        const char *type;
        const char *help;
    } families[] = {
        [DATAGRAMS] = {"exporter_datagrams_total", "counter", "Datagrams of an exporter."},
        [MISSING] = {"exporter_datagrams_missing_total", "counter",
                     "Datagrams missing by its sequence numbers."},
        [RESTARTS] = {"exporter_restarts_total", "counter",
                      "Times its sequence numbers restarted."},
        [REORDERED] = {"exporter_datagrams_reordered_total", "counter",
                       "Datagrams that came out of order."},
        [SAMPLES] = {"exporter_flow_samples_total", "counter", "Flow samples of an exporter."},
        [LAST_SEEN] = {"exporter_last_seen_timestamp_seconds", "gauge",
                       "When its last datagram came."},
    };

    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        family(w, families[i].name, families[i].type, families[i].help);
        for (size_t n = 0; n < t->exporter_tables; n++) {
            const struct ft_exporter *e;
            uint32_t at = 0;

            while ((e = ft_sflow_exporters_next(t->exporters[n], &at)))
                write_exporter(families[i].name, e, figure_of(e, (enum figure)i), w);
        }
    }
}

void ft_telemetry_write(const struct ft_telemetry *t, struct ft_writer *w)
{
    const struct ft_loss_transport *records = &t->facts.transport;

    family(w, "build_info", "gauge", "The version that runs.");
    ft_write_str(w, PREFIX "build_info{version=\"" PACKAGE_VERSION "\"} 1\n");
    write_datagrams(&t->facts, w);
    write_samples(&t->facts.ingest, w);
    write_totals(&t->facts.ingest.exporters, w);
    counter(w, "records_total", "Records made for the daemon or the output.", records->received);
    counter(w, "records_delivered_total", "Records acknowledged or written.", records->processed);
    counter(w, "records_dropped_total", "Records lost at the cap of the queue.", records->dropped);
    gauge(w, "records_pending", "Records that wait.", records->pending);
    gauge(w, "receive_buffer_bytes", "Effective size of the socket's receive buffer.",
          t->receive_buffer_bytes);
    if (t->has_sender)
        gauge(w, "daemon_connected", "Whether the daemon is connected.", t->connected);
    write_exporters(t, w);
}
