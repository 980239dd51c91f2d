// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/pipeline.h"

#include <stdlib.h>

#include "lib/base/log.h"

#define NS_PER_MS 1000000

struct ft_sflow_pipeline {
    const char *source_id;
    struct ft_ingest *ingest;
    struct ft_output *output;
    struct ft_record_sink sink;
    int64_t loss_interval_ms;
    int64_t forget_ms;
    int64_t loss_due_ms; /* 0: no datagram or tick yet */
    uint64_t kernel_drops;
    struct ft_pace pace;
    void (*more)(void *arg, struct ft_ingest_stats *stats);
    void *more_arg;
    struct ft_snmp_stats snmp;
};

static void set_pace(struct ft_sflow_pipeline *p, const struct ft_switchpoll_settings *settings)
{
    ft_pace_begin(&p->pace, (uint32_t)(settings->fold_interval_ns / NS_PER_MS),
                  (uint32_t)(settings->fold_longest_ns / NS_PER_MS), ft_mono_now());
}

struct ft_sflow_pipeline *ft_sflow_pipeline_new(const struct ft_switchpoll_settings *settings,
                                                const char *source_id, uint64_t seed,
                                                struct ft_output *output)
{
    struct ft_sflow_pipeline *p = calloc(1, sizeof(*p));
    struct ft_ingest_config config = {
        .interval_ms = (uint32_t)(settings->fold_interval_ns / NS_PER_MS),
        .sums_max = settings->sums_max,
        .ports_max = settings->ports_max,
        .exporters_max = settings->exporters_max,
        .sources_max = settings->sources_max,
        .seed = seed,
    };

    if (!p)
        return NULL;
    p->source_id = source_id;
    p->output = output;
    p->sink = (struct ft_record_sink){.emit = ft_output_emit, .arg = output};
    p->loss_interval_ms = settings->loss_interval_ns / NS_PER_MS;
    p->forget_ms = settings->exporter_timeout_ns / NS_PER_MS;
    config.sink = p->sink;
    set_pace(p, settings);
    p->ingest = ft_ingest_new(&config);
    if (!p->ingest || ft_ingest_take_exporters(p->ingest, &settings->exporters) ||
        ft_ingest_take_blocks(p->ingest, &settings->srv6_blocks, settings->srv6_local)) {
        ft_sflow_pipeline_free(p);
        return NULL;
    }
    return p;
}

void ft_sflow_pipeline_free(struct ft_sflow_pipeline *p)
{
    if (!p)
        return;
    ft_ingest_free(p->ingest);
    free(p);
}

void ft_sflow_pipeline_reload(struct ft_sflow_pipeline *p,
                              const struct ft_switchpoll_settings *settings)
{
    if (ft_ingest_take_exporters(p->ingest, &settings->exporters))
        ft_log(FT_LOG_ERROR, "exporters: no memory; they are as before");
    ft_ingest_take_blocks(p->ingest, &settings->srv6_blocks, settings->srv6_local);
    set_pace(p, settings);
    ft_ingest_set_interval(p->ingest, p->pace.base_ms, p->pace.interval_ms);
    ft_ingest_thin(p->ingest, p->pace.part);
    p->loss_interval_ms = settings->loss_interval_ns / NS_PER_MS;
    p->forget_ms = settings->exporter_timeout_ns / NS_PER_MS;
    p->loss_due_ms = 0;
    ft_output_flush(p->output);
}

void ft_sflow_pipeline_set_more(struct ft_sflow_pipeline *p,
                                void (*more)(void *arg, struct ft_ingest_stats *stats), void *arg)
{
    p->more = more;
    p->more_arg = arg;
}

void ft_sflow_pipeline_facts(const struct ft_sflow_pipeline *p, struct ft_loss_facts *facts)
{
    facts->source_id = p->source_id;
    facts->kernel_drops = p->kernel_drops;
    facts->snmp = p->snmp;
    facts->fold_ms = p->pace.interval_ms;
    facts->fold_longer = p->pace.interval_ms != p->pace.base_ms;
    ft_ingest_stats(p->ingest, &facts->ingest);
    if (p->more)
        p->more(p->more_arg, &facts->ingest);
    ft_output_stats(p->output, &facts->transport);
}

static void report_loss(struct ft_sflow_pipeline *p, struct ft_wall now)
{
    struct ft_loss_facts facts;

    ft_sflow_pipeline_facts(p, &facts);
    ft_loss_emit(&facts, now, &p->sink);
    ft_output_flush(p->output);
}

/* Everything that happens every so often, by whichever clock rules. */
static void keep_time(struct ft_sflow_pipeline *p, struct ft_wall now)
{
    int64_t next_ms;

    /* Nearly always: not due yet, and within an interval. */
    if (now.ms < p->loss_due_ms && p->loss_due_ms - now.ms <= p->loss_interval_ms)
        return;
    next_ms = now.ms - now.ms % p->loss_interval_ms + p->loss_interval_ms;
    /* A due time further off than one interval belongs to a clock that was set back. */
    if (p->loss_due_ms == 0 || p->loss_due_ms > next_ms + p->loss_interval_ms) {
        p->loss_due_ms = next_ms;
        return;
    }
    if (now.ms < p->loss_due_ms)
        return;
    p->loss_due_ms = next_ms;
    report_loss(p, now);
    ft_ingest_expire(p->ingest, now, p->forget_ms);
}

void ft_sflow_pipeline_datagram(struct ft_sflow_pipeline *p, const uint8_t *bytes, size_t len,
                                struct ft_wall when)
{
    if (ft_ingest_datagram(p->ingest, bytes, len, when))
        ft_output_flush(p->output);
    keep_time(p, when);
}

void ft_sflow_pipeline_tick(struct ft_sflow_pipeline *p, struct ft_wall now)
{
    if (ft_ingest_tick(p->ingest, now))
        ft_output_flush(p->output);
    keep_time(p, now);
}

bool ft_sflow_pipeline_pace(struct ft_sflow_pipeline *p, uint64_t waiting, int64_t waits_ns,
                            bool crowded, struct ft_mono now)
{
    if (!ft_pace_step(&p->pace, waiting, waits_ns, crowded, now))
        return false;
    ft_ingest_set_interval(p->ingest, p->pace.base_ms, p->pace.interval_ms);
    ft_ingest_thin(p->ingest, p->pace.part);
    ft_output_flush(p->output);
    return true;
}

uint32_t ft_sflow_pipeline_interval_ms(const struct ft_sflow_pipeline *p, uint32_t *base_ms)
{
    *base_ms = p->pace.base_ms;
    return p->pace.interval_ms;
}

uint32_t ft_sflow_pipeline_part(const struct ft_sflow_pipeline *p)
{
    return p->pace.part;
}

void ft_sflow_pipeline_end(struct ft_sflow_pipeline *p, struct ft_wall now)
{
    ft_ingest_flush(p->ingest);
    ft_output_flush(p->output);
    report_loss(p, now);
}

void ft_sflow_pipeline_set_kernel_drops(struct ft_sflow_pipeline *p, uint64_t drops)
{
    p->kernel_drops = drops;
}

void ft_sflow_pipeline_set_snmp(struct ft_sflow_pipeline *p, const struct ft_snmp_stats *requests)
{
    p->snmp = *requests;
}

const struct ft_sflow_exporters *ft_sflow_pipeline_exporters(const struct ft_sflow_pipeline *p)
{
    return ft_ingest_exporters(p->ingest);
}
