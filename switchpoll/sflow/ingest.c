// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/ingest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/prefix.h"
#include "lib/base/reader.h"
#include "proto/sflow.h"
#include "proto/usid.h"
#include "switchpoll/sflow/fold.h"

/* Datagrams this many intervals older than the current one mean a clock that was set back. */
#define BACK_INTERVALS 10

struct ft_ingest {
    uint32_t base_ms;     /* as configured */
    uint32_t interval_ms; /* now */
    uint64_t sums_max;
    struct ft_record_sink sink;
    struct ft_fold *fold;
    struct ft_ports *ports;
    struct ft_sflow_exporters *exporters;
    struct ft_prefix *listed; /* NULL: all are taken */
    size_t listed_count;
    struct ft_usid_blocks blocks;

    bool running; /* an interval is open and start holds */
    struct ft_wall start;

    /* The datagram in hand. */
    struct ft_wall when;
    struct ft_ip agent;
    uint32_t sub_agent;
    uint64_t print;
    bool duplicate, unlisted;
    struct ft_exporter *exporter;

    struct ft_sflow_stats decoded;
    uint64_t no_packet;
    struct ft_ingest_stats stats;
};

struct ft_ingest *ft_ingest_new(const struct ft_ingest_config *config)
{
    struct ft_ingest *in = calloc(1, sizeof(*in));

    if (!in)
        return NULL;
    in->base_ms = in->interval_ms = config->interval_ms;
    in->sums_max = config->sums_max;
    in->sink = config->sink;
    in->fold = ft_fold_new(config->sums_max, config->seed);
    in->ports = ft_ports_new(config->ports_max, config->seed);
    in->exporters =
        ft_sflow_exporters_new(config->exporters_max, config->sources_max, config->seed);
    if (!in->fold || !in->ports || !in->exporters) {
        ft_ingest_free(in);
        return NULL;
    }
    return in;
}

void ft_ingest_free(struct ft_ingest *in)
{
    if (!in)
        return;
    ft_fold_free(in->fold);
    ft_ports_free(in->ports);
    ft_sflow_exporters_free(in->exporters);
    free(in->listed);
    free(in);
}

/* Tells a datagram from another with the same sequence: its length and words spread over it. */
static uint64_t fingerprint(const uint8_t *bytes, size_t len)
{
    enum { WORDS = 16 };
    size_t stride = len / WORDS & ~(size_t)7;
    uint64_t print = len, word;

    if (stride < sizeof(word))
        stride = sizeof(word);
    for (size_t at = 0; at + sizeof(word) <= len; at += stride) {
        memcpy(&word, bytes + at, sizeof(word));
        print = (print ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        print = print << 29 | print >> 35;
    }
    return print | 1; /* 0 marks a number without a print */
}

void ft_ingest_flush(struct ft_ingest *in)
{
    uint64_t sums, thinned;

    if (!in->running)
        return;
    ft_fold_apply(in->fold);
    ft_fold_thinned(in->fold, &thinned);
    sums = ft_fold_sums(in->fold) + thinned;
    in->stats.samples_processed += ft_fold_flush(in->fold, in->start, in->interval_ms, &in->sink);
    ft_fold_thinned(in->fold, &thinned);
    in->stats.observations += sums - thinned;
    ft_ports_flush(in->ports, &in->sink);
    in->running = false;
}

/* The clock was set back. */
static bool was_set_back(const struct ft_ingest *in, struct ft_wall now)
{
    return now.ms < in->start.ms - BACK_INTERVALS * (int64_t)in->interval_ms;
}

/* Opens the interval that holds the moment; closes the one before and returns whether there was. */
static bool open_interval(struct ft_ingest *in, struct ft_wall when)
{
    int64_t interval = in->interval_ms;
    bool close = in->running && (when.ms >= in->start.ms + interval || was_set_back(in, when));

    if (close)
        ft_ingest_flush(in);
    if (!in->running) {
        in->start.ms = when.ms - when.ms % interval;
        in->running = true;
    }
    in->when = when;
    if (in->when.ms < in->start.ms)
        in->when = in->start;
    return close;
}

static bool on_head(void *arg, const struct ft_sflow_head *head)
{
    struct ft_ingest *in = arg;

    /* Before any table keeps something of it. */
    in->unlisted = in->listed && !ft_prefixes_have(in->listed, in->listed_count, &head->agent);
    if (in->unlisted)
        return false;
    in->agent = head->agent;
    in->sub_agent = head->sub_agent;
    in->duplicate = ft_sflow_exporters_datagram(in->exporters, head, in->print, in->when,
                                                &in->exporter) == FT_EXPORTERS_DUPLICATE;
    return !in->duplicate;
}

static void add_flow(struct ft_ingest *in, const struct ft_sflow_flow *flow)
{
    enum ft_usid usid = FT_USID_NONE;
    struct ft_sflow_flow named;
    struct ft_ip stays;

    if (in->blocks.count)
        usid = ft_packet_stays(&in->blocks, &flow->packet, &stays);
    in->stats.usid_unknown += usid == FT_USID_UNKNOWN;
    if (usid == FT_USID_KNOWN) {
        in->stats.usid_known++;
        named = *flow;
        ft_packet_rename(&named.packet, &stays);
        flow = &named;
    }
    ft_fold_add(in->fold, &in->agent, in->sub_agent, flow, in->when);
}

static void on_flow(void *arg, const struct ft_sflow_flow *flow)
{
    struct ft_ingest *in = arg;

    ft_sflow_exporters_flow(in->exporters, in->exporter, flow);
    if (!flow->has_packet)
        in->no_packet++;
    else
        add_flow(in, flow);
}

static void on_counters(void *arg, const struct ft_sflow_counters *counters)
{
    struct ft_ingest *in = arg;

    ft_ports_put(in->ports, &in->agent, counters, in->when);
}

static void on_processor(void *arg, const struct ft_sflow_processor *processor)
{
    struct ft_ingest *in = arg;

    ft_ports_put_processor(in->ports, &in->agent, in->sub_agent, processor, in->when);
}

static bool take_datagram(struct ft_ingest *in, const uint8_t *bytes, size_t len,
                          struct ft_wall when)
{
    const struct ft_sflow_visitor visitor = {.head = on_head,
                                             .flow = on_flow,
                                             .counters = on_counters,
                                             .processor = on_processor,
                                             .arg = in};
    bool closed;

    closed = open_interval(in, when);
    in->print = fingerprint(bytes, len);
    in->duplicate = in->unlisted = false;
    in->exporter = NULL;
    in->stats.datagrams++;
    switch (ft_sflow_decode(bytes, len, &visitor, &in->decoded)) {
    case FT_SFLOW_OK:
        if (in->unlisted)
            in->stats.unlisted++;
        else if (in->duplicate)
            in->stats.duplicate++;
        else
            in->stats.datagrams_processed++;
        break;
    case FT_SFLOW_SHORT:
        in->stats.truncated++;
        break;
    case FT_SFLOW_BAD:
        in->stats.malformed++;
        break;
    case FT_SFLOW_UNKNOWN:
        in->stats.not_sflow_v5++;
        break;
    }
    return closed;
}

/* Of a longer interval than configured no sample is refused as the table is full: it ends early. */
static bool flush_full(struct ft_ingest *in)
{
    if (in->interval_ms == in->base_ms || ft_fold_sums(in->fold) < in->sums_max / 4 * 3)
        return false;
    ft_ingest_flush(in);
    in->stats.ended_early++;
    return true;
}

bool ft_ingest_datagram(struct ft_ingest *in, const uint8_t *bytes, size_t len, struct ft_wall when)
{
    bool closed = take_datagram(in, bytes, len, when);

    return flush_full(in) || closed;
}

int ft_ingest_take_exporters(struct ft_ingest *in, const struct ft_strings *exporters)
{
    struct ft_prefix *list = NULL;

    if (exporters->count && !(list = calloc(exporters->count, sizeof(*list))))
        return -ENOMEM;
    for (size_t i = 0; i < exporters->count; i++) {
        if (ft_prefix_parse(exporters->items[i], strlen(exporters->items[i]), &list[i])) {
            free(list);
            return -EINVAL;
        }
    }
    free(in->listed);
    in->listed = list;
    in->listed_count = ft_prefixes_sort(list, exporters->count);
    return 0;
}

int ft_ingest_take_blocks(struct ft_ingest *in, const struct ft_strings *blocks, uint64_t local)
{
    return ft_usid_blocks_parse(blocks->items, blocks->count, local, &in->blocks, NULL, 0);
}

bool ft_ingest_tick(struct ft_ingest *in, struct ft_wall now)
{
    ft_fold_apply(in->fold);
    /* Datagrams of the interval may still wait in the socket: give them a quarter of the base. */
    if (!in->running ||
        (now.ms < in->start.ms + in->interval_ms + in->base_ms / 4 && !was_set_back(in, now)))
        return flush_full(in);
    ft_ingest_flush(in);
    return true;
}

void ft_ingest_set_interval(struct ft_ingest *in, uint32_t base_ms, uint32_t interval_ms)
{
    ft_ingest_flush(in);
    in->base_ms = base_ms;
    in->interval_ms = interval_ms;
}

void ft_ingest_thin(struct ft_ingest *in, uint32_t part)
{
    ft_ingest_flush(in);
    ft_fold_thin(in->fold, part);
}

void ft_ingest_expire(struct ft_ingest *in, struct ft_wall now, int64_t silent_ms)
{
    ft_sflow_exporters_expire(in->exporters, now, silent_ms);
}

void ft_ingest_stats(const struct ft_ingest *in, struct ft_ingest_stats *stats)
{
    const struct ft_sflow_stats *d = &in->decoded;
    uint64_t sums;

    *stats = in->stats;
    stats->samples = d->flow_samples + d->counter_samples + d->unknown_samples + d->broken_samples;
    stats->samples_processed += d->counter_samples - d->counters_other;
    stats->samples_pending = ft_fold_pending(in->fold);
    stats->unknown_format = d->unknown_samples;
    stats->malformed_samples = d->broken_samples;
    stats->header_short = d->headers_short;
    stats->header_bad = d->headers_bad;
    stats->not_ip = in->no_packet - d->headers_short - d->headers_bad;
    stats->no_port_counters = d->counters_other;
    memcpy(stats->records, d->records, sizeof(stats->records));
    stats->broken_records = d->broken_records;
    stats->discards = d->discards;
    stats->implausible = ft_fold_implausible(in->fold);
    stats->table_full = ft_fold_refused(in->fold);
    stats->thinned = ft_fold_thinned(in->fold, &sums);
    stats->sums = ft_fold_sums(in->fold);
    stats->sums_bytes = ft_fold_bytes(in->fold);
    ft_ports_stats(in->ports, &stats->ports);
    ft_sflow_exporters_stats(in->exporters, &stats->exporters);
}

void ft_ingest_stats_add(struct ft_ingest_stats *sum, const struct ft_ingest_stats *more)
{
    enum { FIGURES = sizeof(*sum) / sizeof(uint64_t) };
    uint64_t a[FIGURES], b[FIGURES];

    /* Every member, also of the members, is a count of 64 bits. */
    _Static_assert(sizeof(a) == sizeof(*sum), "not a table of counts");
    memcpy(a, sum, sizeof(a));
    memcpy(b, more, sizeof(b));
    for (size_t i = 0; i < FIGURES; i++)
        a[i] += b[i];
    memcpy(sum, a, sizeof(a));
}

const struct ft_sflow_exporters *ft_ingest_exporters(const struct ft_ingest *in)
{
    return in->exporters;
}
