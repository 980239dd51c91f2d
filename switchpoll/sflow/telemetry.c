// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/telemetry.h"

#include <stdio.h>

#include "switchpoll/metrics.h"

struct reason {
    const char *name;
    uint64_t count;
};

static void write_reasons(struct ft_prom *p, enum ft_poll_metric metric,
                          const struct reason *reasons, size_t count)
{
    ft_prom_family(p, metric);
    for (size_t i = 0; i < count; i++)
        ft_prom_u64(p, FT_PROM_LABELS(reasons[i].name), reasons[i].count);
}

static void write_datagrams(const struct ft_loss_facts *f, struct ft_prom *p)
{
    const struct ft_ingest_stats *s = &f->ingest;
    const struct reason reasons[] = {
        {"kernel_buffer", f->kernel_drops}, {"not_sflow_v5", s->not_sflow_v5},
        {"malformed", s->malformed},        {"truncated", s->truncated},
        {"duplicate", s->duplicate},        {"unlisted", s->unlisted}};

    ft_prom_one(p, FT_POLL_DATAGRAMS_RECEIVED, s->datagrams + f->kernel_drops);
    ft_prom_one(p, FT_POLL_DATAGRAMS_PROCESSED, s->datagrams_processed);
    write_reasons(p, FT_POLL_DATAGRAMS_DROPPED, reasons, sizeof(reasons) / sizeof(reasons[0]));
}

static void write_samples(const struct ft_ingest_stats *s, struct ft_prom *p)
{
    const struct reason reasons[] = {{"unknown_format", s->unknown_format},
                                     {"malformed", s->malformed_samples},
                                     {"not_ip", s->not_ip},
                                     {"header_short", s->header_short},
                                     {"header_bad", s->header_bad},
                                     {"table_full", s->table_full},
                                     {"thinned", s->thinned},
                                     {"no_port_counters", s->no_port_counters}};
    const struct reason srv6[] = {{"known", s->usid_known}, {"unknown", s->usid_unknown}};

    ft_prom_one(p, FT_POLL_SAMPLES_RECEIVED, s->samples);
    ft_prom_one(p, FT_POLL_SAMPLES_PROCESSED, s->samples_processed);
    ft_prom_one(p, FT_POLL_SAMPLES_PENDING, s->samples_pending);
    write_reasons(p, FT_POLL_SAMPLES_DROPPED, reasons, sizeof(reasons) / sizeof(reasons[0]));
    ft_prom_family(p, FT_POLL_SAMPLE_RECORDS);
    for (int kind = 0; kind < FT_SFLOW_RECORD_KINDS; kind++)
        ft_prom_u64(p, FT_PROM_LABELS(ft_sflow_record_name((enum ft_sflow_record)kind)),
                    s->records[kind]);
    ft_prom_one(p, FT_POLL_BROKEN_RECORDS, s->broken_records);
    ft_prom_one(p, FT_POLL_DISCARD_NOTIFICATIONS, s->discards);
    ft_prom_one(p, FT_POLL_IMPLAUSIBLE, s->implausible);
    write_reasons(p, FT_POLL_MICRO_SIDS, srv6, sizeof(srv6) / sizeof(srv6[0]));
    ft_prom_one(p, FT_POLL_OBSERVATIONS, s->observations);
    ft_prom_one(p, FT_POLL_PORT_COUNTERS, s->ports.received);
    ft_prom_one(p, FT_POLL_PORT_COUNTERS_DROPPED, s->ports.refused);
}

static void write_tables(const struct ft_telemetry *t, struct ft_prom *p)
{
    const struct ft_ingest_stats *s = &t->facts.ingest;
    const struct {
        const char *name;
        uint64_t entries, limit;
    } tables[] = {{"sums", s->sums, t->sums_max},
                  {"exporters", s->exporters.exporters, t->exporters_max},
                  {"data_sources", s->exporters.sources, t->sources_max}};

    ft_prom_one(p, FT_POLL_FOLD_BYTES, s->sums_bytes);
    ft_prom_one_double(p, FT_POLL_FOLD_INTERVAL, t->facts.fold_ms / 1000.0);
    ft_prom_one(p, FT_POLL_FOLD_ENDED_EARLY, s->ended_early);
    ft_prom_family(p, FT_POLL_TABLE_ENTRIES);
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        ft_prom_u64(p, FT_PROM_LABELS(tables[i].name), tables[i].entries);
    ft_prom_family(p, FT_POLL_TABLE_LIMIT);
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        ft_prom_u64(p, FT_PROM_LABELS(tables[i].name), tables[i].limit);
}

static void write_totals(const struct ft_sflow_exporters_stats *x, struct ft_prom *p)
{
    ft_prom_one(p, FT_POLL_DATAGRAMS_MISSING, x->gap);
    ft_prom_one(p, FT_POLL_SAMPLES_MISSING, x->samples_gap);
    ft_prom_one(p, FT_POLL_AGENT_DROPS, x->agent_drops);
    ft_prom_one(p, FT_POLL_ODD_DROPS, x->odd_drops);
    ft_prom_one(p, FT_POLL_UNTRACKED, x->untracked);
    ft_prom_one(p, FT_POLL_EXPORTERS, x->exporters);
    ft_prom_one(p, FT_POLL_EXPORTERS_UNLISTED,
                x->exporters > FT_POLL_EXPORTERS_LISTED ? x->exporters - FT_POLL_EXPORTERS_LISTED
                                                        : 0);
    ft_prom_one(p, FT_POLL_DATA_SOURCES, x->sources);
}

static uint64_t figure_of(const struct ft_exporter *e, enum ft_poll_metric metric)
{
    switch (metric) {
    case FT_POLL_EXPORTER_DATAGRAMS:
        return e->datagrams;
    case FT_POLL_EXPORTER_MISSING:
        return e->gap;
    case FT_POLL_EXPORTER_RESTARTS:
        return e->restarts;
    case FT_POLL_EXPORTER_REORDERED:
        return e->reordered;
    case FT_POLL_EXPORTER_SAMPLES:
        return e->flow_samples;
    default:
        return (uint64_t)e->last_seen.ms / 1000;
    }
}

static void write_exporters(const struct ft_telemetry *t, struct ft_prom *p)
{
    for (int m = FT_POLL_EXPORTER_DATAGRAMS; m <= FT_POLL_EXPORTER_LAST_SEEN; m++) {
        uint32_t listed = 0;

        ft_prom_family(p, (size_t)m);
        for (size_t n = 0; n < t->exporter_tables; n++) {
            const struct ft_exporter *e;
            uint32_t at = 0;

            while (listed < FT_POLL_EXPORTERS_LISTED &&
                   (e = ft_sflow_exporters_next(t->exporters[n], &at))) {
                char agent[FT_IP_TEXT_BYTES], sub_agent[16];

                listed++;
                ft_ip_format(&e->agent, agent);
                snprintf(sub_agent, sizeof(sub_agent), "%u", e->sub_agent);
                ft_prom_u64(p, FT_PROM_LABELS(agent, sub_agent),
                            figure_of(e, (enum ft_poll_metric)m));
            }
        }
    }
}

void ft_telemetry_write(const struct ft_telemetry *t, struct ft_prom *p)
{
    const struct ft_loss_transport *records = &t->facts.transport;

    write_datagrams(&t->facts, p);
    write_samples(&t->facts.ingest, p);
    write_tables(t, p);
    write_totals(&t->facts.ingest.exporters, p);
    ft_prom_one(p, FT_POLL_RECORDS, records->received);
    ft_prom_one(p, FT_POLL_RECORDS_DELIVERED, records->processed);
    ft_prom_one(p, FT_POLL_RECORDS_DROPPED, records->dropped);
    ft_prom_one(p, FT_POLL_RECORDS_PENDING, records->pending);
    ft_prom_one(p, FT_POLL_RECEIVE_BUFFER, t->receive_buffer_bytes);
    if (t->has_sender) {
        ft_prom_one(p, FT_POLL_QUEUE_BYTES, t->queue_bytes);
        ft_prom_one(p, FT_POLL_QUEUE_LIMIT, t->queue_bytes_max);
        ft_prom_one(p, FT_POLL_DAEMON_CONNECTED, t->connected);
        ft_prom_one(p, FT_POLL_RECORDS_REPEATED, t->records_repeated);
    }
    write_exporters(t, p);
}
